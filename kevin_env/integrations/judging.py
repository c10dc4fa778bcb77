"""What the adapters share: the judges of this process, retries, and thread-safe tokenizers."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import wait
from typing import ParamSpec, TypeVar

from kevin_env.context import TokenCounter
from kevin_env.episode import Episode
from kevin_env.judge.api import JudgeError, JudgePool
from kevin_env.pools.http import connect
from kevin_env.record import Reply, Turn

_SHARED = dict[str | None, JudgePool]()
_TOKENIZERS = threading.Lock()


def process_pool(pool: JudgePool | str | None = None) -> JudgePool:
    """A pool as it is, or one that is shared within this process and closed when it exits.

    Every process opens its own, so that adapters without a pool can be pickled.

    Args:
        pool: also the URL of a judge server; None is as for `connect`.
    """
    if pool is not None and not isinstance(pool, str):
        return pool
    # several threads may need the first one; a lock could stay held in a forked process
    return _SHARED.get(pool) or _SHARED.setdefault(pool, connect(pool))


def submit(episode: Episode, reply: Reply | str) -> Turn:
    """Judges a reply and waits for its turn.

    Raises:
        JudgeError: if the judge fails twice. The turn has not happened.
        EpisodeError: as `Episode.submit`.
    """
    try:
        return episode.submit(reply)
    except JudgeError:
        return episode.submit(reply)


async def submit_async(episode: Episode, reply: Reply | str) -> Turn:
    """`submit` for code that runs in an event loop."""
    try:
        return await asyncio.wrap_future(episode.submit_later(reply))
    except JudgeError:
        return await asyncio.wrap_future(episode.submit_later(reply))


def submit_all(replies: Mapping[Episode, Reply]) -> list[Episode]:
    """Judges one reply of each episode, all at the same time, and waits for their turns.

    Returns:
        The episodes without their turn, because the judge failed twice.

    Raises:
        ProblemError: if a problem's reference fails.
    """
    failed = _submit_once(replies, replies)
    return _submit_once(failed, replies)


def _submit_once(episodes: Iterable[Episode], replies: Mapping[Episode, Reply]) -> list[Episode]:
    futures = {episode: episode.submit_later(replies[episode]) for episode in episodes}
    wait(futures.values())
    errors = {
        episode: error for episode, future in futures.items() if (error := future.exception())
    }
    for error in errors.values():
        if not isinstance(error, JudgeError):
            raise error
    return list(errors)


A = TypeVar("A")
P = ParamSpec("P")


def one_at_a_time(function: Callable[P, A], *args: P.args, **kwargs: P.kwargs) -> A:
    """Calls a function that uses a tokenizer, one at a time in this process.

    Those of Hugging Face fail ("Already borrowed") when one thread uses them while another changes
    their settings, which even encoding does.
    """
    with _TOKENIZERS:
        return function(*args, **kwargs)


def token_counter(encode: Callable[[str], Sequence[int]]) -> TokenCounter:
    """Counts by `encode`."""
    return lambda text: len(one_at_a_time(encode, text))
