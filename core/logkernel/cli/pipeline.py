"""`logkernel pipeline`: run what a YAML file describes, with the connector of a query engine.

The connector is a plugin, found by its name as all others; nothing here knows Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from logkernel.cli.connection import pairs
from logkernel.cli.output import F, json_option, put_json, put_table
from logkernel.cli.parameters import with_options

if TYPE_CHECKING:
    from logkernel.contracts import Pipeline

ENGINE: Final = "spark"
COUNTS: Final = ("topic", "partition", "records", "first", "last", "gaps", "missing", "duplicates", "checksum")
"""The columns of an audit that are shown; --json prints all."""


def _file(command: F) -> F:
    """The file, its parameters, and which steps."""
    options = (
        click.argument("file", type=click.Path(exists=True, dir_okay=False)),
        click.option(
            "--set", "given", multiple=True, metavar="NAME=VALUE", help="Set a parameter of the file; repeatable."
        ),
        click.option("--only", metavar="STEP,…", help="Only these steps."),
    )
    return with_options(options)(command)


def _load(file: str, given: Sequence[str]) -> Pipeline:
    from logkernel.kernel import Kernel

    return Kernel().connector(ENGINE).pipeline(file, pairs(given))


def _names(only: str | None) -> list[str]:
    return [] if only is None else [name.strip() for name in only.split(",") if name.strip()]


@click.command
@_file
@click.option(
    "--master",
    metavar="URL",
    help="Spark master, e.g. local[2] or spark://HOST:PORT.  [default: the file's, else local[*]]",
)
@json_option
def run(file: str, given: tuple[str, ...], only: str | None, master: str | None, as_json: bool) -> int:
    """Run the steps of a pipeline in order. Streams with a time as their trigger run until Ctrl-C.

    A step that fails, or an audit that finds what it is told to fail on, ends the run with exit code 1.
    """
    board = _Board(as_json)
    good = _load(file, given).run(board.tell, _names(only), master)
    board.show()
    return int(not good)


class _Board:
    """Print the result of each step: one line, or a table for the rows of an audit."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._rows: list[Mapping[str, Any]] = []

    def tell(self, row: Mapping[str, Any]) -> None:
        if self._as_json:
            put_json(row)
            sys.stdout.flush()
        elif "topic" in row:
            self._rows.append(row)
            return
        else:
            self.show()
            print(_line(row), flush=True)
        for why in row.get("failed", ()):
            print(f"logkernel: step {row['step']}: {why}", file=sys.stderr)

    def show(self) -> None:
        if self._rows:
            put_table(COUNTS, [[row.get(name, "") for name in COUNTS] for row in self._rows])
            self._rows.clear()


def _line(row: Mapping[str, Any]) -> str:
    if "failed" in row:
        said = "failed"
    elif "records" in row:
        said = f"{row['records']:,} records read in {row['batches']:,} batches"
    else:
        said = "running" if row.get("running") else "done"
    return f"{row['step']}: {said}"


@click.command
@_file
@json_option
def check(file: str, given: tuple[str, ...], only: str | None, as_json: bool) -> int:
    """Print what each step of a pipeline would read, do and write. Neither Spark nor a log is used."""
    for row in _load(file, given).plan(_names(only)):
        if as_json:
            put_json(row)
            continue
        click.echo(f"{click.style(row['step'], bold=True)}: {row['kind']}")
        for name, said in row.items():
            if name not in ("step", "kind"):
                click.echo(f"  {name}: {_indented(said)}")
    return 0


def _indented(said: Any) -> str:
    if isinstance(said, Mapping):
        said = "\n".join(f"{name}: {text}" for name, text in said.items())
    elif isinstance(said, list | tuple):
        said = ", ".join(said)
    lines = str(said).strip().splitlines()
    return lines[0] if len(lines) == 1 else "".join(f"\n    {line}" for line in lines)
