"""The examples of docs/table.md do what they say, and its tables name what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "table.md").read_text()


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("duckdb", "polars", "pandas"):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    world: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, world)
    assert 0 < int(str(world["rows"])) < 1000, "one partition of two"


def test_the_commands_parse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is a command with its options; none of the places is there."""
    import shlex

    from logkernel.cli.app import run

    lines = [line for line in PAGE.splitlines() if line.startswith("logkernel query")]
    assert len(lines) == 3
    for line in lines:
        arguments = shlex.split(line)[1:]
        place = arguments.index("--data") if "--data" in arguments else None
        if place is not None:
            arguments[place + 1] = str(tmp_path / "nix")
        elif "--bootstrap" in arguments:
            arguments[arguments.index("--bootstrap") + 1] = "127.0.0.1:1"
        else:
            arguments += ["--data", str(tmp_path / "nix")]
        assert run(arguments) == (1 if "--bootstrap" in arguments else 2)  # nobody answers there; no such folder
        assert re.search("there is no directory|no broker answers", capsys.readouterr().err)


def test_the_tables_name_all_columns_and_arguments() -> None:
    import inspect

    from logkernel.embed import EmbeddedLog
    from logkernel.record.arrow import schema
    from logkernel.remote import RemoteLog
    from logkernel.table import COLUMNS, HEADERS

    rows = dict(re.findall(r"^\| (`.*`) \| ([^|]+) \|", PAGE, re.MULTILINE))
    named = {name: kind for names, kind in rows.items() for name in re.findall(r"`(\w+)`", names)}
    told = schema((*COLUMNS, HEADERS))
    assert {name: str(told.field(name).type).split("[")[0].split("<")[0] for name in told.names} == {
        name: named[name].split("[")[0].split("<")[0] for name in told.names
    }
    for kind in (EmbeddedLog, RemoteLog):
        arguments = set(inspect.signature(kind.table).parameters) - {"self", "topic"}
        assert arguments <= named.keys()
