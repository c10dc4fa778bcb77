"""Many sessions at once over one pool: none is mixed up with another, none is lost."""

import asyncio
import threading
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("openenv")

from episodes import another, correct
from openenv_server import serving

from kevin_env.integrations.openenv import KernelAction, KernelEnv, KernelObservation
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import problem_paths

SESSIONS, TURNS = 32, 4
IDS = list(problem_paths())


def number_of(code: str) -> int:
    return int(code.partition("num_warps=")[2].partition(")")[0])


class Judges:
    """Verdicts that tell whose submission it was, slow enough for all sessions to be judged at the
    same time.
    """

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()
        self._many = threading.Event()

    def __call__(self, problem: Any, submission: Any) -> Any:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now > SESSIONS // 2:
                self._many.set()
        self._many.wait(60)
        with self._lock:
            self.now -= 1
        number = number_of(submission.code)
        assert problem.id == IDS[number // 10]
        return correct(1 + number / 100)


async def play(url: str, session: int) -> list[KernelObservation]:
    async with KernelEnv(base_url=url) as env:
        result = await env.reset(problem_id=IDS[session], episode_id=f"session {session}")
        seen = [result.observation]
        for turn in range(TURNS):
            result = await env.step(KernelAction(code=another(10 * session + turn)))
            seen.append(result.observation)
            assert (await env.state()).episode_id == f"session {session}"
        assert result.done
        return seen


async def play_all(url: str) -> list[list[KernelObservation]]:
    return await asyncio.gather(*(play(url, session) for session in range(SESSIONS)))


def test_32_sessions_at_once() -> None:
    judges = Judges()
    with closing(ScriptedPool(judges, workers=SESSIONS)) as pool, serving(pool) as url:
        played = asyncio.run(play_all(url))
    assert len(played) == SESSIONS and len(pool.submissions) == SESSIONS * TURNS
    for session, seen in enumerate(played):
        speedups = [1 + (10 * session + turn) / 100 for turn in range(TURNS)]
        assert {each.problem_id for each in seen} == {IDS[session]}
        assert [each.turn for each in seen] == list(range(TURNS + 1))
        assert [each.speedup for each in seen[1:]] == speedups
        assert seen[-1].turn_scores == pytest.approx([0.3 + speedup for speedup in speedups])
        assert f"num_warps={10 * session + 2}" in seen[-1].messages[-1]["content"]
    assert judges.most > SESSIONS // 2
