"""A judge pool on a Ray cluster. Imports no torch; needs the extra `ray`.

    RayPool in each client  ->  Dispatcher, one actor  ->  JudgeActor, one per GPU, placed by Ray

The dispatcher queues requests, and each judge takes as many as it has room for. A judge is a
`LocalPool` of one device, so both sides of a measurement run there. When a node is lost, its
requests go to other judges, and Ray starts its judge elsewhere. All judges of a pool are of one
type of device.
"""

import faulthandler
import functools
import logging
import os
import socket
import threading
import urllib.parse
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import ray
from pydantic import Field, ValidationError
from ray._private import worker
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from kevin_env.judge.api import DeviceInfo, JudgeError, OnStage
from kevin_env.judge.protocol import Answer, Request, value_of
from kevin_env.outcome import Frozen
from kevin_env.pools.base import RequestPool
from kevin_env.pools.local import TRIES, LocalPool
from kevin_env.pools.ray_actors import Dispatcher, JudgeActor, cancel

CALLS = 10_000
"""Requests that an actor takes at a time, those that wait included."""
CONNECT_SECONDS = 10.0


class RaySettings(Frozen):
    """What a client wants of a cluster. The first client decides on the judges."""

    judges: int | None = Field(default=None, ge=1)
    """Number of judges; by default one per GPU that is free, or on CPUs one per node.

    Ray waits for that many GPUs, or adds nodes if it may.
    """
    accelerator: str = ""
    """Ray's accelerator type, such as `H100`; needed if the cluster has GPUs of several types."""
    in_flight: int | None = Field(default=None, ge=1)
    """Requests that a judge has at a time; by default one more than it works on."""

    @classmethod
    def of(cls, pool: str) -> "RaySettings":
        """Reads `ray`, or such as `ray?judges=8&accelerator=H100`.

        Raises:
            ValueError: if a setting is unknown or out of its range.
        """
        try:
            given = urllib.parse.parse_qsl(pool.partition("?")[2], keep_blank_values=True)
            if len(dict(given)) < len(given):
                raise ValueError(f"pool is {pool!r}; give each setting once")
            return cls.model_validate(dict(given))
        except ValidationError as error:
            wrong = error.errors()[0]
            named = f"{wrong['loc'][0]}: {wrong['msg']}"
            known = ", ".join(cls.model_fields)
            raise ValueError(f"pool is {pool!r}: {named}; its settings are {known}") from error


