"""A report as one HTML page: tables and charts, and where the run is small its trajectories as
replay shows them.
"""

from collections.abc import Iterable

from kevin_env.app.replay.page import asset, document, episodes_data
from kevin_env.app.replay.rows import CATEGORIES
from kevin_env.app.report.values import Report
from kevin_env.record import Trajectory

_HERE = "kevin_env.app.report"
_SCRIPTS = ("figures.js", "problems.js", "roofline.js", "report.js")


def report_page(report: Report, episodes: Iterable[Trajectory] = ()) -> str:
    """The whole page.

    Args:
        report: what it says.
        episodes: the trajectories that it links to, where they are not in pages of their own.
    """
    said = {"home": "#report", "report": report.model_dump(mode="json"), "categories": CATEGORIES}
    return document(
        f"{report.title} - kevin-env report",
        episodes_data(report.title, episodes) | said,
        "beginReport();",
        "".join(asset(_HERE, name) for name in _SCRIPTS),
        asset(_HERE, "report.css"),
    )
