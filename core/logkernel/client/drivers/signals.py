"""Signals that wait: what a handler raises between two steps of a machine would lose what they share."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Any, Final

_raw: Any = sys.modules.get("_signal", signal)
"""`signal` without the enums that it wraps around everything, which cost more than the work."""

HELD: Final = tuple(
    int(getattr(signal, name))
    for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
"""Those whose handlers programs let raise: Ctrl-C, an end that is asked for, an alarm."""


class HeldSignals:
    """Handlers run at the end, in the main thread; elsewhere Python runs none. `came` is called when a signal comes."""

    __slots__ = ("_came", "_told", "_usual")

    def __init__(self, told: Callable[[], None] | None = None) -> None:
        self._told = told
        self._came: list[tuple[int, Any]] = []
        self._usual: dict[int, Any] = {}

    @property
    def came(self) -> bool:
        """Whether a handler waits."""
        return bool(self._came)

    def __enter__(self) -> None:
        for number in HELD:
            usual = _raw.getsignal(number)
            if callable(usual):
                try:
                    _raw.signal(number, self._hold)
                except ValueError:  # not the main thread
                    return
                self._usual[number] = usual

    def _hold(self, number: int, frame: Any) -> None:
        self._came.append((number, frame))
        if self._told is not None:
            self._told()

    def __exit__(self, *_: object) -> None:
        for number, usual in self._usual.items():
            if _raw.getsignal(number) == self._hold:  # else somebody set another one meanwhile: a callback
                _raw.signal(number, usual)
        came, self._came = self._came, []
        for index, (number, frame) in enumerate(came):
            try:
                self._usual[number](number, frame)
            except BaseException:
                for later, its_frame in came[index + 1 :]:
                    self._usual[later](later, its_frame)
                raise