class RayPool(RequestPool):
    """The judges of a Ray cluster. Safe to use from many threads. It reports no stages.

    Unless the process has connected to Ray, it does so when first used, as `ray.init()`. All
    clients in a Ray namespace, by default that of their job, share the judges. These end with the
    client that came first; another one starts them again and sends its requests again.

    Args:
        settings: What it wants of the cluster.
        open_judge: Opens the judge of a device, `cpu` or `cuda:0`, on a node.
    """

    public = True

    def __init__(
        self,
        settings: RaySettings | None = None,
        open_judge: Callable[[str], RequestPool] | None = None,
    ) -> None:
        super().__init__()
        self._refusal = ""
        """Why it takes no requests."""
        self._settings = settings or RaySettings()
        self._open_judge = open_judge or _open_local
        self._dispatchers: dict[str, Any] = {}
        self._opening = threading.Lock()
        self._open = dict[Future[Any], Any]()
        """What is under way, with Ray's reference to the call."""

    def device(self, name: str = "auto") -> DeviceInfo:
        """See `RequestPool.device`. Waits until a judge has started."""
        try:
            return ray.get(self._dispatcher(name).device.remote())
        except RayTaskError as error:
            raise JudgeError(str(error.cause)) from error
        except RayError as error:
            raise JudgeError(f"a request to the Ray cluster failed: {error}") from error

    def devices(self, choice: str) -> tuple[DeviceInfo, ...]:
        """The one type of device that all judges have."""
        return (self.device(choice),)

    def close(self) -> None:
        """Fails what is still open. If it came first, the judges end."""
        self._refusal = self._refusal or "the pool is closed"
        for future, call in list(self._open.items()):
            self._fail(future, JudgeError(self._refusal))
            cancel(call)
        self._dispatchers.clear()

    def _after_fork(self) -> None:
        super()._after_fork()
        self._refusal = "Ray does not work in a forked process: use multiprocessing's spawn"

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process it is a client of the same judges."""
        return RayPool, (self._settings, self._open_judge)

    def _send(self, request: Request, future: Future[Any], on_stage: OnStage | None) -> None:
        self._open[future] = None
        future.add_done_callback(self._ended)
        self._settle_later(future, lambda: value_of(self._answer(request, future)))

    def _ended(self, future: Future[Any]) -> None:
        call = self._open.pop(future, None)
        if future.cancelled():
            cancel(call)

    def _answer(self, request: Request, future: Future[Any]) -> Answer:
        """By the dispatcher; if that is lost, by the next one."""
        dispatcher = None
        for _ in range(TRIES):
            dispatcher = self._dispatcher(request["options"]["device"], dispatcher)
            call = dispatcher.ask.remote(request)
            if future in self._open:
                self._open[future] = call
            if future.done():  # meanwhile
                cancel(call)
            if (answer := _answer_of(call)) is not None:
                return answer
        return {"judge_error": f"{TRIES} dispatchers were lost while handling this"}

    def _dispatcher(self, device: str, lost: Any = None) -> Any:
        """The dispatcher for a kind of device; a new one in place of `lost`."""
        with self._opening:
            if self._refusal:
                raise JudgeError(self._refusal)
            if self._dispatchers.get(device) is lost:
                self._dispatchers[device] = self._opened(device)
            return self._dispatchers[device]

    def _opened(self, device: str) -> Any:
        if not ray.is_initialized():
            join_cluster()
        kind = _kind(device)
        count, placing = _placement(kind, self._settings)
        name = "cuda:0" if kind == "cuda" else "cpu"
        start = functools.partial(_start, placing, name, self._open_judge, self._settings.in_flight)
        # a node that is lost takes this client along, and with it the judges
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        options = {
            "name": f"kevin-env-judges-{kind}-{self._settings.accelerator}", "get_if_exists": True,
            "num_cpus": 0, "max_concurrency": CALLS, "max_restarts": -1, "max_task_retries": -1,
            "scheduling_strategy": here,
        }  # fmt: skip
        return ray.remote(Dispatcher).options(**options).remote(start, count)


def _answer_of(call: Any) -> Answer | None:
    """The answer of a dispatcher; None if it is lost."""
    try:
        return ray.get(call)
    except RayError as error:
        error.__traceback__ = None  # a frame of Ray's has the error: the cycle keeps actors alive
        if isinstance(error, RayActorError):
            return None
        return {"judge_error": f"a request to the Ray cluster failed: {error}"}


def join_cluster() -> None:
    """Connects to the cluster that `RAY_ADDRESS` names, or one on this machine.

    Ray then prints nothing, not even when a node is lost: its messages are in its own logs.

    Raises:
        JudgeError: if there is none.
    """
    address = os.environ.get("RAY_ADDRESS", "")
    host, _, port = address.rpartition("/")[2].rpartition(":")
    try:
        if port.isdecimal():  # Ray itself tries for minutes
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        if not faulthandler.is_enabled():  # Ray would use sys.stderr, which a screen may replace
            faulthandler.enable(2, all_threads=False)
        ray.init(log_to_driver=False, logging_level=logging.ERROR)
        # whatever log_to_driver is, Ray prints errors of the cluster to stdout
        worker._worker_logs_enabled = False
    except (OSError, ValueError) as error:
        where = f" at RAY_ADDRESS={address}" if address else ""
        raise JudgeError(f"no Ray cluster{where}: {error}") from error


def _start(
    placing: dict[str, Any], device: str, open_judge: Callable[[str], RequestPool], room: int | None
) -> Any:
    return ray.remote(JudgeActor).options(**placing).remote(device, open_judge, room)


def _open_local(device: str) -> RequestPool:
    return LocalPool()


def _kind(device: str) -> str:
    """`cuda` or `cpu`."""
    if device not in ("auto", "cuda", "cpu"):
        raise JudgeError(f"the device is {device}, but Ray places judges: use auto, cuda or cpu")
    return device if device != "auto" else "cuda" if "GPU" in ray.cluster_resources() else "cpu"


def _placement(kind: str, settings: RaySettings) -> tuple[int, dict[str, Any]]:
    """How many judges, and Ray's options for their actors.

    Raises:
        JudgeError: if the cluster has no such device, or several types of them.
    """
    placing: dict[str, Any] = {
        "num_cpus": 1, "max_restarts": -1, "max_concurrency": CALLS, "scheduling_strategy": "SPREAD"
    }  # fmt: skip
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if kind == "cpu" and settings.accelerator:
        text = f"the pool asks for {settings.accelerator}, but kernels would be judged on a CPU"
        raise JudgeError(f"{text}: this Ray cluster has no GPU, or the device is cpu")
    if kind == "cpu":
        return settings.judges or max(1, sum("CPU" in node for node in nodes)), placing
    gpus, chosen = Counter[str](), settings.accelerator
    for node in nodes:
        types = [name.partition(":")[2] for name in node if name.startswith("accelerator_type:")]
        gpus[(types or ["GPU"])[0]] += int(node.get("GPU", 0))
    gpus = +gpus
    if len(gpus) > 1 and not chosen:
        types = " and ".join(sorted(gpus))
        raise JudgeError(f"this cluster has {types}: choose, as pool='ray?accelerator={min(gpus)}'")
    count = gpus[chosen] if chosen else gpus.total()
    if not count and not settings.judges:
        raise JudgeError(f"this Ray cluster has no {chosen or 'GPU'}")
    free = int(ray.available_resources().get("GPU", 0))
    placing |= {"num_gpus": 1} | ({"accelerator_type": chosen} if chosen else {})
    return settings.judges or max(1, min(count, free)), placing
