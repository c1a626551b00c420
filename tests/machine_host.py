"""The time of a host that runs one pure machine: it passes when the test says so, timer by timer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from hand_clock import BEGAN_MS

from logkernel.contracts import Decision


class MachineHost(ABC):
    """Hands a service's machine what the broker would, at times that the test chooses."""

    machine: Any
    mono_ms: int = 0
    wall_ms: int = BEGAN_MS

    @abstractmethod
    def run(self, decision: Decision) -> None:
        """Carry out what the machine decided."""

    def to(self, mono_ms: int) -> None:
        """Let time pass to `mono_ms`, with the timers at their times."""
        for _ in range(100_000):
            due = self.machine.next_deadline()
            if due is None or due > mono_ms:
                break
            assert due > self.mono_ms, "a deadline that does not move"
            self._at(due)
            self.run(self.machine.on_timer(self.wall_ms, self.mono_ms))
        else:
            raise AssertionError("timers without end")
        self._at(mono_ms)

    def after(self, ms: int) -> None:
        self.to(self.mono_ms + ms)

    def _at(self, mono_ms: int) -> None:
        self.wall_ms += mono_ms - self.mono_ms
        self.mono_ms = mono_ms
