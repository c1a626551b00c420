"""A broker on the simulated disk that is cut short at one write, and clients that do not notice, or die with it.

`World.ask` sends a request until it is answered, as clients do: when the disk ends the broker in the middle of a write,
another one is started on what the disk holds, and looked at (`on_boot`); then the request goes out again, or
`Gone` is raised, for a client that died as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cut_stories import Gone
from hand_clock import HandClock

from logkernel.broker.broker import Broker
from logkernel.broker.runtime import Runtime
from logkernel.config.broker import BrokerConfig
from logkernel.contracts import Buffer, RequestContext
from logkernel.kernel import Kernel
from logkernel.record.batch import batches
from logkernel.record.decode import decode_batch
from logkernel.storage.simdisk import PowerCut, SimulatedDisk, SimulatedFile
from logkernel.vocabulary import READ_COMMITTED, READ_UNCOMMITTED, BatchFacts, Record, TopicPartition

KERNEL = Kernel()
SETTINGS = (
    "log.dirs=/data",
    "offsets.topic.num.partitions=1",
    "transaction.state.log.num.partitions=1",
    "share.coordinator.state.topic.num.partitions=1",
    "group.initial.rebalance.delay.ms=0",
    "group.share.min.record.lock.duration.ms=1000",
    "log.cleaner.enable=false",
)
SETTLE_MS = 6_000
"""In so long, a broker that is left alone has read its logs and finished what is prepared."""
PATIENCE_MS = 60_000


class CuttingFile(SimulatedFile):
    """Ends the broker when a write is done, too: nothing that follows from it happens any more."""

    __slots__ = ()
    _disk: CuttingDisk

    def append(self, data: Buffer) -> None:
        super().append(data)
        self._disk.done()

    def sync(self) -> None:
        super().sync()
        self._disk.done()


class CuttingDisk(SimulatedDisk):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.kinds: list[str] = []
        """Of every operation so far."""
        self.last = 0
        """The operation that is done, and the last; 0 for none."""

    def step(self, kind: str, path: str) -> None:
        self.kinds.append(kind)
        super().step(kind, path)

    def done(self) -> None:
        if self.operations == self.last:
            self._off = True
            raise PowerCut(f"after operation {self.last}")

    def sync(self, path: str) -> None:
        super().sync(path)
        self.done()

    def open(self, path: str, *, create: bool = False, write: bool = True) -> SimulatedFile:
        self.ask("open", path)
        return CuttingFile(self, path, self._make(path) if create else self._inode(path))


class World:
    """`durable`: a cut takes what was not synced, and everything is synced before it is answered; else the process
    alone ends, and what was written is there. `heirs`: clients die with the broker."""

    def __init__(self, *, durable: bool, heirs: bool) -> None:
        self.durable = durable
        self.heirs = heirs
        self.clock = HandClock()
        self.disk: SimulatedDisk = CuttingDisk(1)
        self.boots = 0
        self.on_boot: Callable[[], None] = lambda: None
        self.boot()

    # ------------------------------------------------------------ the broker

    def boot(self) -> None:
        settings = (*SETTINGS, "log.flush.interval.messages=1") if self.durable else SETTINGS
        config = BrokerConfig.load(None, settings, KERNEL.declarations())
        runtime = Runtime(config, KERNEL, clock=self.clock)
        self.broker = Broker(runtime, disk=self.disk)
        self.broker.start()
        self.boots += 1

    def cut_at(self, operation: int, *, whole: bool) -> None:
        """The `operation`-th write from now on is the last, and is done by half or whole."""
        assert isinstance(self.disk, CuttingDisk)
        if whole:
            self.disk.last = self.disk.operations + operation
        else:
            self.disk.fail_at(self.disk.operations + operation, None)

    def restart(self) -> None:
        if self.durable:
            self.disk = self.disk.crash()
        else:
            assert isinstance(self.disk, CuttingDisk)
            self.disk.last = 0
            self.disk.heal()
            self.disk.forget_locks()
        self.boot()
        self.on_boot()

    def guarded(self, work: Callable[[], None]) -> bool:
        """False where the broker was cut short meanwhile; another one is there then."""
        try:
            work()
        except PowerCut:
            self.restart()
            return False
        return True

    def pass_ms(self, ms: int) -> None:
        """Time passes, timer by timer."""
        end = self.clock.now_ms + ms

        def step() -> None:
            while (due := self.broker.runtime.timers.next_deadline()) is not None and due <= end:
                self.clock.now_ms = max(self.clock.now_ms, due)
                self.broker.step()

        self.guarded(step)
        self.clock.now_ms = max(self.clock.now_ms, end)

    def settle(self) -> None:
        self.pass_ms(SETTLE_MS)

    # ------------------------------------------------------------ clients

    def ask(self, request: Any, *capabilities: str, connection: int = 1, heir: bool | None = None) -> Any:
        """The answer. Raises `Gone`."""
        context = RequestContext("c", "/127.0.0.1", connection, capabilities=frozenset(capabilities))
        while True:
            told: list[Any] = []
            boots, until_ms = self.boots, self.clock.now_ms + PATIENCE_MS
            sent = self._fresh(request)
            self.guarded(lambda sent=sent, told=told: self.broker.submit(sent, context, told.append))
            while not told and boots == self.boots:
                assert self.clock.now_ms < until_ms, f"no answer to {request}"
                self.pass_ms(10)
            if told:
                return told[0]
            if self.heirs if heir is None else heir:
                raise Gone

    @staticmethod
    def _fresh(request: Any) -> Any:
        """A broker writes into the batches of a produce: what is sent again is sent as it was."""
        return request() if callable(request) else request

    def until(self, ask: Callable[[], Any], code: Callable[[Any], int], *passing: int) -> Any:
        """Ask until the error is none of those that pass."""
        until_ms = self.clock.now_ms + PATIENCE_MS
        while code(response := ask()) in passing:
            assert self.clock.now_ms < until_ms, response
            self.pass_ms(50)
        return response

    # ------------------------------------------------------------ the logs

    def stored(self, topic: str, partition: int = 0) -> Iterator[tuple[BatchFacts, list[Record]]]:
        """Every batch of a log; its checksum is verified."""
        replica = self.broker.replicas.led.get(TopicPartition(topic, partition))
        if replica is None:
            return
        offset = replica.log.start_offset
        while (found := replica.read(offset, 1 << 20, READ_UNCOMMITTED, min_one=True)) is not None:
            data = found.read()
            for facts in batches(data):
                assert facts.base_offset == offset, "a hole"
                yield facts, decode_batch(data, facts, KERNEL.codec_for, verify_crc=True)
                offset = facts.last_offset + 1

    def committed(self, topic: str, partition: int = 0) -> list[bytes]:
        """What a reader of committed records sees."""
        replica = self.broker.replicas.led[TopicPartition(topic, partition)]
        end = replica.leader.readable_end(READ_COMMITTED)
        fates = fates_of(self.stored(topic, partition))
        return [
            record.value or b""
            for number, (facts, records) in enumerate(self.stored(topic, partition))
            if not facts.is_control and fates.get(number, True)
            for record in records
            if record.offset < end
        ]


def fates_of(stored: Iterator[tuple[BatchFacts, list[Record]]]) -> dict[int, bool]:
    """Number of a transactional batch → whether its transaction was committed; none where it is open."""
    opened: dict[int, list[int]] = {}
    fates: dict[int, bool] = {}
    for number, (facts, records) in enumerate(stored):
        if facts.is_control:
            committed = records[0].key == b"\0\0\0\x01"
            fates.update(dict.fromkeys(opened.pop(facts.producer_id, ()), committed))
        elif facts.is_transactional:
            opened.setdefault(facts.producer_id, []).append(number)
    return fates


@pytest.fixture
def make_world() -> Callable[..., World]:
    return World
