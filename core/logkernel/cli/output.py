"""Output of every command: JSON lines with `--json`, else tables. Colours and progress bars on terminals only.

Data goes to stdout, progress and complaints to stderr. `NO_COLOR` and `TERM=dumb` are honoured (by rich).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

F = TypeVar("F", bound=Callable[..., Any])
Progress = Callable[[int, str], None]
"""Called with the units done since the last call, and the name of the current item."""


def json_option(command: F) -> F:
    """`--json`: JSON lines instead of text; every command has it."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of text.")(command)


def put_json(row: Any, stream: IO[str] | None = None) -> None:
    print(json.dumps(row, ensure_ascii=False, separators=(",", ":")), file=stream or sys.stdout)


def put_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> None:
    """Print a table as wide as the terminal; without a terminal, as wide as its cells."""
    put(table(columns, rows, title))


def put(what: RenderableType) -> None:
    """Print tables and the like."""
    out = console()
    out.print(what, soft_wrap=not out.is_terminal)


def console() -> Console:
    """Stdout as rich sees it: without a terminal, wide enough for anything."""
    from rich.console import Console

    made = Console(markup=False, highlight=False)
    if not made.is_terminal:
        made.width = 10_000
    return made


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> Table:
    """A table without lines; columns of numbers stand right."""
    from rich.table import Table

    made = Table(title=title, box=None, pad_edge=False, header_style="bold", title_justify="left")
    for column in columns:
        numbers = rows and all(isinstance(row[columns.index(column)], int) for row in rows)
        made.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        made.add_row(*("" if cell is None else str(cell) for cell in row))
    return made


@contextmanager
def progress(what: str, total: int, *, quiet: bool = False) -> Iterator[Progress]:
    """A progress bar of bytes on stderr, if stderr is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    parts = (TextColumn(what), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*parts, TextColumn("{task.fields[name]}"), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, name="")
        yield lambda done, name: bar.update(task, advance=done, name=name)
