"""Judges without a device for `test_ray_pool`, in the processes of Ray's actors."""

import os
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray

from kevin_env.judge import JudgeError, Judgement
from kevin_env.judge.api import DeviceInfo, OnStage, Sandbox, Seconds
from kevin_env.judge.protocol import Request
from kevin_env.outcome import Correct
from kevin_env.pools.base import RequestPool, fail, wanted
from kevin_env.problem import ProblemError

HELD = Sandbox(network="enforced", filesystem="enforced", limits="enforced", processes="enforced")


class Double(RequestPool):
    """Does what the code of a submission says: `sleep 2`, `fail`, `problem`, or nothing. With a
    path behind it, `sleep 2 PATH`, it makes that file when it begins.

    Its device has its process, and its versions the process and the node.
    A judgement's `secret` has its place among all that this judge began, and its log the most
    that it had at a time.
    """

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device
        self._began = self._now = self._most = 0
        self._lock = threading.Lock()

    def device(self, name: str = "auto") -> DeviceInfo:
        assert name == self._device
        node = ray.get_runtime_context().get_node_id()
        gpus = ",".join(map(str, ray.get_gpu_ids()))
        versions = {"node": node, "process": str(os.getpid()), "gpus": gpus}
        return DeviceInfo(device=name, name="double", versions=versions)

    def _send(self, request: Request, future: Future[Any], on_stage: OnStage | None) -> None:
        with self._lock:
            self._began += 1
            self._now += 1
            self._most = max(self._most, self._now)
            judge = threading.Thread(target=self._judge, args=(request, future, self._began))
        judge.start()

    def _judge(self, request: Request, future: Future[Any], number: int) -> None:
        word, seconds, path, *_ = [*request["submission"]["code"].split(), "", "", ""]
        if path:
            with suppress(FileNotFoundError):  # it is judged again, and nobody waits for that
                Path(path).touch()
        end = time.monotonic() + float(seconds or 0)
        while time.monotonic() < end and not future.cancelled():
            time.sleep(0.01)
        with self._lock:
            self._now -= 1
        if word in ERRORS:
            fail(future, ERRORS[word]("as the code says"))
        elif wanted(future):
            future.set_result(Judgement(
                outcome=Correct(kind="timed", message="", speedup=2.0), seconds=Seconds(), sandbox=HELD,
                device=self.device(self._device), secret=str(number), log=str(self._most),
            ))  # fmt: skip

    def close(self) -> None:
        pass


ERRORS = {"fail": JudgeError, "problem": ProblemError}


class Broken(Double):
    def device(self, name: str = "auto") -> DeviceInfo:
        raise JudgeError("no torch here")


class Unlike(Double):
    """Each has another device."""

    def device(self, name: str = "auto") -> DeviceInfo:
        info = super().device(name)
        return info.model_copy(update={"name": info.versions["process"]})
