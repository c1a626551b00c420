"""Lines of a log that come again: each is written once, and counted for as long as it comes again in each window.

    connection refused peer=10.0.0.7:40112 listener=IN: it sent HTTP; …           written by the caller, where `is_new`
    connection refused host=10.0.0.7 listener=IN: it sent HTTP; … (this came 78 times more in 60 s)
    connection refused host=10.0.0.9: 90000 more in 60 s are not written

The next one after a window without one is written anew. A line is of a source, such as a client's host or principal.
Nobody fills disk or memory, or hides the lines of others by his own: in a window, `max_each` different lines of a
source are written, and `max_all` of all sources. Those beyond are counted by source, and those of more than
`MAX_COUNTED` sources together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

WINDOW_MS: Final = 60_000
MAX_COUNTED: Final = 200
"""Sources of which lines are counted that are not written."""
OTHERS: Final = "(others)"
"""Those beyond; no source is written so."""

After = Callable[[int, Callable[[], None]], object]
"""Runs a call when so many ms are over."""


class Repeats:
    """Says which lines are new, and writes how often the others came; a timer ends the windows."""

    def __init__(
        self, log: logging.Logger, label: str, after: After, *, max_each: int, max_all: int, level: int = logging.INFO
    ) -> None:
        """`label` begins each line, up to the source; `level` is of the lines that count."""
        self._log = log
        self._label = label
        self._after = after
        self._max_each = max_each
        self._max_all = max_all
        self._level = level
        self._again: dict[str, dict[str, int]] = {}
        """Source → what of it was written → how often that came again in this window."""
        self._written = 0
        """Lines in `_again`."""
        self._beyond: dict[str, int] = {}
        """Source → how many of its lines in this window are not written."""
        self._has_window = False
        self._is_closed = False

    def is_new(self, source: str, what: str) -> bool:
        """Whether the caller is to write this line; else it is counted."""
        known = self._again.get(source, {})
        if what in known:
            known[what] += 1
            return False
        is_written = len(known) < self._max_each and self._written < self._max_all
        if is_written:
            self._again.setdefault(source, known)[what] = 0
            self._written += 1
        else:
            counted = source if source in self._beyond or len(self._beyond) < MAX_COUNTED else OTHERS
            self._beyond[counted] = self._beyond.get(counted, 0) + 1
        if not self._has_window and not self._is_closed:
            self._begin_window()
        return is_written

    def close(self) -> None:
        """Write what was counted; the broker stops."""
        self._is_closed = True
        self._tell("before the broker stopped")
        self._again.clear()
        self._written = 0

    def _begin_window(self) -> None:
        self._has_window = True
        self._after(WINDOW_MS, self._end_window)

    def _end_window(self) -> None:
        if self._is_closed:
            return
        self._tell(f"in {WINDOW_MS // 1000} s")
        came_again = (
            (source, {what: 0 for what, more in known.items() if more}) for source, known in self._again.items()
        )
        self._again = {source: known for source, known in came_again if known}
        self._written = sum(map(len, self._again.values()))
        self._has_window = False
        if self._again:
            self._begin_window()

    def _tell(self, when: str) -> None:
        for source, known in self._again.items():
            for what, more in known.items():
                if more:
                    came = f"this came {more} {'time' if more == 1 else 'times'} more {when}"
                    self._log.log(self._level, "%s=%s %s (%s)", self._label, source, what, came)
        for source, more in self._beyond.items():
            self._log.warning("%s=%s: %d more %s are not written", self._label, source, more, when)
        self._beyond.clear()
