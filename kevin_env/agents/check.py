#!/usr/bin/env python3
"""Has a kernel file judged, and prints the verdict: `./check kernel.py`.

Exit code 0 if the kernel is correct, 1 if not, 2 if there is no verdict. The verdict is made by the
server that `.mcp.json` names; this file only sends and prints. A second argument names a file for
the score, in JSON.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

TOKEN = "KEVIN_ENV_MCP_TOKEN"
"""The environment variable with the token of a server whose settings have none."""


def main() -> int:
    """Submits the file that the command line names."""
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        return fail("usage: ./check kernel.py")
    try:
        code = Path(sys.argv[1]).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        return fail(f"cannot read {sys.argv[1]}: {error}")
    try:
        settings = json.loads(Path(__file__).with_name(".mcp.json").read_text(encoding="utf-8"))
        server = settings["mcpServers"]["kevin-env"]
        url, headers = server["url"], server["headers"]
        if "problem" in settings:
            headers, _ = start(url, os.environ.get(TOKEN, ""), settings["problem"])
        answer = use(url, headers, "submit_kernel", {"code": code})
    except urllib.error.HTTPError as error:
        return fail(f"the server refuses: {error.code} {error.reason}")
    except OSError as error:
        return fail(f"the server is gone, so the episode has ended: {error}")
    except (ValueError, KeyError) as error:
        return fail(f"no verdict: {error}")
    print("\n".join(each.get("text", "") for each in answer["content"]))  # noqa: T201
    if answer.get("isError"):
        return 2
    verdict = answer["structuredContent"]
    if len(sys.argv) == 3:
        rewards = {"reward": verdict["score"], "speedup": verdict["speedup"] or 0.0}
        Path(sys.argv[2]).write_text(json.dumps(rewards), encoding="utf-8")
    return 0 if verdict["category"] == "correct" else 1


def start(url: str, token: str, problem: str) -> tuple[dict, dict]:
    """Starts an episode of its own: the headers of its requests, and its task."""
    headers = {"Authorization": f"Bearer {token}"}
    client = {"name": "check", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    with post(url, headers, {"id": 1, "method": "initialize", "params": hello}) as answer:
        headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
    post(url, headers, {"method": "notifications/initialized"}).close()
    task = use(url, headers, "get_problem", {"problem_id": problem})
    if task.get("isError"):
        raise ValueError(task["content"][0]["text"])
    return headers, task["structuredContent"]


def use(url: str, headers: dict, tool: str, arguments: dict) -> dict:
    """The result of a tool; what happens until then goes to stderr."""
    asked = {"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}}
    said = ""
    with post(url, headers, {"id": 1, "method": "tools/call", "params": asked}) as lines:
        for line in lines:
            message = json.loads(line[5:]) if line.startswith(b"data:") and line[5:].strip() else {}
            if "result" in message:
                return message["result"]
            if "error" in message:
                raise ValueError(message["error"]["message"])
            doing = message.get("params", {}).get("message", said)
            if doing != said:
                print(f"{doing} ...", file=sys.stderr)  # noqa: T201
            said = doing
    raise ValueError("the connection broke; run the same command again")


def post(url: str, headers: dict, message: dict):
    """The answer to a message of JSON-RPC, as it arrives."""
    accept = "application/json, text/event-stream"
    more = {"Content-Type": "application/json", "Accept": accept}
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return direct.open(urllib.request.Request(url, body, headers | more))


def fail(text: str) -> int:
    """Prints an error."""
    print(text, file=sys.stderr)  # noqa: T201
    return 2


if __name__ == "__main__":
    sys.exit(main())
