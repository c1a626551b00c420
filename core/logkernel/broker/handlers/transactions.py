"""What a broker must know of transactions: their markers, who writes in them, and that a coordinator confirms them.

The first batch that a transaction writes to a partition is held until its coordinator confirms that the partition
belongs to it (KIP-890): else a batch that was late on its way could open a transaction that nobody will ever end.
Producers of transactions v2 do not add partitions themselves, so for them the same question adds the partition.

    a transactional batch comes                  its transaction is open here   written
                                                 others of its producer wait    waits behind them
                                                 else                           waits; the coordinator is asked
    he confirms                                  the first that waits is written, the next are tried as if they came now
    he refuses                                   the first that waits is refused, the next are tried as if they came now
    he is busy with the transaction before (v2)  asked again, for a moment
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import define

from logkernel.contracts import Answer, RequestContext
from logkernel.controller.names import check_name
from logkernel.errors import (
    ClusterAuthorizationFailed,
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    NetworkException,
    NotCoordinator,
    NotEnoughReplicas,
    ProducerFenced,
    TransactionAbortable,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from logkernel.partition.effects import Outcome
from logkernel.record.batch import HEADER_BYTES, MAGIC_OFFSET, parse_header
from logkernel.record.control import EndTxnMarker, marker_record
from logkernel.requests.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from logkernel.vocabulary import BatchFacts, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker
    from logkernel.broker.replicas.replica import Replica, Ticket

COORDINATOR_REQUEST: Final = "AddPartitionsToTxnRequest"

AS_PRODUCERS_KNOW: Final[Mapping[int, int]] = {
    ProducerFenced.code: InvalidProducerEpoch.code,
    ClusterAuthorizationFailed.code: InvalidTxnState.code,
    # Producers do not retry all of these, but they all retry this one, and ask for no metadata meanwhile.
    ConcurrentTransactions.code: NotEnoughReplicas.code,
    NetworkException.code: NotEnoughReplicas.code,
    CoordinatorLoadInProgress.code: NotEnoughReplicas.code,
    CoordinatorNotAvailable.code: NotEnoughReplicas.code,
    NotCoordinator.code: NotEnoughReplicas.code,
}
"""What a coordinator answers → what a producer is told."""

# ---------------------------------------------------------------- verification


@define
class Write:
    """A produce of one partition that names a transaction."""

    replica: Replica
    data: Any
    ticket: Ticket
    producer_id: int = -1
    epoch: int = -1
    sequence: int = -1
    transactional: bool = False
    guard: int = 0

    def __attrs_post_init__(self) -> None:
        """Look at the batch's header. What is no batch is left to the replica to refuse."""
        if len(self.data) < HEADER_BYTES or self.data[MAGIC_OFFSET] != 2:
            return
        try:
            facts: BatchFacts = parse_header(self.data, 0)
        except KafkaError:
            return
        self.producer_id, self.epoch, self.sequence = facts.producer_id, facts.producer_epoch, facts.base_sequence
        self.transactional = facts.is_transactional and not facts.is_control and facts.producer_id >= 0

    @property
    def key(self) -> tuple[TopicPartition, int]:
        return self.replica.name, self.producer_id


@define
class Terms:
    """What the writes of one produce request have in common."""

    transactional_id: str
    acks: int
    wall_ms: int
    deadline_ms: int
    implicit: bool
    """Transactions v2: the partition is added, not just looked up."""
    knows_abortable: bool


