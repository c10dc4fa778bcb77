"""A screen of replay as a picture and as text, without a terminal."""

import asyncio
import re
from collections.abc import Sequence

from kevin_env.app.replay.library import Library
from kevin_env.app.replay.rows import Row
from kevin_env.app.tui.replay import ListScreen, ReplayApp, ViewScreen
from kevin_env.record import Trajectory


class _Still(ReplayApp):
    """Shows an episode, or the list where there is none, and no keys."""

    FOOT = False

    def __init__(
        self, library: Library, rows: Sequence[Row], episode: Trajectory | None, at: int | None
    ) -> None:
        super().__init__(library)
        self.listing.shown = list(rows)
        self._episode, self._at = episode, at

    def get_default_screen(self) -> ListScreen:
        return self._list

    def begin(self) -> None:
        if self._episode is not None:
            self.push_screen(ViewScreen([self.listing.shown[0]], [self._episode], self._at))


def still(
    library: Library,
    rows: Sequence[Row],
    episode: Trajectory | None,
    at: int | None,
    size: tuple[int, int],
) -> tuple[str, str]:
    """A screen as SVG, which fetches nothing, and as text.

    It shows the list of `rows`, or `episode` at the turn with index `at`, by default the best. The
    size is columns and rows.
    """

    async def taken() -> tuple[str, str]:
        app = _Still(library, rows, episode, at)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            svg = app.export_screenshot(title=library.path.name)
            strips = app.screen._compositor.render_strips()
            return svg, "".join(f"{strip.text.rstrip()}\n" for strip in strips)

    svg, text = asyncio.run(taken())
    return re.sub(r"@font-face \{[^}]*\}|<!--.*?-->", "", svg, flags=re.DOTALL), text
