"""The Ray actors of `RayPool`: judges, and the dispatcher that gives them requests."""

import asyncio
import heapq
import itertools
import logging
import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError
from ray.util.metrics import Counter, Gauge, Histogram

from kevin_env.judge.api import DeviceInfo, JudgeError, OnStage
from kevin_env.judge.capacity import capacity_of, machine_of
from kevin_env.judge.protocol import Answer, Request, RequestPool, answer_of, prepare
from kevin_env.pools.local import REST, TRIES, Balance

FACTS = 4
"""Extra requests for facts per judge, so that a prompt does not wait for judgements."""
RETRY_SECONDS = 1.0
SECONDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]
"""Bounds of the histogram of stages."""
_LOG = logging.getLogger(__name__)


@dataclass(eq=False)
class _Judge:
    """A judge as the dispatcher knows it.

    Attributes:
        room: Requests that it takes at a time; 0 until it has started.
        in_flight: Requests that it has.
        info: None until it has started for the first time.
        error: Why it did not start.
    """

    name: str
    actor: Any
    room: int = 0
    in_flight: int = 0
    info: DeviceInfo | None = None
    error: str = ""


class Dispatcher:
    """An actor that gives requests to judges. It holds the judges, which end with it.

    Args:
        start: Starts the actor of a judge.
        count: Number of judges.
    """

    def __init__(self, start: Callable[[], Any], count: int) -> None:
        _undo_niceness()
        self._start, self._count = start, count
        self._judges: list[_Judge] = []
        self._starting = set[asyncio.Task[None]]()
        self._waiting: list[tuple[float, int, str, asyncio.Future[_Judge]]] = []
        """A heap: the highest priority, and among equals the first, is at the top."""
        self._numbers = itertools.count()
        self._open: dict[str, asyncio.Task[Answer]] = {}
        """By the IDs of requests, so that one that is sent again is not judged twice."""
        self._balance = Balance()
        self._metrics = _Metrics()

    async def device(self) -> DeviceInfo:
        """The device of a judge, once one has started.

        Raises:
            JudgeError: if none starts.
        """
        judge = await self._place(self._rank(-math.inf), "")
        self._release(judge)
        assert judge.info is not None
        return judge.info

    async def ask(self, request: Request, priority: int) -> Answer:
        """The answer of a judge."""
        return await self._answer_once(request, priority, None)

    async def watch(self, request: Request, priority: int) -> AsyncIterator[str | Answer]:
        """As `ask`, after each stage when it begins."""
        async for part in _watched(lambda report: self._answer_once(request, priority, report)):
            yield part

    async def _answer_once(self, request: Request, priority: int, report: OnStage | None) -> Answer:
        number = request["id"]
        if number not in self._open:
            task = asyncio.ensure_future(self._answer(request, priority, report))
            self._open[number] = task
            task.add_done_callback(lambda _: self._open.pop(number))
        return await self._open[number]

    async def _answer(self, request: Request, priority: int, report: OnStage | None) -> Answer:
        """Asks a judge; if that is lost, another."""
        rank = self._rank(-math.inf if request["do"] == "describe" else -priority)
        lost = None
        for _ in range(TRIES):
            try:
                judge = await self._place(rank, request["problem"]["source"])
            except JudgeError as error:
                return {"judge_error": str(error)}
            failed = False
            try:
                answer = await answer_from(judge.actor, report, request)
                failed = "judge_error" in answer
                self._metrics.count(answer)
                return answer
            except RayActorError as error:
                lost = str(error)
                self._metrics.lost.inc()
                if judge.room:  # else it is starting already
                    self._start_later(judge)
            finally:
                self._release(judge, failed)
        return {"judge_error": f"{TRIES} judges were lost while they had this: {lost}"}

    def _rank(self, rank: float) -> tuple[float, int]:
        return rank, next(self._numbers)

    async def _place(self, rank: tuple[float, int], problem: str) -> _Judge:
        """Waits for a judge that has room; `_release` it.

        Raises:
            JudgeError: if none starts.
        """
        if not self._judges:  # not in `__init__`, which has no event loop
            self._judges = [_Judge(str(n), self._start()) for n in range(self._count)]
            for judge in self._judges:
                self._start_later(judge)
        self._require_any()
        place: asyncio.Future[_Judge] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (*rank, problem, place))
        self._assign()
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._release(place.result())
            raise

    def _release(self, judge: _Judge, failed: bool = False) -> None:
        judge.in_flight -= 1
        self._balance.done(judge.name, failed)
        self._assign()

    def _assign(self) -> None:
        """Gives judges with room to those that wait."""
        while self._waiting:
            rank, _, problem, place = self._waiting[0]
            more = FACTS if rank == -math.inf else 0
            free = {j.name: j for j in self._judges if j.room and j.in_flight < j.room + more}
            if not (free or place.done()):
                break
            heapq.heappop(self._waiting)
            if not place.done():  # else it was cancelled
                judge = free[self._balance.take(list(free), problem)]
                judge.in_flight += 1
                place.set_result(judge)
        self._metrics.watch(len(self._waiting), self._judges)

    def _start_later(self, judge: _Judge) -> None:
        judge.room = 0
        task = asyncio.ensure_future(self._started(judge))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _started(self, judge: _Judge) -> None:
        """Waits until a judge has started, also after its node was lost."""
        while not judge.room:
            try:
                info, room = await judge.actor.start.remote()
                self._require_alike(info)
                judge.info, judge.room, judge.error = info, room, ""
                self._assign()
            except RayActorError:
                await asyncio.sleep(RETRY_SECONDS)
            except (RayTaskError, JudgeError) as error:
                self._report(judge, str(getattr(error, "cause", error)))
                await asyncio.sleep(REST)

    def _require_alike(self, info: DeviceInfo) -> None:
        for known in (judge.info.name for judge in self._judges if judge.info):
            if known != info.name:
                raise JudgeError(f"it has {info.name}, others {known}: choose an accelerator")

    def _require_any(self) -> None:
        if all(judge.error for judge in self._judges):
            raise JudgeError(self._judges[0].error)

    def _report(self, judge: _Judge, error: str) -> None:
        """Logs why a judge does not start. If none does, requests fail with that."""
        if judge.error != error:
            _LOG.warning("a judge is left out: %s", error)
        judge.error = error
        try:
            self._require_any()
        except JudgeError as none:
            while self._waiting:
                *_, place = heapq.heappop(self._waiting)
                if not place.done():
                    place.set_exception(none)


