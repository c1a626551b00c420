"""A partition that this broker leads: carries out what its leader machine decides, in the order of `Effects`.

Where other brokers follow, `follower_fetched` tells the machine how far they are, `tick` who lags, and proposals for
the in-sync replicas go to `propose`, which tells `isr_accepted`, `isr_refused` or `isr_unanswered` what became of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from logkernel.attrs_lite import mutable
from logkernel.broker.replicas.flushing import NO_DEADLINE
from logkernel.broker.replicas.replica import Replica, StorageFailed
from logkernel.broker.runtime import Runtime
from logkernel.broker.timers import Timer
from logkernel.config.topic import TopicSettings
from logkernel.contracts import Codec, RequestContext
from logkernel.errors import KafkaError, KafkaStorageError, RecordListTooLarge
from logkernel.partition.effects import Effects, Outcome
from logkernel.partition.leader import Leader
from logkernel.partition.news import News
from logkernel.record.batch import parse_header, stamp
from logkernel.record.control import EndTxnMarker, encode_marker
from logkernel.record.validate import WritePolicy, check_produce
from logkernel.storage.disk import PASSING
from logkernel.storage.log import Log
from logkernel.vocabulary import AbortedTxn, BatchFacts, FileSlice, IsrProposal, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.replicas.fetch_plugins import FetchPlugins
    from logkernel.broker.replicas.interceptors import TopicInterceptors
    from logkernel.broker.replicas.quotas import TopicQuotas

log = logging.getLogger("logkernel.replica")

PROPOSED_AGAIN_MS = 50
"""After a proposal that was lost on its way, as Kafka's."""


class OutcomeReceiver(Protocol):
    """Gets the outcome of one append, exactly once."""

    def deliver(self, outcome: Outcome) -> None: ...


@mutable
class PendingAppend:
    """The bytes of the batches in `Effects.append`, and what the append needs besides."""

    data: Any
    acks: int
    receiver: OutcomeReceiver
    wall_ms: int
    deadline_ms: int
    """Monotonic."""
    marker: EndTxnMarker | None = None
    """Of a control batch."""
    on_append: Callable[[int], None] | None = None
    """Called with the base offset once the batches are in the local log, before they are committed."""


Propose = Callable[["LeaderReplica", IsrProposal], None]
"""Sends an AlterPartition to the controller, later; reports the result to the replica."""


def _nobody(replica: LeaderReplica, proposal: IsrProposal) -> None:
    """Drops a proposal: the leader makes it again."""


