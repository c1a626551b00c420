"""A compacted topic that is filled, read and waited for."""

from __future__ import annotations

import time

from logkernel.vocabulary import TopicPartition

SEGMENT = 1 << 20
NAME = TopicPartition("t", 0)


def fill(log, rounds: int = 3, keys: int = 50, size: int = 20_000, topic: str = "t") -> int:
    """Several segments of `keys` keys, round by round; returns the records written."""
    before = log.end_offset(topic)
    for round_ in range(rounds):
        for key in range(keys):
            log.append(topic, b"%d " % round_ + bytes(size), key=b"k%d" % key)
    return log.end_offset(topic) - before


def state(log, topic: str = "t") -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for record in log.read(topic):
        found[record.key] = record.value
    return {key: value for key, value in found.items() if value is not None}


def wait(log, holds, what: str) -> None:
    deadline = time.monotonic() + 180
    while not holds():
        assert time.monotonic() < deadline, what
        log.broker.runtime.workers.wait(0.01)
        log.step()
