#!/usr/bin/env python3
"""Has a kernel file judged, and prints the verdict: `./check kernel.py`.

Exit code 0 if the kernel is correct, 1 if not, 2 if there is no verdict. The verdict is made by the
server that `.mcp.json` names; this file only sends and prints. A second argument names a file for
the score, in JSON.
"""

import http.client
import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

TOKEN = "KEVIN_ENV_MCP_TOKEN"
"""The environment variable with the token of a server whose settings have none."""
LONGEST = 1 << 20
"""Characters of a file; the server takes no more."""
EACH_SECONDS = 10.0
"""Between two lines about the same thing."""


def main() -> int:
    """Submits the file that the command line names."""
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        return fail("usage: ./check kernel.py")
    file = Path(sys.argv[1])
    try:
        code = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        return fail(f"cannot read {file}: {error}")
    if len(code) > LONGEST:
        return fail(f"{file} has {len(code):,} characters; the limit is {LONGEST:,}")
    try:
        settings = json.loads(Path(__file__).with_name(".mcp.json").read_text(encoding="utf-8"))
        server = settings["mcpServers"]["kevin-env"]
        url, headers, problem = server["url"], server["headers"], settings.get("problem")
    except (OSError, ValueError, LookupError, TypeError) as error:
        return fail(f"cannot read .mcp.json, which is beside this command: {error!r}")
    try:
        answer = judged(url, headers, problem, code)
        print("\n".join(each.get("text", "") for each in answer["content"]), flush=True)  # noqa: T201
        if answer.get("isError"):
            return 2
        verdict = answer["structuredContent"]
        if len(sys.argv) == 3:
            rewards = {"reward": verdict["score"], "speedup": verdict["speedup"] or 0.0}
            Path(sys.argv[2]).write_text(json.dumps(rewards), encoding="utf-8")
        return 0 if verdict["category"] == "correct" else 1
    except urllib.error.HTTPError as error:
        full = "all of its sessions are taken; try again later"
        why = full if error.code == 503 else f"{error.code} {error.reason}"
        return fail(f"the server refuses: {why}")
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            return fail("the server is gone, so the episode has ended")
        return fail(f"no verdict: {error.reason}; run the same command again")
    except (OSError, http.client.HTTPException) as error:
        return fail(f"no verdict: {error}; run the same command again")
    except (ValueError, LookupError, TypeError) as error:
        return fail(f"no verdict: {error}")
    except KeyboardInterrupt:
        return fail("interrupted; run the same command again to see the verdict")


def judged(url: str, headers: dict, problem: "str | None", code: str) -> dict:
    """The result for a file, in the episode of the headers or in one of its own."""
    if problem is None:
        return use(url, headers, "submit_kernel", {"code": code})
    headers, _ = start(url, os.environ.get(TOKEN, ""), problem)
    try:
        return use(url, headers, "submit_kernel", {"code": code})
    finally:
        end(url, headers)


def start(url: str, token: str, problem: str) -> tuple[dict, dict]:
    """Starts an episode of its own: the headers of its requests, and its task."""
    headers = {"Authorization": f"Bearer {token}"}
    client = {"name": "check", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    with post(url, headers, {"id": 1, "method": "initialize", "params": hello}) as answer:
        headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
    try:
        post(url, headers, {"method": "notifications/initialized"}).close()
        task = use(url, headers, "get_problem", {"problem_id": problem})
        if task.get("isError"):
            raise ValueError(task["content"][0]["text"])
    except BaseException:
        end(url, headers)
        raise
    return headers, task["structuredContent"]


def end(url: str, headers: dict) -> None:
    """Ends an episode that `start` began, so that the server has room for another."""
    try:
        request = urllib.request.Request(url, None, headers, method="DELETE")
        direct().open(request).close()
    except (OSError, http.client.HTTPException):  # it ends by itself later
        pass


def use(url: str, headers: dict, tool: str, arguments: dict) -> dict:
    """The result of a tool; what happens until then goes to stderr."""
    asked = {"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}}
    said, due = "", 0.0
    with post(url, headers, {"id": 1, "method": "tools/call", "params": asked}) as lines:
        for line in lines:
            message = json.loads(line[5:]) if line.startswith(b"data:") and line[5:].strip() else {}
            if "result" in message:
                return message["result"]
            if "error" in message:
                raise ValueError(message["error"]["message"])
            told = message.get("params", {})
            doing, seconds = told.get("message", said), told.get("progress", 0.0)
            if doing != said or seconds >= due > 0:
                print(f"{doing} ... {seconds:.0f} s", file=sys.stderr)  # noqa: T201
                said, due = doing, seconds + EACH_SECONDS
    raise ValueError("the connection broke; run the same command again")


def post(url: str, headers: dict, message: dict):
    """The answer to a message of JSON-RPC, as it arrives."""
    accept = "application/json, text/event-stream"
    more = {"Content-Type": "application/json", "Accept": accept}
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return direct().open(urllib.request.Request(url, body, headers | more))


def direct() -> urllib.request.OpenerDirector:
    """Opens addresses without a proxy."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def fail(text: str) -> int:
    """Prints an error."""
    print(text, file=sys.stderr)  # noqa: T201
    return 2


if __name__ == "__main__":
    sys.exit(main())
