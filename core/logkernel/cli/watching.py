"""`--watch SECONDS`: looks again and again, and draws over what was shown before where stdout is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from logkernel.cli.output import console, put, put_json
from logkernel.cli.parameters import FloatRange
from logkernel.errors import KafkaError

if TYPE_CHECKING:
    from rich.console import RenderableType

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def watch_option(command: F) -> F:
    return click.option(
        "--watch", "every_s", metavar="SECONDS", type=FloatRange(0.1), help="Look again this often, until Ctrl-C."
    )(command)


def watch(
    every_s: float,
    look: Callable[[], T],
    shown: Callable[[T], RenderableType],
    documents: Callable[[T], list[Any]],
    exit_code: Callable[[T], int],
    *,
    as_json: bool,
) -> int:
    """Show what `look` finds until Ctrl-C; what fails meanwhile is shown, and tried again. Returns the last exit
    code."""
    from rich.live import Live
    from rich.text import Text

    out, code = console(), 0
    live = Live(console=out, auto_refresh=False) if out.is_terminal and not as_json else None
    try:
        if live is not None:
            live.start()
        while True:
            try:
                found = look()
            except KafkaError as error:
                code, text = 1, f"logkernel: {type(error).__name__}: {error}"
                if live is not None:
                    live.update(Text(text), refresh=True)
                else:
                    print(text, file=sys.stderr)
            else:
                code = exit_code(found)
                if live is not None:
                    live.update(shown(found), refresh=True)
                elif as_json:
                    for row in documents(found):
                        put_json(row)
                else:
                    put(shown(found))
            sys.stdout.flush()
            time.sleep(every_s)
    except KeyboardInterrupt:
        return code
    finally:
        if live is not None:
            live.stop()
