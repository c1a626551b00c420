"""One partition in the shell: carries out what its leader machine decides, in the order of `Effects`."""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from logkernel.config.topic import TopicSettings
from logkernel.errors import KafkaError, KafkaStorageError, RecordListTooLarge
from logkernel.partition.effects import Effects, Outcome
from logkernel.partition.leader import Leader
from logkernel.partition.news import News
from logkernel.record.batch import parse_header, stamp
from logkernel.record.control import EndTxnMarker, encode_marker
from logkernel.record.validate import Checked, WritePolicy, check_produce
from logkernel.storage.directory import PASSING
from logkernel.storage.flush import Flush
from logkernel.storage.log import Log
from logkernel.vocabulary import AbortedTxn, FileSlice, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker

log = logging.getLogger("logkernel.replica")

HANDLES = (errno.EMFILE, errno.ENFILE)
"""No sync fails with these: files could not be opened for it. A sync that failed is never tried again."""
PUT_OFF_MS = 1000


class Ticket(Protocol):
    """Who waits for a produce of one partition."""

    def appended(self, base_offset: int) -> None:
        """The batches lie in the local log, not yet committed."""

    def deliver(self, outcome: Outcome) -> None: ...


class Replica:
    """A led partition: its log, its machine, its write policy."""

    __slots__ = (
        "_broker",
        "_expiry",
        "_flush_again",
        "_flush_timer",
        "_flushing",
        "leader",
        "log",
        "name",
        "news",
        "policy",
        "settings",
        "topic_id",
    )

    def __init__(
        self,
        broker: Broker,
        name: TopicPartition,
        topic_id: UUID,
        disk_log: Log,
        leader: Leader,
        settings: TopicSettings,
    ) -> None:
        self._broker = broker
        self.name = name
        self.topic_id = topic_id
        self.news = News()
        self.log = disk_log
        self.leader = leader
        self._flush_timer: Any = None
        self._flushing = self._flush_again = False
        self._expiry: Any = None
        self.configure(settings)

    def configure(self, settings: TopicSettings) -> None:
        """Take new topic settings at once."""
        self.settings = settings
        self.log.settings = settings
        self.leader.min_isr = settings.min_insync_replicas
        self.leader.flush_messages = settings.flush_messages
        log_append_time = settings.message_timestamp_type == "LogAppendTime"
        self.leader.log_append_time = log_append_time
        self.policy = WritePolicy(
            compression_type=settings.compression_type,
            target_codec=self._broker.target_codec(settings),
            log_append_time=log_append_time,
            timestamp_before_max_ms=settings.message_timestamp_before_max_ms,
            timestamp_after_max_ms=settings.message_timestamp_after_max_ms,
            max_message_bytes=settings.max_message_bytes,
            compacted="compact" in settings.cleanup_policy,
        )

    # ------------------------------------------------------------ write

    def produce(
        self,
        data: Any,
        acks: int,
        ticket: Ticket,
        wall_ms: int,
        deadline_ms: int,
        guard: int | None = None,
    ) -> None:
        """Validate, decide, append, answer. Raises nothing: every error is delivered to the ticket.

        `guard`: see `Leader.on_produce`.
        """
        try:
            checked = check_produce(data, self.policy, self._broker.kernel.codec_for, wall_ms)
        except KafkaError as error:
            faults = getattr(error, "record_errors", ())
            ticket.deliver(Outcome(error.code, error_message=str(error) or None, record_errors=faults))
            return
        self.store(checked, acks, ticket, wall_ms, deadline_ms, guard)

    def store(
        self, checked: Checked, acks: int, ticket: Ticket, wall_ms: int, deadline_ms: int, guard: int | None = None
    ) -> None:
        """As `produce`, for what was checked, or made by the broker itself (`validate.own_batch`)."""
        if len(checked.data) > self.settings.segment_bytes and checked.batches:
            limit = self.settings.segment_bytes
            message = f"{len(checked.data)} bytes do not fit a segment of segment.bytes={limit}"
            ticket.deliver(Outcome(RecordListTooLarge.code, error_message=message))
            return
        effects = self.leader.on_produce(checked.batches, acks, ticket, guard)
        if effects.append is not None:
            self._append(checked.data, effects, acks, ticket, wall_ms, deadline_ms)
        else:
            self._answer(effects)

    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        marker: EndTxnMarker,
        version: int,
        ticket: Ticket,
        wall_ms: int,
        deadline_ms: int,
    ) -> None:
        """Write the marker that ends a producer's transaction here. Raises nothing."""
        data = bytearray(
            encode_marker(producer_id, producer_epoch, marker.committed, marker.coordinator_epoch, wall_ms)
        )
        effects = self.leader.on_marker(parse_header(data, 0), marker, version, ticket)
        if effects.append is not None:
            self._append(data, effects, -1, ticket, wall_ms, deadline_ms, marker)
        else:
            self._answer(effects)

    def _append(
        self,
        data: Any,
        decided: Effects,
        acks: int,
        ticket: Ticket,
        wall_ms: int,
        deadline_ms: int,
        marker: EndTxnMarker | None = None,
    ) -> None:
        batches = decided.append or []
        for facts in batches:
            stamp(data, facts.position, facts.base_offset, facts.leader_epoch)
        try:
            self.log.append(data, batches, wall_ms)
            if decided.aborted is not None:
                self.log.note_aborted(decided.aborted)
        except (OSError, KafkaError) as error:
            refused = self._refusal(error) if isinstance(error, OSError) else error
            self.carry_out(self.leader.on_append_failed(ticket, refused))
            return
        ticket.appended(batches[0].base_offset)
        effects = self.leader.on_appended(batches, acks, ticket, wall_ms, deadline_ms, marker)
        self.carry_out(effects)
        if self.leader.unflushed and self.settings.flush_ms < 2**62 and self._flush_timer is None:
            self._flush_timer = self._broker.timers.at(
                self._broker.clock.mono_ms() + self.settings.flush_ms, self._flush_due
            )

    def _refusal(self, error: OSError) -> KafkaError:
        """Without room or file handles the write is refused and the log is as before; other errors end its service."""
        if error.errno not in PASSING:
            return self._broker.storage_failed(self, error)
        log.error("write refused: partition=%s error=%s", self.name, error)
        return KafkaStorageError(f"{self.name}: {error}")

    def went_offline(self, error: KafkaError) -> None:
        """The directory is offline: tell who waits."""
        self._answer(self.leader.on_offline(error))

    # ------------------------------------------------------------ effects

    def carry_out(self, effects: Effects) -> None:
        if effects.persist is not None:
            self.flush()
        self._answer(effects)

    def _answer(self, effects: Effects) -> None:
        for ticket, outcome in effects.answer:
            ticket.deliver(outcome)
        if effects.wake:
            self.news.tell()
        if self.leader.parked and self._expiry is None:
            deadline = self.leader.next_deadline()
            assert deadline is not None
            self._expiry = self._broker.timers.at(deadline, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        self._answer(self.leader.on_expired(self._broker.clock.mono_ms()))

    def flush(self) -> None:
        """Make what is in the log durable. One flush at a time: all that came meanwhile shares the next."""
        if self._flushing:
            self._flush_again = True
            return
        self._flushing = True
        flush = self.log.begin_flush()
        self._broker.run_flush(flush.run, lambda error: self._flushed(flush, error))

    def _flushed(self, flush: Flush, error: BaseException | None) -> None:
        self._flushing = False
        if isinstance(error, OSError) and error.errno in (PASSING if flush.may_be_repeated else HANDLES):
            log.error("flush put off: partition=%s error=%s", self.name, error)
            self.log.flush_refused()
            self._broker.timers.at(self._broker.clock.mono_ms() + PUT_OFF_MS, self._flush_again_later)
            return
        if error is not None:
            self._broker.storage_failed(self, error if isinstance(error, OSError) else OSError(str(error)))
            return
        self.log.end_flush(flush, self._broker.clock.wall_ms())
        self._answer(self.leader.on_flushed(flush.end))
        if self._flush_again:
            self._flush_again = False
            self.flush()

    def flush_soon(self) -> None:
        """A segment was closed: sync it off the request's path, so that recovery need not read it again."""
        if self._flush_timer is None:
            self._flush_timer = self._broker.timers.at(self._broker.clock.mono_ms(), self._flush_due)

    def _flush_again_later(self) -> None:
        if self._broker.leads(self):
            self.flush()

    def _flush_due(self) -> None:
        self._flush_timer = None
        if self._broker.leads(self) and self.log.unflushed_records:
            self.flush()

    @property
    def is_flushing(self) -> bool:
        return self._flushing

    def move_to(self, disk_log: Log) -> None:
        """The log lies elsewhere from now on, complete and synced."""
        self.log = disk_log
        self._answer(self.leader.on_flushed(disk_log.end_offset))
        self.news.tell()

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

    def aborted_within(self, offset: int, found: FileSlice) -> list[AbortedTxn]:
        """What a reader of `found`, read from `offset`, has to leave out; raises `KafkaStorageError`."""
        try:
            return self.log.aborted_within(offset, found, self.leader.last_stable_offset())
        except OSError as error:
            raise KafkaStorageError(f"{self.name}: {error}") from error

    def advance_log_start(self, offset: int) -> None:
        self.log.advance_log_start(offset)
        self.leader.on_log_start(offset)
        self.news.tell()
