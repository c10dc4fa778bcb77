#!/usr/bin/env python3
"""Has a kernel file judged, and prints the verdict: `./check kernel.py`.

Exit code 0 if the kernel is correct, 1 if not, 2 if there is no verdict. The verdict is made by the
server that `.mcp.json` names; this file only sends and prints.
"""

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


def main() -> int:
    """Submits the file that the command line names."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        return fail("usage: ./check kernel.py")
    try:
        code = Path(sys.argv[1]).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        return fail(f"cannot read {sys.argv[1]}: {error}")
    try:
        settings = json.loads(Path(__file__).with_name(".mcp.json").read_text(encoding="utf-8"))
        server = settings["mcpServers"]["kevin-env"]
        answer = submit(server["url"], server["headers"], code)
    except urllib.error.HTTPError as error:
        return fail(f"the server refuses: {error.code} {error.reason}")
    except OSError as error:
        return fail(f"the server is gone, so the episode has ended: {error}")
    except (ValueError, KeyError) as error:
        return fail(f"no verdict: {error}")
    print("\n".join(each.get("text", "") for each in answer["content"]))  # noqa: T201
    if answer.get("isError"):
        return 2
    return 0 if answer["structuredContent"]["category"] == "correct" else 1


def submit(url: str, headers: dict, code: str) -> dict:
    """The result of the tool; what happens until then goes to stderr."""
    asked = {"name": "submit_kernel", "arguments": {"code": code}, "_meta": {"progressToken": 1}}
    request = urllib.request.Request(
        url,
        json.dumps({**CALL, "params": asked}).encode(),
        {
            **headers,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        },
    )
    said = ""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request) as lines:
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


def fail(text: str) -> int:
    """Prints an error."""
    print(text, file=sys.stderr)  # noqa: T201
    return 2


if __name__ == "__main__":
    sys.exit(main())
