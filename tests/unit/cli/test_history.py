"""`logkernel history check`: what it says, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logkernel.cli import main
from logkernel.testing.history import History

Written = tuple[Path, History]


@pytest.fixture
def doubled(tmp_path: Path) -> Path:
    """A record that lies at two offsets."""
    path = tmp_path / "run.jsonl"
    with path.open("w") as sink:
        history = History(sink)
        number = history.call("send", "p1", topic="t", partition=0, value="a")
        history.ok(number, offset=0)
        number = history.call("poll", "c1")
        history.ok(number, records=[["t", 0, 0, "a"], ["t", 0, 1, "a"]])
    return path


def test_a_good_history_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"call": "begin", "id": 0, "client": "p1"}\n')
    assert main(["history", "check", str(path)]) == 0
    assert capsys.readouterr().out == "1 operations, 0 anomalies\n"


def test_anomalies_are_told_and_fail_the_command(doubled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "check", str(doubled)]) == 1
    assert capsys.readouterr().out == "doubled: 'a' lies at t-0@0, t-0@1\n2 operations, 1 anomalies\n"
    assert main(["history", "check", "--json", str(doubled)]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0]["anomaly"] == "doubled"
    assert rows[1] == {"operations": 2, "anomalies": 1}


def test_a_line_that_does_not_fit_is_one_line_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("hello\n")
    assert main(["history", "check", str(path)]) == 2
    assert "line 1 is no JSON" in capsys.readouterr().err


def test_lines_of_several_machines_tell_no_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    with path.open("w") as sink:
        history = History(sink)
        number = history.call("poll", "c1")
        history.ok(number, records=[["t", 0, 0, "a"]])
        history.call("send", "p1", topic="t", partition=0, value="a")
    assert main(["history", "check", str(path)]) == 1
    assert main(["history", "check", "--no-real-time", str(path)]) == 0
    assert "0 anomalies" in capsys.readouterr().out