class Verifications:
    """Transactional writes that wait for their coordinator's word, by partition and producer, in order."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: dict[tuple[TopicPartition, int], deque[tuple[Write, Terms]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def write(self, writes: Sequence[Write], terms: Terms) -> None:
        """Write what may be written, ask for the rest. Data that must wait is copied."""
        producers = {write.producer_id for write in writes if write.transactional}
        if len(producers) > 1:
            for write in writes:
                write.ticket.deliver(Outcome(InvalidProducerIdMapping.code, error_message="more than one producer id"))
            return
        asking = [write for write in writes if self._must_ask(write, terms)]
        if asking:
            self._ask(asking, terms, self._broker.clock.mono_ms())
            self._keep(writes)

    def _must_ask(self, write: Write, terms: Terms) -> bool:
        """Write it, or let it wait; whether it is the first that waits."""
        if write.transactional and not self._is_gone(write):
            behind = self._waiting.get(write.key)
            if behind is not None:
                write.data = bytearray(write.data)
                behind.append((write, terms))
                return False
            write.guard = write.replica.leader.on_verification(
                write.producer_id, write.epoch, write.sequence, terms.implicit, terms.wall_ms
            )
            if write.guard and self._is_asked_for(terms):
                self._waiting[write.key] = deque([(write, terms)])
                return True
        self._write(write, terms)
        return False

    def _is_gone(self, write: Write) -> bool:
        """Whether the partition was deleted, or went offline, while the write waited."""
        return self._broker.replicas.get(write.replica.name) is not write.replica

    def _is_asked_for(self, terms: Terms) -> bool:
        return terms.implicit or bool(self._broker.config.get("transaction.partition.verification.enable"))

    def _keep(self, writes: Sequence[Write]) -> None:
        """The request's buffer is about to be used again: copy what still waits for an answer."""
        for write in writes:
            waiting = self._waiting.get(write.key)
            if waiting and waiting[0][0] is write:
                write.data = bytearray(write.data)

    def _ask(self, writes: Sequence[Write], terms: Terms, since_ms: int) -> None:
        if COORDINATOR_REQUEST not in self._broker.serves():
            self._settle(writes, _all(writes, InvalidProducerIdMapping.code))
            return
        topics: dict[str, list[int]] = {}
        for write in writes:
            topics.setdefault(write.replica.name.topic, []).append(write.replica.name.partition)
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=terms.transactional_id,
            producer_id=writes[0].producer_id,
            producer_epoch=writes[0].epoch,
            verify_only=not terms.implicit,
            topics=[AddPartitionsToTxnTopic(name, partitions) for name, partitions in topics.items()],
        )

        def heard(response: AddPartitionsToTxnResponse) -> None:
            codes = _codes(writes, response)
            again = [write for write in writes if codes.get(write.replica.name) == ConcurrentTransactions.code]
            if again and terms.implicit and self._may_ask_again(since_ms):
                self._later(again, terms, since_ms)
                self._settle([write for write in writes if write not in again], codes)
            else:
                self._settle(writes, codes)

        context = RequestContext(client_id="broker", internal=True)
        self._broker.ask(AddPartitionsToTxnRequest([transaction]), context, heard)

    def _may_ask_again(self, since_ms: int) -> bool:
        longest_ms = int(self._broker.config.get("add.partitions.to.txn.retry.backoff.max.ms"))
        return self._broker.clock.mono_ms() - since_ms < longest_ms

    def _later(self, writes: Sequence[Write], terms: Terms, since_ms: int) -> None:
        """The transaction before is about to end: the producer would wait longer, and send all of it again."""
        pause_ms = int(self._broker.config.get("add.partitions.to.txn.retry.backoff.ms"))
        self._broker.timers.at(self._broker.clock.mono_ms() + pause_ms, lambda: self._ask(writes, terms, since_ms))

    def _settle(self, writes: Sequence[Write], codes: Mapping[TopicPartition, int]) -> None:
        """The coordinator has spoken: write or refuse those who waited for it, then look at those behind them."""
        for write in writes:
            behind = self._waiting.pop(write.key)
            _, terms = behind.popleft()
            code = codes.get(write.replica.name, UnknownServerError.code)
            if code:
                write.ticket.deliver(_refusal(code, terms))
            else:
                self._write(write, terms)
            while behind:
                following, its_terms = behind.popleft()
                if self._must_ask(following, its_terms):
                    self._waiting[following.key].extend(behind)
                    self._ask([following], its_terms, self._broker.clock.mono_ms())
                    break

    def _write(self, write: Write, terms: Terms) -> None:
        if self._is_gone(write):
            write.ticket.deliver(Outcome(self._broker.absence(*write.replica.name).code))
            return
        write.replica.produce(write.data, terms.acks, write.ticket, terms.wall_ms, terms.deadline_ms, guard=write.guard)


def _all(writes: Sequence[Write], code: int) -> dict[TopicPartition, int]:
    return {write.replica.name: code for write in writes}


def _codes(writes: Sequence[Write], response: AddPartitionsToTxnResponse) -> dict[TopicPartition, int]:
    if response.error_code:
        return _all(writes, response.error_code)
    return {
        TopicPartition(topic.name, row.partition_index): row.partition_error_code
        for transaction in response.results_by_transaction
        for topic in transaction.topic_results
        for row in topic.results_by_partition
    }


