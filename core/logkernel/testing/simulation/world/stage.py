"""What all parts of one simulated world share: its loop, its chance, its trace, its counters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from logkernel.testing.simulation.chronicle import Chronicle
from logkernel.testing.simulation.weather import EVERYWHERE, Link, Weather
from logkernel.testing.simulation.world.loop import VirtualLoop
from logkernel.testing.simulation.world.rare import seen_in


class Stage(Chronicle):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.loop = VirtualLoop(Random(f"threads {seed}"))  # type: ignore[abstract]
        self.weather = Weather()

    @property
    def now_ms(self) -> int:
        return self.loop.now_ns // 1_000_000

    def later(self, delay_ms: float, action: Callable[[], object]) -> None:
        self.loop.call_later(delay_ms / 1000, action)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run it beside all else; what it raises ends the history."""
        task = self.loop.create_task(work)
        task.add_done_callback(_tell)
        return task

    def note_rare(self, response: Any) -> None:
        """Count what an answer shows."""
        for name in seen_in(response):
            self.rare[name] += 1

    def strikes(self, kind: str, link: Link = EVERYWHERE) -> bool:
        """Whether that misfortune strikes a message of this link."""
        odds = self.weather.odds(kind, link)
        return odds > 0 and self.random.random() * 100 < odds


def _tell(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.result()
