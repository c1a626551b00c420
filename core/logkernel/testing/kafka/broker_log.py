"""What brokers of this process log, kept for the report of a test that fails, without a change of what others see."""

from __future__ import annotations

import logging
from collections import deque
from typing import Final, Self

MOST_LINES: Final = 500
NAME: Final = "logkernel"


class BrokerLog(logging.Handler):
    """Keeps the last lines from INFO on. A context manager: while it is open it stands between the logger `logkernel`
    and its parent, and lets through what would have come through. A suite's own handlers hear of no more than that.

    It does not set `propagate`: pytest adds its handlers to loggers that do not propagate. Where somebody else did,
    nothing is kept.
    """

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s %(message)s", "%H:%M:%S"))
        self._lines: deque[str] = deque(maxlen=MOST_LINES)
        self._logger = logging.getLogger(NAME)
        self._level_before = self._logger.level
        self._passing = self._logger.getEffectiveLevel()
        self._parent = self._logger.parent

    def __enter__(self) -> Self:
        between = logging.Logger(f"{NAME} between")
        between.propagate = False
        between.addHandler(self)
        self._logger.parent = between
        self._logger.setLevel(min(logging.INFO, self._passing))
        return self

    def __exit__(self, *exc: object) -> None:
        self._logger.parent = self._parent
        self._logger.setLevel(self._level_before)

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))
        if self._parent is not None and record.levelno >= self._passing:
            self._parent.callHandlers(record)

    @property
    def text(self) -> str:
        return "\n".join(self._lines)
