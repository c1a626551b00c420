"""What a run of the matrix came to: a row for each combination, from the reports of its tests."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from attrs import define, field
from plugin_matrix import FACTORS, Combination
from rich import box
from rich.console import Console
from rich.table import Table

COLUMNS = (*FACTORS, "outcome", "tests", "seconds")


@define
class Run:
    """A test that ran with some plugins; it stands for every combination that has them."""

    plugins: Combination
    outcomes: set[str] = field(factory=set)
    seconds: float = 0.0

    def fits(self, combination: Combination) -> bool:
        return self.plugins.items() <= combination.items()


def runs_of(reports: Iterable[Any]) -> list[Run]:
    """Pytest's reports, of which a test has one for its setup, its call and its teardown."""
    found: dict[str, Run] = {}
    for report in reports:
        plugins = dict(report.user_properties).get("plugins")
        if plugins is not None:
            run = found.setdefault(report.nodeid, Run(plugins))
            run.outcomes.add(report.outcome)
            run.seconds += report.duration
    return list(found.values())


def outcome(runs: Sequence[Run]) -> str:
    """That of a combination: a skipped test leaves it incomplete, and no test at all is no success."""
    failed = sum("failed" in run.outcomes for run in runs)
    skipped = sum("skipped" in run.outcomes for run in runs)
    if failed:
        return f"failed: {failed}"
    return f"incomplete: {skipped}" if skipped else "passed" if runs else "not run"


def report(combinations: Sequence[Combination], reports: Iterable[Any]) -> Iterator[str]:
    """The lines of the table."""
    runs = runs_of(reports)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, justify="right" if name in ("tests", "seconds") else "left")
    ended = []
    for combination in combinations:
        fitting = [run for run in runs if run.fits(combination)]
        ended.append(outcome(fitting))
        seconds = sum(run.seconds for run in fitting)
        table.add_row(*combination.values(), ended[-1], str(len(fitting)), f"{seconds:.1f}")
    text = io.StringIO()
    Console(file=text, width=120).print(table)
    yield from (line.rstrip() for line in text.getvalue().splitlines() if line.strip())
    yield ""
    yield (
        f"{ended.count('passed')} of {len(ended)} combinations passed; {len(runs)} tests in"
        f" {sum(run.seconds for run in runs):.0f} s. A test that does not touch a factor runs once for all its plugins,"
        " and counts for each."
    )