def _refusal(code: int, terms: Terms) -> Outcome:
    if code == TransactionAbortable.code and not terms.knows_abortable:
        code = InvalidTxnState.code
    told = AS_PRODUCERS_KNOW.get(code, code)
    if told != NotEnoughReplicas.code:  # it says what is the matter, and clients have words for it
        return Outcome(told)
    return Outcome(told, error_message=f"the transaction's coordinator did not confirm this partition (error {code})")


# ---------------------------------------------------------------- WriteTxnMarkers


class _Markers:
    """One WriteTxnMarkers under way."""

    __slots__ = ("_answer", "missing", "response")

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.response = WriteTxnMarkersResponse()
        self.missing = 1  # held by the handler itself until all markers are handed out

    def done(self) -> None:
        self.missing -= 1
        if not self.missing:
            self._answer(self.response)


class _MarkerTicket:
    """The ticket of one marker in one partition."""

    __slots__ = ("_broker", "_marker", "_markers", "_name", "_row", "_wall_ms")

    def __init__(
        self,
        broker: Broker,
        markers: _Markers,
        name: TopicPartition,
        marker: WritableTxnMarker,
        row: WritableTxnMarkerPartitionResult,
        wall_ms: int,
    ) -> None:
        self._broker, self._markers, self._name, self._marker, self._row = broker, markers, name, marker, row
        self._wall_ms = wall_ms
        markers.missing += 1

    def appended(self, base_offset: int) -> None:
        """A service whose state lies in this log learns of it as it would by reading the log."""
        marker = self._marker
        record = marker_record(marker.transaction_result, marker.coordinator_epoch, self._wall_ms)
        record.offset = base_offset
        self._broker.control_appended(self._name, marker.producer_id, marker.producer_epoch, [record])

    def deliver(self, outcome: Outcome) -> None:
        self._row.error_code = outcome.error_code
        self._markers.done()


def write_txn_markers(broker: Broker, request: WriteTxnMarkersRequest, context: RequestContext, answer: Answer) -> None:
    """Markers as their coordinator, or an operator who ends a hanging transaction, wants them written."""
    markers = _Markers(answer)
    wall_ms = broker.clock.wall_ms()
    deadline_ms = broker.clock.mono_ms() + int(broker.config.get("request.timeout.ms", 30_000))
    for marker in request.markers:
        result = WritableTxnMarkerResult(marker.producer_id)
        markers.response.markers.append(result)
        decision = EndTxnMarker(marker.transaction_result, marker.coordinator_epoch)
        for topic in marker.topics:
            rows = [WritableTxnMarkerPartitionResult(index) for index in topic.partition_indexes]
            result.topics.append(WritableTxnMarkerTopicResult(topic.name, rows))
            for row in rows:
                name = TopicPartition(topic.name, row.partition_index)
                replica = broker.replicas.get(name)
                if replica is None:
                    row.error_code = broker.absence(*name).code
                    continue
                ticket = _MarkerTicket(broker, markers, name, marker, row, wall_ms)
                replica.end_transaction(
                    marker.producer_id,
                    marker.producer_epoch,
                    decision,
                    marker.transaction_version,
                    ticket,
                    wall_ms,
                    deadline_ms,
                )
    markers.done()


# ---------------------------------------------------------------- DescribeProducers


def describe_producers(
    broker: Broker, request: DescribeProducersRequest, context: RequestContext, answer: Answer
) -> None:
    response = DescribeProducersResponse()
    for topic in request.topics:
        rows = [_described(broker, topic.name, index) for index in topic.partition_indexes]
        response.topics.append(TopicResponse(topic.name, rows))
    answer(response)


def _described(broker: Broker, topic: str, index: int) -> PartitionResponse:
    row = PartitionResponse(index)
    try:
        check_name(topic)
        if broker.cluster.partition_count(topic) is None:
            raise UnknownTopicOrPartition(f"there is no topic {topic}")
        replica = broker.replica(TopicPartition(topic, index))
    except KafkaError as error:
        row.error_code, row.error_message = error.code, str(error)
        return row
    row.active_producers = [
        ProducerState(
            producer_id=entry.producer_id,
            producer_epoch=entry.producer_epoch,
            last_sequence=entry.batches[-1][0] if entry.batches else -1,
            last_timestamp=entry.last_timestamp_ms,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.current_txn_first_offset,
        )
        for entry in replica.leader.producers.entries()
    ]
    return row
