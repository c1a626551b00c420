"""Transactional writes that wait until their coordinator confirms them.

The first batch that a transaction writes to a partition is held until its coordinator confirms that the partition
belongs to it (KIP-890): else a batch that was late on its way could open a transaction that nobody will ever end.
Producers of transactions v2 do not add partitions themselves, so for them the same question adds the partition.

    a transactional batch comes                  its transaction is open here   written
                                                 others of its producer wait    waits behind them
                                                 else                           waits; the coordinator is asked
    confirmed                                    write the first waiting batch, then handle the next as if they had just
                                                 arrived
    refused                                      refuse the first waiting batch, then handle the next likewise
    busy with the transaction before (v2)        ask again, for a moment
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import define

from logkernel.broker.replicas.manager import ReplicaManager
from logkernel.broker.runtime import Runtime
from logkernel.contracts import Answer, RequestContext
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
)
from logkernel.partition.effects import Outcome
from logkernel.record.batch import HEADER_BYTES, MAGIC_OFFSET, parse_header
from logkernel.requests.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from logkernel.vocabulary import BatchFacts, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.replicas.leader_replica import LeaderReplica, OutcomeReceiver

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
"""Error code of a coordinator → error code for the producer."""


@define
class PartitionWrite:
    """A produce of one partition that names a transaction."""

    replica: LeaderReplica
    data: Any
    receiver: OutcomeReceiver
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
    client: RequestContext
    acks: int
    wall_ms: int
    deadline_ms: int
    implicit: bool
    """Transactions v2: the partition is added, not just looked up."""
    knows_abortable: bool


class Verifications:
    """Transactional writes that wait for their coordinator's word, by partition and producer, in order."""

    def __init__(
        self,
        runtime: Runtime,
        replicas: ReplicaManager,
        serves: Callable[[], Collection[str]],
        dispatch: Callable[[Any, RequestContext, Answer], None],
    ) -> None:
        """`serves` names the requests that are answered here; `dispatch` has one answered within this turn."""
        self._runtime = runtime
        self._replicas = replicas
        self._serves = serves
        self._dispatch = dispatch
        self._waiting: dict[tuple[TopicPartition, int], deque[tuple[PartitionWrite, Terms]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def write(self, writes: Sequence[PartitionWrite], terms: Terms) -> None:
        """Write what may be written, ask for the rest. Data that must wait is copied."""
        producers = {write.producer_id for write in writes if write.transactional}
        if len(producers) > 1:
            for write in writes:
                write.receiver.deliver(
                    Outcome(InvalidProducerIdMapping.code, error_message="more than one producer id")
                )
            return
        asking = [write for write in writes if self._must_ask(write, terms)]
        if asking:
            self._ask(asking, terms, self._runtime.clock.mono_ms())
            self._keep(writes)

    def _must_ask(self, write: PartitionWrite, terms: Terms) -> bool:
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

    def _is_gone(self, write: PartitionWrite) -> bool:
        """Whether the partition was deleted, or went offline, while the write waited."""
        return not write.replica.in_service

    def _is_asked_for(self, terms: Terms) -> bool:
        return terms.implicit or bool(self._runtime.config.get("transaction.partition.verification.enable"))

    def _keep(self, writes: Sequence[PartitionWrite]) -> None:
        """The request's buffer is about to be used again: copy what still waits for an answer."""
        for write in writes:
            waiting = self._waiting.get(write.key)
            if waiting and waiting[0][0] is write:
                write.data = bytearray(write.data)

    def _ask(self, writes: Sequence[PartitionWrite], terms: Terms, since_ms: int) -> None:
        if COORDINATOR_REQUEST not in self._serves():
            self._take_codes(writes, _all(writes, InvalidProducerIdMapping.code))
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
                self._take_codes([write for write in writes if write not in again], codes)
            else:
                self._take_codes(writes, codes)

        context = RequestContext(client_id="broker", internal=True)
        self._dispatch(AddPartitionsToTxnRequest([transaction]), context, heard)

    def _may_ask_again(self, since_ms: int) -> bool:
        longest_ms = int(self._runtime.config.get("add.partitions.to.txn.retry.backoff.max.ms"))
        return self._runtime.clock.mono_ms() - since_ms < longest_ms

    def _later(self, writes: Sequence[PartitionWrite], terms: Terms, since_ms: int) -> None:
        """The transaction before is about to end: the producer would wait longer, and send all of it again."""
        pause_ms = int(self._runtime.config.get("add.partitions.to.txn.retry.backoff.ms"))
        self._runtime.after(pause_ms, lambda: self._ask(writes, terms, since_ms))

    def _take_codes(self, writes: Sequence[PartitionWrite], codes: Mapping[TopicPartition, int]) -> None:
        """Take the coordinator's answer: write or refuse the waiting batch, then handle those behind it."""
        for write in writes:
            behind = self._waiting.pop(write.key)
            _, terms = behind.popleft()
            code = codes.get(write.replica.name, UnknownServerError.code)
            if code:
                write.receiver.deliver(_refusal(code, terms))
            else:
                self._write(write, terms)
            while behind:
                following, its_terms = behind.popleft()
                if self._must_ask(following, its_terms):
                    self._waiting[following.key].extend(behind)
                    self._ask([following], its_terms, self._runtime.clock.mono_ms())
                    break

    def _write(self, write: PartitionWrite, terms: Terms) -> None:
        if self._is_gone(write):
            write.receiver.deliver(Outcome(self._replicas.absence(*write.replica.name).code))
            return
        write.replica.produce(
            write.data, terms.acks, write.receiver, terms.wall_ms, terms.deadline_ms, write.guard, terms.client
        )


def _all(writes: Sequence[PartitionWrite], code: int) -> dict[TopicPartition, int]:
    return {write.replica.name: code for write in writes}


def _codes(writes: Sequence[PartitionWrite], response: AddPartitionsToTxnResponse) -> dict[TopicPartition, int]:
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
