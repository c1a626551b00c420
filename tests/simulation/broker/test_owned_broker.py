"""A simulation owns a whole broker: disk, clock, ids and long work are its own, and one seed gives one history."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import uuid
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hand_clock import HandClock

from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.broker.runtime import Flushed, Randomness
from logkernel.broker.workers import SteppedWorkers
from logkernel.contracts import RequestContext
from logkernel.errors import KafkaStorageError
from logkernel.kernel import Kernel
from logkernel.record.encode import encode_batch
from logkernel.requests.data import PartitionProduceData, ProduceRequest, TopicProduceData
from logkernel.requests.producers import InitProducerIdRequest
from logkernel.storage.simdisk import SimulatedDisk
from logkernel.vocabulary import Record

KERNEL = Kernel()
SETTINGS = (
    "log.dirs=/data",
    "log.cleaner.backoff.ms=100",
    "log.cleaner.min.cleanable.ratio=0.1",
    "log.retention.check.interval.ms=500",
    "log.cleaner.io.max.bytes.per.second=100000",
    "num.recovery.threads.per.data.dir=1",
    "log.segment.delete.delay.ms=100",
)
TOPIC = {
    "cleanup.policy": "compact",
    "segment.ms": "300",
    "min.cleanable.dirty.ratio": "0.1",
    "flush.messages": "7",
}


class Seeded(Randomness):
    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def bytes(self, count: int) -> bytes:
        return self._chance.randbytes(count)


class World:
    """One broker, whose driver draws from a seed what happens next."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.clock = HandClock()
        self.disk = SimulatedDisk(seed)
        self.history: list[Any] = []
        self.jobs_run = 0
        self.lives = 0
        self.broker = self.start()
        for name in ("t", "u"):
            self.broker.create_topic(name, 2, TOPIC)

    def start(self) -> Broker:
        self.lives += 1
        self.workers = SteppedWorkers()
        self.flushes: list[tuple[Callable[[], None], Flushed]] = []
        randomness = Seeded(Random(self.chance.random()))
        broker = build(
            None, SETTINGS, kernel=KERNEL, clock=self.clock, randomness=randomness, workers=self.workers, disk=self.disk
        )
        broker.runtime.run_flush = lambda work, done: self.flushes.append((work, done))
        broker.start()
        return broker

    def step(self) -> None:
        what = self.chance.random()
        if what < 0.6:
            self.produce()
        elif what < 0.7 and self.flushes:
            work, done = self.flushes.pop(0)
            work()
            done(None)
        elif what < 0.85 and self.workers.waiting:
            self.jobs_run += self.workers.run_one(self.chance.randrange(len(self.workers.waiting)))
        elif what < 0.88:
            self.ask(InitProducerIdRequest())
        elif what < 0.9:
            name = f"once-{self.clock.now_ms}"
            self.broker.create_topic(name, 1, {})
            self.broker.delete_topic(name)
        elif what < 0.91:
            self.disk = self.disk.crash()
            self.broker = self.start()
        else:
            self.clock.now_ms += self.chance.choice((1, 10, 200))
        self.history.append(self.broker.step())

    def ask(self, request: Any) -> None:
        asked, life = len(self.history), self.lives
        self.history.append(None)
        self.broker.submit(request, RequestContext(), lambda answer: self.history.append((asked, life, repr(answer))))

    def produce(self) -> None:
        keys = self.chance.choices("abcdef", k=self.chance.randrange(1, 9))
        now_ms = self.clock.wall_ms()
        records = [Record(key.encode(), self.chance.randbytes(60), timestamp_ms=now_ms) for key in keys]
        data = PartitionProduceData(self.chance.randrange(2), bytearray(encode_batch(records)))
        topic = TopicProduceData(self.chance.choice("tu"), [data])
        self.ask(ProduceRequest(acks=self.chance.choice((1, -1)), timeout_ms=1_000, topic_data=[topic]))


def contents(disk: SimulatedDisk, path: str = "") -> dict[str, str]:
    """Path → digest of each file; of a folder, nothing."""
    found: dict[str, str] = {}
    for name in disk.listdir(path or "/"):
        inner = f"{path}/{name}"
        if disk.is_dir(inner):
            found.update({inner: "folder"}, **contents(disk, inner))
        else:
            found[inner] = hashlib.sha256(disk.read(inner)).hexdigest()
    return found


def lived(seed: int) -> World:
    world = World(seed)
    for _ in range(600):
        world.step()
    return world


@pytest.fixture
def nothing_from_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> Any:
        raise AssertionError("a broker of a simulation asked the system")

    for owner, name in ((os, "urandom"), (uuid, "uuid4"), (threading.Thread, "start")):
        monkeypatch.setattr(owner, name, refuse)


@pytest.mark.parametrize("seed", range(4))
def test_a_seed_gives_one_history(seed: int, nothing_from_the_system: None) -> None:
    first, second = lived(seed), lived(seed)
    assert first.history == second.history
    assert contents(first.disk) == contents(second.disk)
    assert first.jobs_run > 10
    assert first.workers.paused_s == second.workers.paused_s


def test_another_seed_gives_another_history(nothing_from_the_system: None) -> None:
    assert lived(0).history != lived(1).history


@pytest.mark.parametrize("seed", range(4))
def test_a_broker_that_is_killed_writes_nothing_more(seed: int) -> None:
    """Found by the world's seeds 7 and 20: a kill finished the cleaner's jobs, and noted how far they came."""
    world = World(seed)
    waiting = 0
    for _ in range(6):
        for _ in range(100):
            world.step()
        waiting += len(world.workers.waiting)
        operations = world.disk.operations
        world.broker.abandon()
        assert world.disk.operations == operations
        world.disk.forget_locks()
        world.broker = world.start()
    assert waiting > 0


def test_a_start_that_fails_tells_why() -> None:
    """Found by the world's seed 259: the broker that was given up then asked for directories that were never open."""
    disk = SimulatedDisk()
    disk.fault = lambda kind, path: errno.EIO
    broker = build(None, SETTINGS, kernel=KERNEL, clock=HandClock(), disk=disk)
    with pytest.raises((OSError, KafkaStorageError)):
        broker.start()
    broker.abandon()
    assert disk.operations <= 1
