"""Idempotent producers: a window of batches under way, each sent again until it is acknowledged.

Errors and silence lead to the same: the batch is sent again, to whoever the client takes for the leader. An answer that
a sequence is out of order is believed for the first of the window alone: those behind it wait for it. Who gives up
begins another life, with another epoch or another producer id; nothing is known then of the writes that were left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from logkernel.attrs_lite import field, mutable
from logkernel.errors import DuplicateSequenceNumber, InvalidProducerEpoch, OutOfOrderSequenceNumber
from logkernel.testing.simulation.protocol.messages import ClientBatch
from logkernel.testing.simulation.protocol.network import Network
from logkernel.testing.simulation.protocol.schedule import World
from logkernel.testing.simulation.protocol.timeline import Timeline

TIMEOUT_MS: Final = 900
MOST_TRIES: Final = 25


@mutable
class Pending:
    write: ClientBatch
    attempt: int = 0
    """Grows each time it is sent."""
    asked: bool = False
    """The attempt is under way."""


@mutable
class Life:
    """What a producer is until it gives up."""

    producer: int
    epoch: int = 0
    sequence: int = 0
    window: list[Pending] = field(factory=list)


class Client:
    def __init__(
        self, number: int, timeline: Timeline, network: Network, world: World, numbers: Callable[[], int],
        leader: Callable[[], int],
    ) -> None:  # fmt: skip
        """`leader` is who leads, as metadata say."""
        self.name = -number
        """Its place in the network."""
        self.timeline = timeline
        self.network = network
        self.world = world
        self.numbers = numbers
        self.leader = leader
        self.acknowledged = 0
        self.life = Life(number)
        self._target = max(1, leader())

    def begin(self) -> None:
        """Send new batches, as far as the window allows."""
        life = self.life
        while len(life.window) < self.world.window:
            count = self.timeline.random.randint(1, 3)
            write = ClientBatch(self.numbers(), self.name, life.producer, life.epoch, life.sequence, count)
            life.sequence += count
            pending = Pending(write)
            life.window.append(pending)
            self._send(pending)

    def _send(self, pending: Pending) -> None:
        pending.attempt += 1
        pending.asked = True
        attempt, write = pending.attempt, pending.write
        self.network.send(self.name, self._target, "produce", write)

        def timeout() -> None:
            if pending.attempt == attempt and pending.asked and pending in self.life.window:
                self._look_elsewhere()
                self._again(pending)

        self.timeline.later(TIMEOUT_MS, timeout)

    def arrive(self, write: ClientBatch, code: int) -> None:
        """An answer, to whichever attempt."""
        window = self.life.window
        pending = next((each for each in window if each.write.number == write.number), None)
        if pending is None:
            return
        if code in (0, DuplicateSequenceNumber.code):
            window.remove(pending)
            self.acknowledged += 1
            longest = min(self.world.think_ms, 100) if self.timeline.healing else self.world.think_ms
            self.timeline.later(self.timeline.random.randint(1, longest), self.begin)
        elif code in (OutOfOrderSequenceNumber.code, InvalidProducerEpoch.code):
            if pending is window[0] and pending.attempt > 3:
                self._live_anew()
            elif pending.asked:
                self._put_off(pending)
        elif pending.asked:
            self._look_elsewhere()
            self._put_off(pending)

    def _put_off(self, pending: Pending) -> None:
        pending.asked = False
        attempt = pending.attempt

        def again() -> None:
            if pending.attempt == attempt and pending in self.life.window:
                self._again(pending)

        self.timeline.later(self.timeline.random.randint(20, 200), again)

    def _again(self, pending: Pending) -> None:
        if pending.attempt > MOST_TRIES and not self.timeline.healing:
            self._live_anew()
        else:
            self._send(pending)

    def _look_elsewhere(self) -> None:
        chance = self.timeline.random
        known = self.leader()
        guess = chance.random() < 0.2 or known < 1
        self._target = chance.randint(1, self.world.brokers) if guess else known

    def _live_anew(self) -> None:
        self.timeline.rare["another life of a producer"] += 1
        life = self.life
        if self.timeline.random.random() < 0.5:
            self.life = Life(life.producer, life.epoch + 1)
        else:
            self.life = Life(life.producer + 100)
        self.begin()
