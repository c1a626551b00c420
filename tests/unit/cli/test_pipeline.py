"""`logkernel pipeline`, with a pipeline that only says what it was told to say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from logkernel.cli import main
from logkernel.cli import pipeline as command

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "flights" / "pipeline.yaml"
COUNTS = {"records": 5, "first": 0, "last": 5, "gaps": 1, "missing": 1, "duplicates": 0, "checksum": "0f"}
ROWS: list[dict[str, Any]] = [
    {"step": "typed", "kind": "stream", "batches": 2, "records": 12345},
    {"step": "on", "kind": "stream", "running": True},
    {"step": "whole", "kind": "audit", "topic": "t", "partition": 0, **COUNTS},
    {"step": "whole", "kind": "audit", "failed": ["t: 1 offsets are missing, in 1 gaps"]},
]


class Told:
    name = "told"

    def run(self, tell: Any, only: Any = (), master: str | None = None) -> bool:
        self.asked = (list(only), master)
        for row in ROWS:
            tell(row)
        return False


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    found = Told()
    monkeypatch.setattr(command, "_load", lambda file, given: found)
    return found


def test_what_came_of_steps_is_told(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "run", str(EXAMPLE), "--only", "a, b", "--master", "local[1]"]) == 1
    assert told.asked == (["a", "b"], "local[1]")
    out, error = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "typed: 12,345 records read in 2 batches"
    assert lines[1] == "on: running"
    assert lines[2].split() == list(command.COUNTS)
    assert lines[3].split() == ["t", "0", "5", "0", "5", "1", "1", "0", "0f"]
    assert lines[4] == "whole: failed"
    assert error == "logkernel: step whole: t: 1 offsets are missing, in 1 gaps\n"


def test_rows_are_json(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "run", str(EXAMPLE), "--json"]) == 1
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == ROWS


def test_a_check_says_what_would_be_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "check", str(EXAMPLE), "--set", "bootstrap=h:1", "--only", "delays,result"]) == 0
    out = capsys.readouterr().out
    assert "delays: stream\n  reads: flights of h:1\n  tables: \n    weather: weather of h:1" in out
    assert f"  writes: parquet {EXAMPLE.parent}/out/delays" in out
    assert main(["pipeline", "check", str(EXAMPLE), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["kind"] for row in rows] == ["audit", "stream", "stream", "compact"]


def test_a_check_shows_the_expressions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("name: p\nlog: {path: d}\nsteps: {one: {read: {topic: a}, write: {topic: b, key: upper(value)}}}\n")
    assert main(["pipeline", "check", str(file)]) == 0
    assert "  columns: key: upper(value)\n" in capsys.readouterr().out


def test_a_file_that_is_wrong_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("name: p\nstep: {}\n")
    assert main(["pipeline", "run", str(file)]) == 2
    assert f"{file}:2: step: there is no such section of a pipeline; did you mean steps?" in capsys.readouterr().err
    assert main(["pipeline", "check", str(EXAMPLE), "--set", "nix=1"]) == 2
    assert "--set: nix: there is no such parameter" in capsys.readouterr().err
