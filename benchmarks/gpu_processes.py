"""One process per device, which sees no other device. Used by other scripts."""

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack

import torch

from kevin_env.judge.api import device_names


def start_processes(stack: ExitStack, choice: str, each: int = 1) -> list[ProcessPoolExecutor]:
    """So many for each device of a choice such as `cuda:0,1`, where a GPU is `cuda:0`. They end
    with the stack.
    """
    names = device_names(choice)
    numbers = gpu_numbers()
    visible = [
        numbers[int(name.partition(":")[2])] if name != "cpu" else "" for name in names
    ] * each
    spawn = multiprocessing.get_context("spawn")
    return [
        stack.enter_context(ProcessPoolExecutor(1, spawn, _enter, (place, len(visible), device)))
        for place, device in enumerate(visible)
    ]


def gpu_numbers() -> list[str]:
    """The names in CUDA_VISIBLE_DEVICES of the GPUs that this process sees."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return (
        chosen.split(",")
        if chosen
        else [str(number) for number in range(torch.cuda.device_count())]
    )


def share(processors: set[int], place: int, places: int) -> set[int]:
    """One of `parts` equal shares of the CPU cores; all of them if there are fewer."""
    many = len(processors) // places
    return set(sorted(processors)[place * many : (place + 1) * many]) or processors


def _enter(place: int, places: int, visible: str) -> None:
    """Runs in the process: its one GPU, its part of the processors, and its end with its parent.

    Processors are shared out, so that what compiles for one device stays off the one on which the
    judge of another waits: each judge takes its device to be the only one.
    """
    os.environ["CUDA_VISIBLE_DEVICES"] = visible
    os.sched_setaffinity(0, share(os.sched_getaffinity(0), place, places))
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
