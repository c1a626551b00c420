"""Connections: what is sent over one arrives in order and late, waits while the way is cut, and is lost when it breaks.

| what strikes a message | what happens |
|---|---|
| drop | the connection breaks: what is under way is lost, and its sender learns that it does not know |
| ghost | as drop, but this request still arrives, after those of the next connection |
| slow | it takes up to 400 ms longer, and what follows it waits behind |

A message that a cut holds waits, and arrives when the cut ends, as TCP would have it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from logkernel.requests.data import FetchResponse, ProduceRequest
from logkernel.testing.simulation.weather import Link
from logkernel.testing.simulation.world.stage import Stage
from logkernel.vocabulary import FileSlice

LONGEST_MS: Final = 6.0
GHOSTS_MS: Final = (30, 300, 1500)
Deliver = Callable[[], None]


def as_sent(request: Any) -> Any:
    """The bytes of a produce are the client's buffer, which it uses again: on a wire they cannot change."""
    if isinstance(request, ProduceRequest):
        for topic in request.topic_data:
            for row in topic.partition_data:
                row.records = None if row.records is None else bytearray(row.records)
    return request


def as_answered(response: Any) -> Any:
    """Records of a fetch are read when they are sent."""
    if isinstance(response, FetchResponse):
        for topic in response.responses:
            for row in topic.partitions:
                if isinstance(row.records, FileSlice):
                    row.records = row.records.read()
    return response


class Way:
    """One direction of a connection."""

    def __init__(self, stage: Stage, link: Link, is_shut: Callable[[], bool]) -> None:
        self._stage = stage
        self._link = link
        self._is_shut = is_shut
        self._last_ns = 0
        self._held: deque[Deliver] = deque()
        self.broken = False

    def send(self, deliver: Deliver) -> None:
        stage = self._stage
        delay_ms = stage.random.random() * LONGEST_MS
        if stage.strikes("slow", self._link):
            delay_ms += stage.random.randint(20, 400)
        arrival_ns = max(stage.loop.now_ns + round(delay_ms * 1e6), self._last_ns + 1_000)
        self._last_ns = arrival_ns
        stage.later((arrival_ns - stage.loop.now_ns) / 1e6, lambda: self._arrive(deliver))

    def _arrive(self, deliver: Deliver) -> None:
        if self.broken:
            return
        if self._held or self._is_shut():
            self._held.append(deliver)
        else:
            deliver()

    def release(self) -> None:
        """The cut or the pause may be over."""
        while self._held and not self.broken and not self._is_shut():
            self._held.popleft()()

    def end(self) -> None:
        self.broken = True
        self._held.clear()
