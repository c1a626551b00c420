"""The log of `logkernel serve`: one `key=value` line an event, on stderr.

    time=2026-11-26T19:04:31.881 level=warning logger=logkernel.tcp event="connection closed …"

Clients name much of what is logged. No text of theirs begins a line or a field: in an event, what is not printable, a
quote and a backslash are written as their escapes, and the lines of a traceback are indented.
"""

from __future__ import annotations

import logging
from typing import Final

INDENT: Final = "    "


def printable(text: str) -> str:
    """`text` on one line, whatever it has."""
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def quoted(text: str) -> str:
    """`text` as the value of one field: in quotes, which nothing in it ends."""
    return '"' + printable(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


class LogLines(logging.Formatter):
    """See the module."""

    def __init__(self, broker: int | None) -> None:
        """`broker` is the node id where several processes write to one stderr."""
        super().__init__()
        self._broker = "" if broker is None else f" broker={broker}"

    def format(self, record: logging.LogRecord) -> str:
        stamp = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        line = f"time={stamp}.{int(record.msecs):03d} level={record.levelname.lower()}{self._broker}"
        line += f" logger={record.name} event={quoted(record.getMessage())}"
        if record.exc_info:
            traceback = self.formatException(record.exc_info).splitlines()
            line += "".join(f"\n{INDENT}{printable(one)}" for one in traceback)
        return line
