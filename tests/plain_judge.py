"""A judge process that imports no torch: it speaks the pool's protocol and judges by what the code
says.

`hold` is under way until the request comes again; anything else ends at once. Facts of a problem
that is `held for` the client are never found.
"""

import os
import sys
import threading
import time
from socket import socket
from typing import Any

from kevin_env.candidate.wire import Channel, Closed
from kevin_env.judge.api import Facts, Judgement, Sandbox, Seconds
from kevin_env.outcome import FormatError
from kevin_env.pools.scripted import SCRIPTED_CPU

PROGRAM = (__file__,)
"""For `Remote(program=...)`."""
FATAL = (__file__, "fatal")
"""As `PROGRAM`, of a judge that does not start."""
SILENT = ("-c", "import threading; threading.Event().wait()")
"""As `PROGRAM`, of one that is never ready."""
OUTCOME = FormatError(kind="no_code", message="from the judge without torch")
FACTS = Facts(
    device=SCRIPTED_CPU, cases=(), distributions=(), tolerance="any", precision="ieee", weights=()
)
PROTECTED = Sandbox(
    network="enforced", filesystem="enforced", limits="enforced", processes="enforced"
)


def serve(channel: Channel) -> None:
    """Answers until the client hangs up."""
    hello, lock = channel.receive(), threading.Lock()

    def send(message: dict[str, Any]) -> None:
        with lock:
            channel.send(message)

    def beat() -> None:
        while True:
            send({"beat": True})
            time.sleep(hello["beat"])

    if sys.argv[1] == "fatal":
        return send({"fatal": "no such device here"})
    send({"device": SCRIPTED_CPU.model_dump()})
    threading.Thread(target=beat, daemon=True).start()
    while True:
        request = channel.receive()
        if request["do"] == "describe":
            if request["problem"]["source"] != f"held for {sys.argv[-1]}":
                send({"id": request["id"], "facts": FACTS.model_dump(mode="json")})
            continue
        send({"id": request["id"], "stage": "build"})
        if request["submission"]["code"] != "hold" or request["alone"]:
            judgement = Judgement(
                outcome=OUTCOME, seconds=Seconds(), device=SCRIPTED_CPU, sandbox=PROTECTED,
                secret="0",
            )  # fmt: skip
            send({"id": request["id"], "judgement": judgement.model_dump(mode="json")})


if __name__ == "__main__":
    try:
        serve(Channel(socket(fileno=int(sys.argv[-2]))))
    except Closed:
        os._exit(0)
