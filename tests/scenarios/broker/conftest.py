"""A broker in this process whose transaction coordinator is the test itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from attrs import define, field
from hand_clock import HandClock

import logkernel
from logkernel.contracts import RequestContext
from logkernel.record.encode import encode_batch
from logkernel.requests.data import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from logkernel.requests.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from logkernel.vocabulary import Record

V2 = frozenset({"zstd", "transaction_abortable", "transactions_v2"})
OLD = frozenset({"zstd"})


@define
class Coordinator:
    """Answers AddPartitionsToTxn with `code`, at once or, when `held`, at `speak`."""

    code: int = 0
    held: bool = False
    heard: list[Any] = field(factory=list)
    """Transactions that were asked for."""
    _waiting: list[Callable[[], None]] = field(factory=list)

    def handle(self, request: AddPartitionsToTxnRequest, context: RequestContext, answer: Any) -> None:
        assert context.internal
        (transaction,) = request.transactions
        self.heard.append(transaction)

        def speak() -> None:
            rows = [
                AddPartitionsToTxnTopicResult(
                    topic.name, [AddPartitionsToTxnPartitionResult(index, self.code) for index in topic.partitions]
                )
                for topic in transaction.topics
            ]
            answer(AddPartitionsToTxnResponse(results_by_transaction=[AddPartitionsToTxnResult("", rows)]))

        if self.held:
            self._waiting.append(speak)
        else:
            speak()

    def speak(self, code: int = 0) -> None:
        """Answer what was asked longest ago."""
        self.code = code
        self._waiting.pop(0)()


@define(slots=False)
class World:
    """One topic `t`, producers by number, and what they were told."""

    log: Any
    coordinator: Coordinator | None = None

    old: ClassVar[frozenset[str]] = OLD
    """Capabilities of a producer that adds its partitions itself."""

    @staticmethod
    def codes(answers: list[Any]) -> list[int]:
        """Error codes of a produce's answer by partition; [] while there is none."""
        return [row.error_code for answer in answers for topic in answer.responses for row in topic.partition_responses]

    @property
    def broker(self) -> Any:
        return self.log.broker

    def at(self, mono_ms: int) -> None:
        """Let the broker's clock say `mono_ms`, and what is due run."""
        clock = HandClock(mono_ms)
        self.broker.runtime.clock = clock
        self.broker.runtime.timers.run(mono_ms)

    def ask(self, request: Any, capabilities: frozenset[str] = V2) -> list[Any]:
        """A list that holds the response as soon as it is there."""
        answers: list[Any] = []
        self.broker.submit(request, RequestContext("c", capabilities=capabilities), answers.append)
        return answers

    def send(
        self,
        sequence: int = 0,
        *values: bytes,
        producer: int = 7,
        epoch: int = 0,
        partitions: tuple[int, ...] = (0,),
        transactional_id: str | None = "tx",
        transactional: bool = True,
        capabilities: frozenset[str] = V2,
        timestamp_ms: int = 1,
    ) -> list[Any]:
        """Produce one batch a partition; the buffer is overwritten afterwards, as a connection's is."""
        buffers = []
        for _ in partitions:
            records = [Record(None, value, timestamp_ms=timestamp_ms) for value in values or (b"%d" % sequence,)]
            data = encode_batch(
                records, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
            )
            buffers.append(bytearray(data))
        rows = [PartitionProduceData(p, memoryview(b)) for p, b in zip(partitions, buffers, strict=True)]
        answers = self.ask(ProduceRequest(transactional_id, -1, 1_000, [TopicProduceData("t", rows)]), capabilities)
        for buffer in buffers:
            buffer[:] = bytes(len(buffer))
        return answers

    def mark(
        self,
        *,
        committed: bool = True,
        producer: int = 7,
        epoch: int = 0,
        coordinator_epoch: int = 0,
        version: int = 1,
        topic: str = "t",
        partitions: tuple[int, ...] = (0,),
    ) -> list[int]:
        """End a transaction; the error codes by partition."""
        topics = [WritableTxnMarkerTopic(topic, list(partitions))]
        marker = WritableTxnMarker(producer, epoch, committed, topics, coordinator_epoch, version)
        (response,) = self.ask(WriteTxnMarkersRequest([marker]))
        return [row.error_code for row in response.markers[0].topics[0].partitions]

    def fetch(
        self, offset: int = 0, *, isolation: int = 1, max_bytes: int = 1 << 20, wait_ms: int = 0, min_bytes: int = 1
    ) -> list[Any]:
        asked = FetchPartition(0, offset, max_bytes)
        topics = [FetchTopic("t", [asked])]
        return self.ask(FetchRequest(-1, wait_ms, min_bytes, 1 << 20, isolation, topics), frozenset({"zstd"}))

    def values(self, isolation: str = "read_committed", partition: int = 0) -> list[bytes]:
        return [record.value for record in self.log.read("t", partition, isolation=isolation)]


@pytest.fixture
def world(make_world: Callable[..., World]) -> Iterator[World]:
    with logkernel.open() as log:
        log.create_topic("t", partitions=3)
        yield make_world(log)


@pytest.fixture
def make_world() -> Callable[..., World]:
    """Over a log that the test opened, with or without a coordinator."""

    def make(log: Any, *, coordinator: bool = True) -> World:
        made = World(log, Coordinator() if coordinator else None)
        if coordinator:
            log.broker.router._services["AddPartitionsToTxnRequest"] = made.coordinator
        else:
            log.broker.router._services.pop("AddPartitionsToTxnRequest", None)
        return made

    return make
