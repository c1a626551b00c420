"""Idempotent producers: one write at a time, again until it is acknowledged, at whoever they take for the leader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from logkernel.testing.simulation.protocol.broker import Broker
from logkernel.testing.simulation.protocol.messages import Write
from logkernel.testing.simulation.protocol.promises import Promises
from logkernel.testing.simulation.protocol.timeline import Timeline

TIMEOUT_MS: Final = 2000
MOST_TRIES: Final = 40


class Numbers:
    """Each write of a history has a number of its own."""

    def __init__(self) -> None:
        self.last = 0

    def next(self) -> int:
        self.last += 1
        return self.last


class Client:
    def __init__(
        self, producer: int, timeline: Timeline, brokers: Mapping[int, Broker], promises: Promises,
        numbers: Numbers, *, drop: float,
    ) -> None:  # fmt: skip
        """`drop` is how likely an answer is lost."""
        self.timeline = timeline
        self.brokers = brokers
        self.promises = promises
        self.numbers = numbers
        self.drop = drop
        self._producer = producer
        self._sequence = 0
        self._target = promises.row.leader

    def begin(self) -> None:
        write = Write(self.numbers.next(), self._producer, self._sequence, self.timeline.random.randint(1, 3))
        self._attempt(write, 0)

    def _attempt(self, write: Write, tries: int) -> None:
        chance = self.timeline.random
        done = False

        def answer(back: Write, code: int, offset: int) -> None:
            nonlocal done
            if done:
                return
            if chance.random() < (0 if self.timeline.healing else self.drop):
                return  # lost on its way back
            done = True
            if code == 0:
                self._sequence += write.count
                self.promises.on_acked(write, offset)
                self.timeline.later(chance.randint(1, 60), self.begin)
            else:
                self.timeline.later(chance.randint(20, 200), lambda: self._again(write, tries))

        def timeout() -> None:
            nonlocal done
            if not done:
                done = True
                self._again(write, tries)

        self.timeline.later(TIMEOUT_MS, timeout)
        broker = self.brokers.get(self._target)  # until it refuses, or does not answer
        if broker is not None and broker.running:
            if broker.paused:
                broker.hold(write, answer)
            else:
                self.timeline.later(chance.randint(1, 5), lambda: broker.produce(write, answer))

    def _again(self, write: Write, tries: int) -> None:
        chance = self.timeline.random
        self._target = self.promises.row.leader if chance.random() < 0.8 else chance.choice(sorted(self.brokers))
        if tries > MOST_TRIES:  # another life: nothing is known of the last write
            self._producer += 10
            self._sequence = 0
            self.begin()
        else:
            self._attempt(write, tries + 1)
