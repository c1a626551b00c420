"""Curves as pictures and as text. matplotlib and plotext are in the extra `perf`, and imported when they are used."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from logkernel.errors import ConfigError

if TYPE_CHECKING:
    from logkernel.perf.sweep import Curve

REMEDY: Final = "curves are drawn by matplotlib and plotext: pip install 'logkernel[perf]'"
WIDTH, HEIGHT = 76, 18


def check_installed() -> None:
    """Raise `ConfigError` if the libraries for drawing are missing."""
    if find_spec("matplotlib") is None or find_spec("plotext") is None:
        raise ConfigError(REMEDY)


def draw(curves: Sequence[Curve], folder: Path, title: str) -> list[Path]:
    """Draw `sweep.svg` and `sweep.png` with a panel for each curve; return the paths."""
    from matplotlib.figure import Figure

    columns = 2 if len(curves) > 1 else 1
    rows = -(-len(curves) // columns)
    figure: Any = Figure(figsize=(6.4 * columns, 4.2 * rows), layout="constrained")
    figure.suptitle(title)
    panels = figure.subplots(rows, columns, squeeze=False)
    for index, panel in enumerate(panel for row in panels for panel in row):
        if index < len(curves):
            _panel(panel, curves[index])
        else:
            panel.set_axis_off()
    folder.mkdir(parents=True, exist_ok=True)
    made = [folder / "sweep.svg", folder / "sweep.png"]
    for path in made:
        figure.savefig(path)
    return made


def _panel(panel: Any, curve: Curve) -> None:
    import textwrap

    experiment, points = curve.experiment, curve.points
    claim = "\n".join(textwrap.wrap(f"{experiment.claim}: {curve.verdict.outcome}", 60))
    panel.set_title(claim, fontsize=9)
    panel.set_xlabel(experiment.axis)
    if not points:
        panel.text(0.5, 0.5, curve.verdict.why, ha="center", va="center", transform=panel.transAxes)
        panel.set_xticks([])
        panel.set_yticks([])
        return
    x = [point.x for point in points]
    if x[-1] / x[0] > 8:
        panel.set_xscale("log")
    panel.set_xticks(x, [f"{value:,}" for value in x])
    panel.minorticks_off()
    panel.plot(x, [point.records_s for point in points], "o-", color="tab:blue")
    panel.yaxis.set_major_formatter("{x:,.0f}")
    panel.set_ylabel("records a second", color="tab:blue")
    panel.set_ylim(bottom=0)
    if experiment.unit != "both":
        return
    other = panel.twinx()
    other.plot(x, [point.mib_s for point in points], "s--", color="tab:orange")
    other.set_ylabel("MB a second", color="tab:orange")
    other.set_ylim(bottom=0)


def text(curve: Curve, *, colours: bool) -> str:
    """Return the curve as text for a terminal, with points at equal distances."""
    import plotext

    if not curve.points:
        return ""
    plotext.clear_figure()
    plotext.plotsize(WIDTH, HEIGHT)
    places = list(range(1, len(curve.points) + 1))
    records = [point.records_s / 1000 for point in curve.points]
    if curve.experiment.unit == "both":
        plotext.plot(places, records, marker="braille", label="thousand records/s (left)", yside="left")
        sizes = [point.mib_s for point in curve.points]
        plotext.plot(places, sizes, marker="braille", label="MB/s (right)", yside="right")
        plotext.ylim(0, None, yside="right")
    else:
        plotext.plot(places, records, marker="braille", label="thousand records/s")
    plotext.ylim(0, None)
    plotext.xticks(places, [str(point.x) for point in curve.points])
    plotext.xlabel(curve.experiment.axis)
    if not colours:
        plotext.clear_color()
    drawn: str = plotext.build()
    return drawn if colours else plotext.uncolorize(drawn)
