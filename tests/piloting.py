"""Screens on Textual, driven by keys without a terminal."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from textual.app import App
from textual.pilot import Pilot

Step = str | Callable[[Pilot[Any]], Awaitable[Any]]
"""Keys with spaces between them, a text to type after a quote, or anything to do."""


def text_of(app: App[Any]) -> str:
    """What is on the screen."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


def screens(app: App[Any], *steps: Step, size: tuple[int, int] = (80, 24)) -> list[str]:
    """The screen after each step; while one runs, errors of the app are errors of the test."""

    async def drive() -> list[str]:
        found: list[str] = []
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            for step in steps:
                if callable(step):
                    await step(pilot)
                else:
                    await pilot.press(*(step[1:] if step.startswith('"') else step.split()))
                await pilot.pause()
                if not app.is_running:
                    break
                found.append(text_of(app))
        return found

    return asyncio.run(drive())


def until(words: str, seconds: float = 60.0) -> Step:
    """A step that waits until these words are on the screen."""

    async def wait(pilot: Pilot[Any]) -> None:
        async with asyncio.timeout(seconds):
            while words not in text_of(pilot.app):
                await asyncio.sleep(0.02)

    return wait


def click(x: int, y: int, times: int = 1) -> Step:
    """A step that clicks there."""
    return lambda pilot: pilot.click(offset=(x, y), times=times)
