"""From ready batches to produce requests, and from answers to outcomes. Pure.

    answer                                       what follows
    no error, DUPLICATE_SEQUENCE_NUMBER          the batch is done
    MESSAGE_TOO_LARGE, more than one record      split, and sent again
    retriable, time and retries left             back to its queue, with a growing wait; leadership errors ask
                                                 for metadata, and a leader named in passing is believed at once
    OUT_OF_ORDER_SEQUENCE_NUMBER, not the next   an earlier one is still to come: sent again
    the same, though it is the next              the broker lost our state: new epoch, numbered from 0
    any other                                    the batch failed; its transaction can only be aborted
    none (connection lost, timeout)              as a retriable error; perhaps it was written

Time is an argument; `step` does all that is due and says when to come again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from attrs import define

from logkernel.client.cluster.calls import ClientCore, earliest
from logkernel.client.cluster.permissions import explained
from logkernel.client.producer.accumulator import Accumulator, Queue
from logkernel.client.producer.batches import DONE, Batch
from logkernel.client.producer.metrics import ProducerMetrics
from logkernel.client.producer.sequences import Sequences
from logkernel.client.producer.transactions import ABORTABLE, ABORTING, COMMITTING, FATAL, V1, Transactions
from logkernel.contracts import Codec
from logkernel.errors import (
    DuplicateSequenceNumber,
    FencedLeaderEpoch,
    InvalidProducerEpoch,
    KafkaError,
    KafkaStorageError,
    LeaderNotAvailable,
    LogkernelError,
    MessageTooLarge,
    NetworkException,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OutOfOrderSequenceNumber,
    RequestTimedOut,
    TopicAuthorizationFailed,
    UnknownLeaderEpoch,
    UnknownProducerId,
    UnknownTopicId,
    UnknownTopicOrPartition,
    error_for,
)
from logkernel.peer.backoff import Backoff
from logkernel.peer.network import NONE
from logkernel.requests.data import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from logkernel.vocabulary import NO_ID

METADATA_ERRORS: Final = (
    FencedLeaderEpoch,
    KafkaStorageError,
    LeaderNotAvailable,
    NetworkException,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
"""Errors after which the leader must be looked up again."""
UNCERTAIN: Final = (
    KafkaStorageError,
    NetworkException,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
"""Errors after which the batch may be in the log nevertheless. A leader that appended it and resigns, is stopped or
loses its disk before the replicas have it answers as one that never was the leader."""
IDLE_CHECK_MS: Final = 1000


@define(eq=False)
class _Produced:
    """Takes the answer to one produce request."""

    sender: Sender
    node: int
    batches: list[Batch]

    def complete(self, response: Any, error: Exception | None, now_ms: int) -> None:
        self.sender.answered(self.node, self.batches, response, error, now_ms)


class Sender:
    """See the module."""

    name = "producer"

    def __init__(
        self,
        settings: Mapping[str, Any],
        bootstrap: list[tuple[str, int]],
        random: Random,
        codec: Codec | None,
        codec_for: Callable[[int], Codec],
    ) -> None:
        self.settings = settings
        self.core = ClientCore(settings, bootstrap, random)
        self.accumulator = Accumulator(settings, codec, codec_for)
        self.transactions = Transactions(self.core, settings)
        self.metrics = ProducerMetrics(settings)
        self.idempotent: bool = settings["enable.idempotence"]
        self.node_ready_ms: dict[int, int] = {}
        self.node_drained_ms: dict[int, int] = {}
        """When a node last had something to get, and when it could get it (`partitioner.availability.timeout.ms`)."""
        self._acks: int = settings["acks"]
        self._timeout_ms: int = settings["request.timeout.ms"]
        self._retries: int = settings["retries"]
        self._max_in_flight: int = settings["max.in.flight.requests.per.connection"]
        self._backoff = Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"], random)
        self._restless: dict[Queue, None] = {}
        """Queues whose sequences must be renumbered or get a new epoch."""
        self._idle_check_ms = 0
        self._refusals = 0
        self._flying: dict[Batch, None] = {}
        """Batches on the wire, or written off while there."""

    # ------------------------------------------------------------ a step

    def step(self, wall_ms: int, now_ms: int) -> int | None:
        """Do all that is due; returns the next time (monotonic ms) at which something will be, or None."""
        accumulator, transactions = self.accumulator, self.transactions
        self._expire(now_ms)
        self._transact(now_ms)
        self._renumber()
        self._forget_idle(now_ms)
        sent_ms = self._send(now_ms)
        if transactions.wants_partitions:
            transactions.step(incomplete=True)
        core_ms = self.core.step(wall_ms, now_ms)
        if self._refusals != self.core.refusals:
            self._refused()
        if transactions.state in (COMMITTING, ABORTING):
            transactions.step(bool(accumulator.incomplete))
            core_ms = earliest(core_ms, self.core.step(wall_ms, now_ms))
        return earliest(sent_ms, core_ms, accumulator.next_expiry_ms(), self.metrics.roll(now_ms))

    def _transact(self, now_ms: int) -> None:
        transactions, accumulator = self.transactions, self.accumulator
        if transactions.id is None:
            if self.idempotent and not transactions.has_id and accumulator.active:
                transactions.need_id()
        elif transactions.state in (ABORTING, ABORTABLE):
            self._drop_unsent(transactions.error or LogkernelError("the transaction was aborted"))
        transactions.step(bool(accumulator.incomplete))
        if transactions.state == FATAL and transactions.error is not None:
            self._drop_unsent(transactions.error)

    def _drop_unsent(self, error: Exception) -> None:
        for batch in self.accumulator.drop_unsent():
            self._failed(batch, error)

    def _refused(self) -> None:
        """A broker refused a connection: fail what waits for it, at once."""
        self._refusals = self.core.refusals
        for batch in self.accumulator.drop(lambda batch: self._refusal(batch) is not None):
            error = self._refusal(batch)
            assert error is not None
            self._failed(batch, error)

    def _refusal(self, batch: Batch) -> Exception | None:
        return self.core.refusal_for(self.core.metadata.leader(batch.topic, batch.partition))

    def _forget_idle(self, now_ms: int) -> None:
        if now_ms < self._idle_check_ms:
            return
        self._idle_check_ms = now_ms + IDLE_CHECK_MS
        self.core.metadata.forget_idle(now_ms, (topic for topic, _ in self.accumulator.active))

    def _expire(self, now_ms: int) -> None:
        accumulator = self.accumulator
        first_ms = accumulator.next_expiry_ms()
        if first_ms is None or first_ms > now_ms:
            return
        late = [batch for batch in self._flying if batch.created_ms + accumulator.delivery_timeout_ms <= now_ms]
        for batch in late:
            batch.maybe_written = True
        for batch in [*late, *accumulator.expired(now_ms)]:
            if batch.state != DONE:
                what = f"{batch.count} records for {batch.topic}-{batch.partition}"
                why = f"not acknowledged within delivery.timeout.ms, after {batch.attempts} attempts; check the brokers"
                self._failed(batch, RequestTimedOut(f"{what}: {why}"))

    def _renumber(self) -> None:
        """Renumber, or take a new epoch, where that is asked for and nothing is on the wire."""
        if not self._restless:
            return
        transactions = self.transactions
        for queue in list(self._restless):
            sequences = queue.sequences
            sequences.close_gaps()
            if sequences.needs_epoch and transactions.id is None:
                if transactions.new_epoch():
                    sequences.restart(transactions.producer_id, transactions.epoch)
            elif sequences.needs_epoch:
                sequences.reset = sequences.unresolved = False  # the transaction is lost; an abort brings the epoch
            if not (sequences.reset or sequences.renumber or sequences.unresolved):
                del self._restless[queue]

    # ------------------------------------------------------------ out

    def _send(self, now_ms: int) -> int | None:
        accumulator, core = self.accumulator, self.core
        if not accumulator.active:
            return None
        if self.idempotent and not self.transactions.has_id:
            return None
        ready = accumulator.ready(core.metadata, now_ms)
        if ready.unknown:
            for topic in ready.unknown:
                core.metadata.want(topic, now_ms)
            core.metadata.request_update()
        for node in ready.nodes:
            self.node_ready_ms[node] = now_ms
            if not core.network.ready(node, now_ms):
                if node not in core.network.nodes:
                    core.metadata.request_update()
                self.node_drained_ms.setdefault(node, now_ms)
                continue
            whole = False
            while core.network.in_flight(node) < self._max_in_flight:
                self.node_drained_ms[node] = now_ms
                batches = accumulator.drain(core.metadata, node, now_ms, self._may_send, whole=whole)
                if not batches:
                    break
                self._send_to(node, batches, now_ms)
                whole = True
        return ready.next_ms

    def _may_send(self, queue: Queue, batch: Batch) -> bool:
        if not self.idempotent:
            return True
        transactions = self.transactions
        is_new = batch.sequence < 0 and transactions.id is not None
        if is_new and not transactions.may_send((queue.topic, queue.partition)):
            return False
        return queue.sequences.may_send(batch, transactions.producer_id, transactions.epoch)

    def _send_to(self, node: int, batches: list[Batch], now_ms: int) -> None:
        transactions, topics = self.transactions, self.core.metadata.topics
        rows: dict[str, TopicProduceData] = {}
        for batch in batches:
            queue = self.accumulator.queue(batch.topic, batch.partition)
            sequence, producer_id, epoch = -1, -1, -1
            if self.idempotent:
                sequence = queue.sequences.assign(batch, transactions.producer_id, transactions.epoch)
                producer_id, epoch = queue.sequences.producer_id, queue.sequences.epoch
            batch.stamp(producer_id, epoch, sequence, transactions.id is not None)
            queue.sequences.wire += 1
            self._flying[batch] = None
            row = rows.get(batch.topic)
            if row is None:
                info = topics.get(batch.topic)
                row = rows[batch.topic] = TopicProduceData(batch.topic, [], info.id if info is not None else NO_ID)
            row.partition_data.append(PartitionProduceData(batch.partition, batch.wire))
        self.metrics.request_sent(batches, now_ms)
        request = ProduceRequest(transactions.id, self._acks, self._timeout_ms, list(rows.values()))
        withheld = V1 if transactions.id is not None and not transactions.v2 else NONE
        self.core.network.send(node, request, _Produced(self, node, batches), now_ms, withheld=withheld)

    # ------------------------------------------------------------ in

    def answered(self, node: int, batches: list[Batch], response: Any, error: Exception | None, now_ms: int) -> None:
        """One produce request came to an end."""
        rows = self._rows(response) if response is not None else {}
        self.metrics.request_done(self.core.network.nodes.get(node))
        for batch in batches:
            self._flying.pop(batch, None)
            queue = self.accumulator.queue(batch.topic, batch.partition)
            queue.sequences.wire -= 1
            if batch.state == DONE:
                continue
            row = rows.get((batch.topic, batch.partition))
            if error is not None:
                batch.lost = batch.lost or isinstance(error, NetworkException)
                batch.maybe_written = batch.maybe_written or batch.lost
                self._again_or_fail(queue, batch, error, now_ms)
            elif self._acks == 0:
                self._done(queue, batch, -1, -1)
            elif row is None:
                self._again_or_fail(queue, batch, NetworkException("the response lacks this batch"), now_ms)
            else:
                self._row(queue, batch, row, now_ms)

    def _rows(self, response: ProduceResponse) -> dict[tuple[str, int], PartitionProduceResponse]:
        metadata = self.core.metadata
        for endpoint in response.node_endpoints:
            if metadata.brokers.get(endpoint.node_id) != (endpoint.host, endpoint.port):
                metadata.brokers[endpoint.node_id] = (endpoint.host, endpoint.port)
                metadata.version += 1
        rows = {}
        for topic in response.responses:
            name = topic.name or metadata.names.get(topic.topic_id, "")
            for row in topic.partition_responses:
                rows[name, row.index] = row
        return rows

    def _row(self, queue: Queue, batch: Batch, row: PartitionProduceResponse, now_ms: int) -> None:
        code = row.error_code
        if code == 0:
            at_ms = -1 if row.log_append_time_ms is None else row.log_append_time_ms
            self._done(queue, batch, row.base_offset, at_ms)
            return
        if code == DuplicateSequenceNumber.code:
            self._done(queue, batch, row.base_offset, -1)
            return
        error = error_for(code, row.error_message, about=f"{batch.topic}-{batch.partition}")
        explained(error, "Produce", batch.topic if isinstance(error, TopicAuthorizationFailed) else "")
        if row.current_leader.leader_id >= 0 and isinstance(error, METADATA_ERRORS):
            leader = row.current_leader
            self.core.metadata.set_leader(batch.topic, batch.partition, leader.leader_id, leader.leader_epoch)
        if isinstance(error, MessageTooLarge) and batch.count > 1:
            self.metrics.batch_split()
            batch.attempts += 1
            self.accumulator.split(batch)
            return
        if row.record_errors:
            batch.faults = {fault.batch_index: fault.batch_index_error_message for fault in row.record_errors}
        batch.maybe_written = batch.maybe_written or isinstance(error, UNCERTAIN)
        self._again_or_fail(queue, batch, error, now_ms)

    def _done(self, queue: Queue, batch: Batch, base_offset: int, append_time_ms: int) -> None:
        if self.idempotent:
            queue.sequences.acked(batch)
        self.accumulator.finish(batch, base_offset, append_time_ms, None)

    def _again_or_fail(self, queue: Queue, batch: Batch, error: Exception, now_ms: int) -> None:
        if isinstance(error, METADATA_ERRORS):
            self.core.metadata.request_update()
        if not self._may_retry(queue, batch, error, now_ms):
            self._failed(batch, error)
            return
        batch.retry_ms = now_ms + self._backoff.delay_ms(batch.attempts)
        batch.attempts += 1
        self.metrics.batch_retried(batch)
        self.accumulator.put_back(batch)
        if queue.sequences.reset or queue.sequences.renumber:
            self._restless[queue] = None

    def _may_retry(self, queue: Queue, batch: Batch, error: Exception, now_ms: int) -> bool:
        if batch.attempts >= self._retries or batch.created_ms + self.accumulator.delivery_timeout_ms <= now_ms:
            return False
        if self.transactions.state == FATAL:
            return False
        if self.idempotent and isinstance(error, (OutOfOrderSequenceNumber, UnknownProducerId)):
            return self._out_of_order(queue.sequences, batch)
        if self.idempotent and isinstance(error, InvalidProducerEpoch) and self.transactions.id is None:
            self.transactions.drop_id()
            return False
        return isinstance(error, KafkaError) and error.retriable

    def _out_of_order(self, sequences: Sequences, batch: Batch) -> bool:
        """Whether a batch that the broker found out of order is sent again."""
        if not sequences.unresolved and not sequences.is_next(batch):
            return True
        if self.transactions.id is not None:
            return False
        if sequences.unresolved and any(other.lost for other in sequences.pending):
            return False
        sequences.reset = True
        return True

    def _failed(self, batch: Batch, error: Exception) -> None:
        queue = self.accumulator.queue(batch.topic, batch.partition)
        if self.idempotent:
            queue.sequences.failed(batch)
            if queue.sequences.renumber or queue.sequences.unresolved:
                self._restless[queue] = None
        self.metrics.batch_failed(batch)
        self.accumulator.finish(batch, -1, -1, error)
        self.transactions.batch_failed(error)

    # ------------------------------------------------------------ the end

    def abandon(self, error: Exception) -> None:
        """Give every batch without an outcome this one, at once."""
        for queue in list(self.accumulator.active.values()):
            for batch in list(queue.batches):
                self.accumulator.remove(queue, batch)
        for batch in list(self.accumulator.incomplete):
            self.accumulator.finish(batch, -1, -1, error)
        self._flying.clear()
        self.transactions.fail_for_good(LogkernelError("the producer was closed"))

    # ------------------------------------------------------------ what a driver asks

    @property
    def busy(self) -> bool:
        return bool(self.accumulator.incomplete)

    def take_finished(self) -> list[Callable[[], None]]:
        accumulator = self.accumulator
        accumulator.pool.granted.clear()
        if not accumulator.finished:
            return []
        finished, accumulator.finished = accumulator.finished, []
        return [batch.announce for batch in finished]

    def begin_end(self) -> None:
        self.accumulator.closing = True

    @property
    def windows(self) -> int:
        return self.metrics.closed_windows

    def snapshot(self, now_ms: int) -> dict[str, Any]:
        age_ms = now_ms - max(0, self.core.metadata.answered_ms)
        return self.metrics.snapshot(self.accumulator, self.core.network, age_ms, now_ms)
