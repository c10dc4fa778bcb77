"""The Ray actors of `RayPool`: judges, and the dispatcher that gives them requests."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from kevin_env.judge.api import DeviceInfo, JudgeError
from kevin_env.judge.capacity import capacity_of, machine_of
from kevin_env.judge.protocol import Answer, Request, answer_of, prepare
from kevin_env.pools.base import RequestPool
from kevin_env.pools.local import REST, TRIES

FACTS = 4
"""Requests for facts that a judge has at a time, so that a prompt does not wait for judgements."""
RETRY_SECONDS = 1.0


@dataclass(eq=False)
class _Job:
    """A request, and its answer once there is one.

    Attributes:
        losses: Judges that were lost while they had it.
    """

    request: Request
    answer: "asyncio.Future[Answer]"
    losses: int = 0


@dataclass
class _Queues:
    """What waits for a judge."""

    facts: "asyncio.Queue[_Job]" = field(default_factory=asyncio.Queue)
    rest: "asyncio.Queue[_Job]" = field(default_factory=asyncio.Queue)


class Dispatcher:
    """An actor that gives requests to judges. It holds the judges, which end with it.

    Args:
        start: Starts the actor of a judge.
        count: Number of judges.
    """

    def __init__(self, start: Callable[[], Any], count: int) -> None:
        _undo_niceness()
        self._start, self._count = start, count
        self._queues = _Queues()
        self._running = set[asyncio.Task[None]]()
        self._open: dict[str, asyncio.Future[Answer]] = {}
        """By the IDs of requests, so that one that is sent again is not judged twice."""
        self._info: DeviceInfo | None = None
        self._errors: dict[int, str] = {}
        """Of the judges that do not start, why."""
        self._changed = asyncio.Event()
        """Set when a judge has started, or none does."""

    async def device(self) -> DeviceInfo:
        """The device of a judge, once one has started.

        Raises:
            JudgeError: if none starts.
        """
        self._have_judges()
        await self._changed.wait()
        if self._info is None:
            raise JudgeError(self._errors[0])
        return self._info

    async def ask(self, request: Request) -> Answer:
        """The answer of a judge."""
        self._have_judges()
        if len(self._errors) == self._count:
            return {"judge_error": self._errors[0]}
        number = request["id"]
        if number not in self._open:
            answer = self._open[number] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(lambda _: self._open.pop(number))
            facts = request["do"] == "describe"
            (self._queues.facts if facts else self._queues.rest).put_nowait(_Job(request, answer))
        return await self._open[number]

    def _have_judges(self) -> None:
        """Starts them with the first request; `__init__` has no event loop."""
        if not self._running:
            for number in range(self._count):
                self._running.add(asyncio.ensure_future(self._run(number, self._start())))

    async def _run(self, number: int, actor: Any) -> None:
        """Has one judge work, and again after Ray has started it elsewhere."""
        while True:
            try:
                info, room = await actor.start.remote()
                self._require_alike(info)
                self._info = info
                self._errors.pop(number, None)
                self._changed.set()
                async with asyncio.TaskGroup() as workers:
                    for queue, many in ((self._queues.facts, FACTS), (self._queues.rest, room)):
                        for _ in range(many):
                            workers.create_task(_work(actor, queue))
            except (RayActorError, ExceptionGroup):  # its node is lost
                await asyncio.sleep(RETRY_SECONDS)
            except (RayTaskError, JudgeError) as error:
                self._leave_out(number, str(getattr(error, "cause", error)))
                await asyncio.sleep(REST)

    def _require_alike(self, info: DeviceInfo) -> None:
        if self._info is not None and self._info.name != info.name:
            text = f"it has {info.name}, others {self._info.name}: choose an accelerator"
            raise JudgeError(text)

    def _leave_out(self, number: int, error: str) -> None:
        """Notes why a judge does not start. If none does, what waits fails with that."""
        self._errors[number] = error
        if len(self._errors) == self._count:
            self._changed.set()
            for answer in [each for each in self._open.values() if not each.done()]:
                answer.set_result({"judge_error": error})


async def _work(actor: Any, queue: "asyncio.Queue[_Job]") -> None:
    """Gives requests to a judge, one after the other.

    Raises:
        RayActorError: if the judge is lost; what it had waits again.
    """
    while True:
        job = await queue.get()
        if job.answer.done():  # it was cancelled
            continue
        call = actor.ask.remote(job.request)
        job.answer.add_done_callback(lambda done, call=call: done.cancelled() and cancel(call))
        try:
            answer = await call
        except (RayActorError, asyncio.CancelledError) as error:
            job.losses += 1
            if job.losses < TRIES:
                queue.put_nowait(job)
            elif not job.answer.done():
                text = f"{TRIES} judges were lost while judging this: {error}"
                job.answer.set_result({"judge_error": text})
            raise
        except RayError as error:  # it was cancelled, or cannot be read
            answer = {"judge_error": f"a judge gave no answer: {error}"}
        if not job.answer.done():
            job.answer.set_result(answer)
        if "judge_error" in answer:  # one that fails answers quickly, and would get every request
            await asyncio.sleep(RETRY_SECONDS)


def cancel(call: Any) -> None:
    """Cancels a call of Ray, if there is one."""
    if call is not None:
        with suppress(Exception):  # the cluster may be gone
            ray.cancel(call)


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
        options = request["options"] | {"device": self._device}
        future = prepare(request | {"options": options})(self._pool, None)
        self._open.add(future)
        try:
            with suppress(Exception):  # `answer_of` reads it
                await asyncio.wrap_future(future)
        finally:
            self._open.discard(future)
        return answer_of(future.result)


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
