"""A headless Chromium, spoken to through the two pipes of its debugging protocol: no driver and no
port is needed.
"""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


needs_browser = pytest.mark.skipif(
    find_browser() is None, reason="there is no chromium; apt install chromium"
)


class Page:
    """One page. What it asked the network for is in `requests`, what went wrong in it in `errors`."""

    def __init__(self, browser: str, profile: Path, url: str, dark: bool = False) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        self._process = subprocess.Popen(
            [
                browser, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                f"--user-data-dir={profile}",
            ],
            stderr=subprocess.DEVNULL,
            pass_fds=(3, 4),
            preexec_fn=lambda: (os.dup2(os.dup(to_read), 3), os.dup2(os.dup(to_write), 4)),
        )  # fmt: skip
        self._count, self._rest, self._session = 0, b"", None
        self.requests: list[str] = []
        self.errors: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self.visit(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def visit(self, url: str) -> None:
        self._call("Page.navigate", url=url)
        self.value(
            "new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))"
        )

    def value(self, expression: str) -> Any:
        got = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self._call(
                "Input.dispatchKeyEvent", type=kind, key=key, **(text if kind == "keyDown" else {})
            )

    def awaited(self, expression: str) -> Any:
        """The first value of an expression that is true, while pages come and go."""
        for _ in range(100):
            with contextlib.suppress(AssertionError):
                if found := self.value(expression):
                    return found
            time.sleep(0.05)
        raise AssertionError(f"never true: {expression}")

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height}
        self._call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)

    def picture(self) -> bytes:
        """What is seen, as PNG."""
        return base64.b64decode(self._call("Page.captureScreenshot")["data"])

    def _call(self, method: str, **parameters: Any) -> Any:
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        values = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.errors.append(str(values))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._read, 1 << 20)
            assert data, "the browser went away"
            self._rest += data
        line, self._rest = self._rest.split(b"\0", 1)
        return json.loads(line)
