"""Screens on Textual, driven by keys without a terminal."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from textual.app import App
from textual.events import Key
from textual.message_pump import MessagePump
from textual.pilot import Pilot

Step = str | Callable[[Pilot[Any]], Awaitable[Any]]
"""Keys with spaces between them, a text to type after a quote, or anything to do."""
_NAMES = {
    "!": "exclamation_mark", "$": "dollar_sign", "/": "slash", ":": "colon", "<": "less_than_sign",
    ">": "greater_than_sign", "?": "question_mark", " ": "space", ".": "full_stop",
    "-": "minus", "[": "left_square_bracket", "]": "right_square_bracket",
}  # fmt: skip
_CHARACTERS = {name: character for character, name in _NAMES.items()}


def one_size(*sizes: tuple[int, int]) -> pytest.MarkDecorator:
    """Runs a test at the first size; `make test-all` at the others too."""
    others = (pytest.param(each, marks=pytest.mark.full) for each in sizes[1:])
    return pytest.mark.parametrize("size", [sizes[0], *others])


def text_of(app: App[Any]) -> str:
    """What is on the screen."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


def screens(app: App[Any], *steps: Step, size: tuple[int, int] = (80, 24)) -> list[str]:
    """The screen after each step; while one runs, errors of the app are errors of the test."""

    async def drive() -> list[str]:
        found: list[str] = []
        async with app.run_test(size=size) as pilot:
            await settled(app)
            for step in steps:
                if callable(step):
                    await step(pilot)
                else:
                    await press(app, step[1:] if step.startswith('"') else step.split())
                await settled(app)
                if not _runs(app):
                    break
                found.append(text_of(app))
        return found

    return asyncio.run(drive())


async def press(app: App[Any], keys: str | list[str]) -> None:
    """Presses keys; each finds the screen as the one before left it.

    `Pilot.press` waits until the process uses no processor time, which on a busy machine it does
    not get either.
    """
    for key in keys:
        name = _NAMES.get(key, key)
        character = _CHARACTERS.get(name, key if len(key) == 1 else None)
        app.post_message(Key(name, character))
        await settled(app)


async def settled(app: App[Any]) -> None:
    """Waits until all messages, and what these cause, are handled and drawn."""
    for _ in range(2):
        await _turn(app, app)  # the app hands a key to its screen,
        for part in (app.screen.focused, app.screen) if _runs(app) else ():
            await _turn(app, part)  # which acts on it, or hands it back,
        await _turn(app, app)  # or asks the app for another screen or focus.
        if _runs(app):
            await _reached(app, app.screen.call_after_refresh)


def _runs(app: App[Any]) -> bool:
    """Not after it was told to exit, or failed."""
    return app.is_running and app.return_code is None


async def _turn(app: App[Any], part: MessagePump | None) -> None:
    if part is not None:
        await _reached(app, part.call_later)


async def _reached(app: App[Any], call: Callable[[Callable[[], Any]], bool]) -> None:
    """Waits until a callback has its turn, or the app ends."""
    turn = asyncio.Event()
    if call(turn.set):
        while _runs(app) and not turn.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(turn.wait(), 0.1)


def until(words: str, seconds: float = 60.0) -> Step:
    """A step that waits until these words are on the screen."""

    async def wait(pilot: Pilot[Any]) -> None:
        async with asyncio.timeout(seconds):
            while words not in text_of(pilot.app):
                await asyncio.sleep(0.02)

    return wait


async def ended(pilot: Pilot[Any]) -> None:
    """A step that waits until the app has ended by itself."""
    async with asyncio.timeout(60.0):
        while _runs(pilot.app):
            await asyncio.sleep(0.02)


def click(x: int, y: int, times: int = 1) -> Step:
    """A step that clicks there."""
    return lambda pilot: pilot.click(offset=(x, y), times=times)
