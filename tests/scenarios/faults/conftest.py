"""A whole broker over the simulated disk, with a clock that the test turns; the tests may import `disk_failures`."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hand_clock import HandClock

from logkernel.broker.broker import Broker
from logkernel.broker.runtime import Runtime, flush_here
from logkernel.config.broker import BrokerConfig
from logkernel.contracts import RequestContext
from logkernel.kernel import Kernel
from logkernel.record.batch import batches
from logkernel.record.decode import decode_all
from logkernel.record.encode import encode_batch
from logkernel.requests.data import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from logkernel.storage.simdisk import SimulatedDisk
from logkernel.vocabulary import READ_UNCOMMITTED, Record, TopicPartition

sys.path.insert(0, str(Path(__file__).parent))
KERNEL = Kernel()
CONTEXT = RequestContext()


class Machine:
    """One computer: a disk, a clock, and the broker that runs on it."""

    def __init__(self, seed: int = 0, *settings: str, folders: str = "/data") -> None:
        self.disk = SimulatedDisk(seed)
        self.clock = HandClock()
        self.random = random.Random(seed)
        self.settings = (f"log.dirs={folders}", *settings)
        self.flushes: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []
        self.flush_later = False
        """Flushes wait for `run_flushes`, as they do on a thread."""

    def boot(self) -> Broker:
        config = BrokerConfig.load(None, self.settings, KERNEL.declarations())
        runtime = Runtime(config, KERNEL, clock=self.clock)
        self.broker = Broker(runtime, disk=self.disk)
        self.broker.runtime.run_flush = self._flush
        self.flushes.clear()
        self.broker.start()
        return self.broker

    def _flush(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        if self.flush_later:
            self.flushes.append((work, done))
        else:
            flush_here(work, done)

    def run_flushes(self) -> None:
        while self.flushes:
            flush_here(*self.flushes.pop(0))
            self.broker.turn.end()

    def kill(self) -> None:
        """SIGKILL: what was written is with the system, which lives on."""
        self.disk.forget_locks()

    def crash(self) -> None:
        """The system goes down: what was not synced is lost, in part and in any order."""
        self.disk = self.disk.crash()

    def topic(self, name: str = "t", partitions: int = 1, **config: object) -> None:
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        self.broker.create_topic(name, partitions, settings)

    def pass_ms(self, ms: int) -> None:
        """Time passes; timers run when they are due."""
        end = self.clock.now_ms + ms
        while (deadline := self.broker.runtime.timers.next_deadline()) is not None and deadline <= end:
            self.clock.now_ms = max(self.clock.now_ms, deadline)
            self.broker.step()
        self.clock.now_ms = end

    def produce(self, values: Iterable[bytes], acks: int = -1, topic: str = "t", partition: int = 0) -> list[int]:
        """Send one batch; gives a list into which its error code comes as soon as it is answered."""
        records = [Record(None, value, timestamp_ms=self.clock.wall_ms()) for value in values]
        data = PartitionProduceData(partition, bytearray(encode_batch(records)))
        told: list[int] = []

        def answer(response: ProduceResponse) -> None:
            told.append(response.responses[0].partition_responses[0].error_code)

        request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(topic, [data])])
        self.broker.submit(request, CONTEXT, answer)
        return told

    def values(self, topic: str = "t", partition: int = 0) -> list[bytes]:
        """All records that can be read, in order; each batch's checksum is verified."""
        replica = self.broker.replicas.get(TopicPartition(topic, partition))
        offset, found = replica.log.start_offset, []
        while (part := replica.read(offset, 1 << 20, READ_UNCOMMITTED, min_one=True)) is not None:
            data = part.read()
            found += decode_all(data, KERNEL.codec_for, skip_control=True)
            offset = [facts.last_offset for facts in batches(data)][-1] + 1
        assert [record.offset for record in found] == list(range(replica.log.start_offset, offset)), "a hole"
        return [record.value for record in found]


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def new_machine() -> type[Machine]:
    return Machine
