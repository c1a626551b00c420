"""The matrix of plugins takes its combinations from the environment, and reports how each went."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import plugin_matrix
import pytest
from attrs import frozen
from matrix_report import report

ROOT = Path(__file__).resolve().parents[2]
ONE, OTHER = plugin_matrix.parse("clean-none-tcp-delete-default"), plugin_matrix.parse("clean-zstd-tcp-delete-default")


@frozen
class Report:
    """The part of a `pytest.TestReport` that is read."""

    nodeid: str
    outcome: str
    duration: float
    user_properties: tuple[tuple[str, object], ...] = ()


def of(nodeid: str, outcome: str, duration: float, **plugins: str) -> Report:
    return Report(nodeid, outcome, duration, (("plugins", plugins),))


def rows(*reports: Report) -> list[list[str]]:
    """The last words of each combination's row: its outcome, tests and seconds."""
    lines = [line.split() for line in report([ONE, OTHER], reports)]
    return [words[5:] for words in lines if words[:1] == ["clean"]]


def test_a_test_counts_for_each_combination_that_has_its_plugins() -> None:
    both, one = of("both", "passed", 2.0, transport="tcp"), of("one", "passed", 0.5, transport="tcp", codec="none")
    assert rows(both, one) == [["passed", "2", "2.5"], ["passed", "1", "2.0"]]
    assert "2 of 2 combinations passed; 2 tests in 2 s" in " ".join(report([ONE, OTHER], [both, one]))


def test_setup_call_and_teardown_are_one_test() -> None:
    phases = [of("a", outcome, 1.0, codec="none") for outcome in ("passed", "failed", "passed")]
    assert rows(*phases) == [["failed:", "1", "1", "3.0"], ["not", "run", "0", "0.0"]]


def test_a_skipped_test_leaves_a_combination_incomplete() -> None:
    skipped, passed = of("a", "skipped", 0.0, codec="zstd"), of("b", "passed", 1.0, transport="tcp")
    other = Report("c", "passed", 9.0)
    assert rows(skipped, passed, other) == [["passed", "1", "1.0"], ["incomplete:", "1", "2", "1.0"]]


@pytest.mark.parametrize(
    ("name", "factors", "count"),
    [
        ("pairwise", ("codec",), 5),
        ("pairwise", ("codec", "transport"), 15),
        ("pairwise", tuple(plugin_matrix.FACTORS), 15),
        ("full", ("codec", "transport"), 15),
        ("full", tuple(plugin_matrix.FACTORS), 180),
        ("py312-clean-zstd-tcp-compact-keyed", ("codec", "cleanup"), 1),
    ],
)
def test_a_test_runs_once_with_all_that_touches_it(name: str, factors: tuple[str, ...], count: int) -> None:
    rows = plugin_matrix.projected(plugin_matrix.chosen(name), factors, {})
    assert len(rows) == len(set(rows)) == count


def test_a_test_may_be_for_some_plugins_of_a_factor() -> None:
    only = {"transport": ("tcp", "zookeeper")}
    assert len(plugin_matrix.projected(plugin_matrix.chosen(""), ("codec", "transport"), only)) == 10
    assert plugin_matrix.projected([plugin_matrix.parse("clean-zstd-memory-compact-keyed")], ("codec",), only) == []


def collected(value: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "LOGKERNEL_MATRIX": value}
    return subprocess.run(
        [*command, "tests/matrix/test_codecs.py"], cwd=ROOT, capture_output=True, text=True, env=environment
    )


def test_the_environment_chooses() -> None:
    """What librdkafka does needs a socket: it is left out, not skipped."""
    names = [line.partition("::")[2] for line in collected("clean-zstd-memory-compact-keyed").stdout.splitlines()]
    assert [name.partition("[")[2] for name in names if name] == ["zstd-memory]"] * 2


def test_what_the_environment_misspells_is_refused() -> None:
    done = collected("clean-zst-tcp-compact-keyed")
    assert done.returncode != 0
    assert "LOGKERNEL_MATRIX: 'clean-zst-tcp-compact-keyed' is no combination of plugins" in done.stdout + done.stderr