class JudgeActor:
    """The judge of one device, in a process that Ray places where such a device is.

    Args:
        device: `cuda:0`, the GPU that Ray gives it, or `cpu`.
        open_judge: Opens its judge.
        room: Most concurrent requests; None for the number of slots and one more.
    """

    def __init__(
        self, device: str, open_judge: Callable[[str], RequestPool], room: int | None = None
    ) -> None:
        # Ray sets it to the CPUs that it counts for an actor; a judge uses all
        os.environ.pop("OMP_NUM_THREADS", None)
        _undo_niceness()
        self._device = device
        self._pool = open_judge(device)
        self._room = room
        self._open = set[Future[Any]]()

    @ray.method(max_task_retries=-1)
    async def start(self) -> tuple[DeviceInfo, int]:
        """Waits until it has started, and ends what it had: its device and its room.

        Raises:
            JudgeError: if it does not start.
        """
        for future in tuple(self._open):
            future.cancel()
        info = await asyncio.to_thread(self._pool.device, self._device)
        return info, self._room or _room(info)

    async def ask(self, request: Request) -> Answer:
        """Its answer."""
        return await self._answer(request, None)

    async def watch(self, request: Request) -> AsyncIterator[str | Answer]:
        """As `ask`, after each stage when it begins."""
        async for part in _watched(lambda report: self._answer(request, report)):
            yield part

    async def _answer(self, request: Request, report: OnStage | None) -> Answer:
        options = request["options"] | {"device": self._device}
        future = prepare(request | {"options": options})(self._pool, report)
        self._open.add(future)
        try:
            with suppress(Exception):  # `answer_of` reads it
                await asyncio.wrap_future(future)
        finally:
            self._open.discard(future)
        return answer_of(future.result)


class _Metrics:
    """What Ray exports to Prometheus of a dispatcher."""

    def __init__(self) -> None:
        self._waiting = Gauge("kevin_env_waiting", "Requests that wait for a judge.")
        self._in_flight = Gauge("kevin_env_in_flight", "Requests that judges have.")
        self._judges = Gauge("kevin_env_judges", "Judges that have started.")
        self.lost = Counter("kevin_env_lost", "Requests whose judge was lost.")
        self._judged = Counter(
            "kevin_env_judgements", "Judgements by their ending.", ("device", "ending")
        )
        self._seconds = Histogram(
            "kevin_env_stage_seconds", "Seconds of a stage.", SECONDS, ("device", "stage")
        )

    def watch(self, waiting: int, judges: list[_Judge]) -> None:
        """Sets how much there is to do."""
        self._waiting.set(waiting)
        self._in_flight.set(sum(each.in_flight for each in judges))
        self._judges.set(sum(each.room > 0 for each in judges))

    def count(self, answer: Answer) -> None:
        """Counts a judgement."""
        if "judge_error" in answer:
            self._judged.inc(tags={"device": "", "ending": "judge_error"})
        elif "judgement" in answer:
            judgement = answer["judgement"]
            device = judgement["device"]["name"]
            self._judged.inc(tags={"device": device, "ending": judgement["outcome"]["category"]})
            for stage, seconds in judgement["seconds"].items():
                self._seconds.observe(seconds, {"device": device, "stage": stage})


async def answer_from(actor: Any, report: OnStage | None, *arguments: Any) -> Answer:
    """The answer of an actor; cancelling it cancels the call.

    Raises:
        RayError: if the actor is lost.
    """
    call = (actor.watch if report else actor.ask).remote(*arguments)
    try:
        if report is None:
            return await call
        async for reference in call:
            part = await reference
            if isinstance(part, dict):
                return part
            report(part)
        raise JudgeError("an actor gave no answer")
    except asyncio.CancelledError:
        with suppress(Exception):  # the cluster may be gone
            ray.cancel(call)
        raise


async def _watched(answer: Callable[[OnStage], Awaitable[Answer]]) -> AsyncIterator[str | Answer]:
    """Each stage when it begins, then the answer."""
    loop, stages = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def report(stage: str) -> None:
        loop.call_soon_threadsafe(stages.put_nowait, stage)

    task = asyncio.ensure_future(answer(report))
    task.add_done_callback(lambda _: stages.put_nowait(None))
    try:
        while (stage := await stages.get()) is not None:
            yield stage
        yield await task
    finally:
        task.cancel()


def _undo_niceness() -> None:
    """Ray starts workers with a niceness of 15, at which other processes disturb times."""
    with suppress(OSError):  # only root may
        for thread in Path("/proc/self/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), 0)


def _room(info: DeviceInfo) -> int:
    """The slots of a judge, and one more, so that a request is ready when a slot becomes free."""
    on_gpu = info.device != "cpu"
    gpus = len(list(Path("/dev").glob("nvidia[0-9]*"))) if on_gpu else 1
    machine = machine_of(max(1, gpus), info.memory if on_gpu else None)
    return capacity_of(machine).slots + 1