class LeaderReplica(Replica):
    """A partition that this broker leads: its log, its leader machine and its write policy."""

    __slots__ = (
        "_codec_for",
        "_expiry",
        "_propose",
        "_proposed_ms",
        "end_news",
        "fetch_plugins",
        "interceptors",
        "leader",
        "policy",
        "quotas",
    )

    def __init__(
        self,
        runtime: Runtime,
        name: TopicPartition,
        topic_id: UUID,
        disk_log: Log,
        leader: Leader,
        settings: TopicSettings,
        target_codec: Codec | None,
        *,
        storage_failed: StorageFailed,
        propose: Propose = _nobody,
        before: Replica | None = None,
    ) -> None:
        super().__init__(
            runtime, name, topic_id, disk_log, leader.producers, settings, storage_failed=storage_failed, before=before
        )
        self._propose = propose
        self._proposed_ms = 0
        """When the proposal under way was made last, monotonic."""
        self.end_news: News | None = News() if leader.sync is not None else None
        """Told when a follower's fetch is to be looked at again: for records, another log start or leadership. A
        watermark alone is nothing to answer (`handlers.replica_fetch`). None while nobody follows."""
        self._codec_for = runtime.kernel.codec_for
        self.leader = leader
        self._expiry: Timer | None = None
        self.interceptors: TopicInterceptors | None = None
        """None if the topic names none; likewise `fetch_plugins` and `quotas`."""
        self.fetch_plugins: FetchPlugins | None = None
        self.quotas: TopicQuotas | None = None
        self.configure(settings, target_codec)

    def configure(self, settings: TopicSettings, target_codec: Codec | None) -> None:
        """Take new topic settings at once; `target_codec` is that of `compression.type`, None to leave batches as they
        came (or to decompress them, where it is "uncompressed")."""
        self.settings = settings
        self.log.settings = settings
        self.leader.min_isr = settings.min_insync_replicas
        self.leader.flush_messages = settings.flush_messages
        is_known = target_codec is not None or settings.compression_type == "uncompressed"
        log_append_time = settings.message_timestamp_type == "LogAppendTime"
        self.leader.log_append_time = log_append_time
        self.policy = WritePolicy(
            compression_type=settings.compression_type if is_known else "producer",
            target_codec=target_codec,
            log_append_time=log_append_time,
            timestamp_before_max_ms=settings.message_timestamp_before_max_ms,
            timestamp_after_max_ms=settings.message_timestamp_after_max_ms,
            max_message_bytes=settings.max_message_bytes,
            compacted="compact" in settings.cleanup_policy,
        )
        if settings.produce_interceptors or self.interceptors is not None:
            from logkernel.broker.replicas.interceptors import interceptors_of

            self.interceptors = interceptors_of(self._runtime.kernel, self.name, settings, self.interceptors)
        self.take_quotas(self.quotas)

    def take_quotas(self, quotas: TopicQuotas | None) -> None:
        """Those of the topic on this broker; which fetches ask, as they ask the filters that the settings name."""
        self.quotas = quotas
        if not self.settings.fetch_filters and quotas is None:
            self.fetch_plugins = None
            return
        from logkernel.broker.replicas.fetch_plugins import FetchPlugins, filters_of

        before = self.fetch_plugins.filters if self.fetch_plugins is not None else None
        filters = filters_of(self._runtime.kernel, self.name, self.settings, before)
        self.fetch_plugins = FetchPlugins(filters, quotas)

    # ------------------------------------------------------------ write

    def produce(
        self,
        data: Any,
        acks: int,
        receiver: OutcomeReceiver,
        wall_ms: int,
        deadline_ms: int,
        guard: int | None = None,
        client: RequestContext | None = None,
    ) -> None:
        """Validate, decide, append, answer. Raises nothing: every error is delivered to the receiver.

        `guard`: see `Leader.on_produce`. `client`: who writes; None for this process.
        """
        try:
            if self.interceptors is None:
                checked = check_produce(data, self.policy, self._codec_for, wall_ms)
            else:
                intercept = self.interceptors.intercept(self.leader.producers, client, wall_ms, guard)
                checked = check_produce(data, self.policy, self._codec_for, wall_ms, intercept)
        except KafkaError as error:
            faults = getattr(error, "record_errors", ())
            receiver.deliver(Outcome(error.code, error_message=str(error) or None, record_errors=faults))
            return
        self.store(checked.batches, PendingAppend(checked.data, acks, receiver, wall_ms, deadline_ms), guard)

    def store(self, batches: list[BatchFacts], append: PendingAppend, guard: int | None = None) -> None:
        """As `produce`, of what was checked or made by the broker itself (`validate.own_batch`)."""
        size, limit = len(append.data), self.settings.segment_bytes
        if size > limit and batches:
            message = f"{size} bytes do not fit a segment of segment.bytes={limit}"
            append.receiver.deliver(Outcome(RecordListTooLarge.code, error_message=message))
            return
        effects = self.leader.on_produce(batches, append.acks, append.receiver, guard, append.deadline_ms)
        self._carry_out(effects, append)

    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        marker: EndTxnMarker,
        version: int,
        receiver: OutcomeReceiver,
        wall_ms: int,
        deadline_ms: int,
        on_append: Callable[[int], None] | None = None,
    ) -> None:
        """Write the marker that ends a producer's transaction here. Raises nothing."""
        data = bytearray(
            encode_marker(producer_id, producer_epoch, marker.committed, marker.coordinator_epoch, wall_ms)
        )
        effects = self.leader.on_marker(parse_header(data, 0), marker, version, receiver)
        self._carry_out(effects, PendingAppend(data, -1, receiver, wall_ms, deadline_ms, marker, on_append))

    # ------------------------------------------------------------ effects

    def _carry_out(self, effects: Effects, append: PendingAppend | None = None) -> None:
        """Everything that the machine decides happens here, in the order of the fields of `Effects`.

        The result of an append is an event of its own, whose effects are carried out next. `append` is what is
        appended."""
        following: Effects | None = effects
        while following is not None:
            effects, following = following, None
            if effects.append is not None:
                assert append is not None, "an append needs its bytes"
                following = self._append(effects.append, effects.aborted, append)
            if effects.persist is not None:
                self.flush()
            if effects.propose is not None:
                self._proposed_ms = self._runtime.clock.mono_ms()
                self._propose(self, effects.propose)
            for receiver, outcome in effects.answer:
                receiver.deliver(outcome)
            if effects.wake:
                self.tell()
        if self.leader.parked:
            self._expire_by(None if append is None else append.deadline_ms)

    def _expire_by(self, deadline_ms: int | None) -> None:
        """Have the timer of parked answers run in time; `deadline_ms` is that of the last one."""
        timer = self._expiry
        if timer is None:
            deadline = self.leader.next_deadline()
            assert deadline is not None
            self._expiry = self._runtime.timers.at(deadline, self._expire)
        elif deadline_ms is not None and deadline_ms < timer.when_ms:
            timer.cancel()
            self._expiry = self._runtime.timers.at(deadline_ms, self._expire)

    def _append(self, batches: list[BatchFacts], aborted: AbortedTxn | None, append: PendingAppend) -> Effects:
        """Put batches into the log; returns what the machine decides of how that went."""
        data = append.data
        for facts in batches:
            stamp(data, facts.position, facts.base_offset, facts.leader_epoch)
        try:
            self.log.append(data, batches, append.wall_ms)
            if aborted is not None:
                self.log.note_aborted(aborted)
        except (OSError, KafkaError) as error:
            refused = self._refusal(error) if isinstance(error, OSError) else error
            return self.leader.on_append_failed(append.receiver, refused)
        if append.on_append is not None:
            append.on_append(batches[0].base_offset)
        leader = self.leader
        effects = leader.on_appended(
            batches, append.acks, append.receiver, append.wall_ms, append.deadline_ms, append.marker
        )
        if self.settings.flush_ms < NO_DEADLINE and leader.unflushed:
            self.flushing.flush_in(self.settings.flush_ms)
        if self.end_news is not None:
            self.end_news.tell()
        return effects

    def _refusal(self, error: OSError) -> KafkaError:
        """Without room or file handles the write is refused and the log is as before; other errors end its service."""
        if error.errno not in PASSING:
            return self.storage_failed(error)
        log.error("write refused: partition=%s error=%s", self.name, error)
        return KafkaStorageError(f"{self.name}: {error}")

    def went_offline(self, error: KafkaError) -> None:
        self._carry_out(self.leader.on_offline(error))

    def _expire(self) -> None:
        self._expiry = None
        self._carry_out(self.leader.on_expired(self._runtime.clock.mono_ms()))

    def on_flushed(self, end: int) -> None:
        self._carry_out(self.leader.on_flushed(end))

    # ------------------------------------------------------------ followers

    def follower_fetched(self, node: int, offset: int, log_start: int, mono_ms: int, broker_epoch: int = -1) -> None:
        """A follower's fetch from `offset` was judged, and may be answered. Raises KeyError for a node that is not a
        replica."""
        before = self.leader.low_watermark()
        self._carry_out(self.leader.on_fetch(node, offset, log_start, mono_ms, broker_epoch))
        if self.end_news is not None and self.leader.low_watermark() > before:
            self.end_news.tell()  # DeleteRecords may wait for that

    def on_live_brokers(self, live: frozenset[int], mono_ms: int) -> None:
        """Brokers that are alive and not shutting down, as the controller says."""
        self._carry_out(self.leader.on_live_brokers(live, mono_ms))
        if self.end_news is not None:
            self.end_news.tell()

    def go_on_leading(
        self, leader_epoch: int, replicas: Sequence[int], isr: Sequence[int], partition_epoch: int, mono_ms: int
    ) -> None:
        """This broker leads on in a newer epoch, from the log end on."""
        self.log.epochs.assign(leader_epoch, self.log.end_offset)
        effects = self.leader.on_order(leader_epoch, replicas, isr, partition_epoch, mono_ms)
        if self.leader.sync is not None and self.end_news is None:
            self.end_news = News()
        self._carry_out(effects)
        self.tell()

    def resign(self) -> Callable[[], None]:
        """Another broker leads, or none. Return the effects that answer waiting requests."""
        effects = self.leader.on_resigned()
        return lambda: self._carry_out(effects)

    def tick(self, mono_ms: int, patience_ms: int) -> None:
        """Time passed. A proposal without an answer is made again when it is older than `patience_ms`."""
        sync = self.leader.sync
        if sync is not None and (sync.proposal is None or mono_ms - self._proposed_ms >= patience_ms):
            self._carry_out(self.leader.on_tick(mono_ms))

    def isr_accepted(self, proposal: IsrProposal, partition_epoch: int) -> None:
        """The controller accepted the proposal. Ignored if this leader no longer has it open."""
        before = self.leader.isr
        self._carry_out(self.leader.on_isr_accepted(proposal, partition_epoch))
        if self.leader.isr != before:
            self._runtime.kernel.tell(
                "logkernel_isr_changed", topic=self.name.topic, partition=self.name.partition, isr=self.leader.isr
            )

    def isr_refused(self, proposal: IsrProposal, *, revert: bool) -> None:
        """The controller did not. `revert`: it never will (INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED); else this
        leader is behind, and the next order tells what holds."""
        self.leader.on_isr_refused(proposal, revert=revert)

    def isr_unanswered(self, proposal: IsrProposal) -> None:
        """Nobody knows what became of the proposal: it is made again soon, if it is still under way."""
        self._runtime.after(PROPOSED_AGAIN_MS, lambda: self._propose_again(proposal))

    def _propose_again(self, proposal: IsrProposal) -> None:
        sync = self.leader.sync
        if self.in_service and sync is not None and sync.proposal == proposal:
            self._carry_out(self.leader.on_tick(self._runtime.clock.mono_ms()))

    def tell(self) -> None:
        """Tell readers, followers among them, to look again."""
        self.news.tell()
        if self.end_news is not None:
            self.end_news.tell()

    # ------------------------------------------------------------ read

    def read(self, offset: int, max_bytes: int, isolation: int, *, min_one: bool) -> FileSlice | None:
        """Bytes from `offset` to the readable end; raises `OffsetOutOfRange`, `KafkaStorageError`."""
        end = self.leader.readable_end(isolation)
        disk_log = self.log
        if offset >= end and disk_log.start_offset <= offset <= disk_log.end_offset:
            return None
        limit = None if end == disk_log.end_offset else disk_log.position_of(end)
        try:
            return disk_log.read(offset, max_bytes, limit, min_one=min_one)
        except OSError as error:
            raise KafkaStorageError(f"{self.name}: {error}") from error

    def read_to_end(self, offset: int, max_bytes: int, *, min_one: bool) -> FileSlice | None:
        """As `read`, up to the log end: what a follower may see."""
        try:
            return self.log.read(offset, max_bytes, None, min_one=min_one)
        except OSError as error:
            raise KafkaStorageError(f"{self.name}: {error}") from error

    def aborted_within(self, offset: int, found: FileSlice) -> list[AbortedTxn]:
        """What a reader of `found`, read from `offset`, has to leave out; raises `KafkaStorageError`."""
        try:
            return self.log.aborted_within(offset, found, self.leader.last_stable_offset())
        except OSError as error:
            raise KafkaStorageError(f"{self.name}: {error}") from error

    # ------------------------------------------------------------ what every role says of itself

    @property
    def leader_epoch(self) -> int:
        return self.leader.leader_epoch

    @property
    def high_watermark(self) -> int:
        return self.leader.high_watermark

    def last_stable_offset(self) -> int:
        return self.leader.last_stable_offset()

    def _on_log_start(self, offset: int) -> None:
        self.leader.on_log_start(offset)
