"""A partition that another broker leads: carries out what its follower machine decides, in the order of `Effects`.

A fetcher (`fetchers`) asks `next_fetch`, and hands each partition's part of the answer to `apply`. What comes is the
leader's bytes: they are checked (`record.replicated`), and stored as they are, offsets and epochs included. The state
of producers, the index of aborted transactions and the cache of leader epochs are kept along with them, so that this
replica can lead at once.

    the answer                    what is done
    records                       appended; then watermark and log start follow the leader's
    a diverging epoch             the log is cut
    OFFSET_OUT_OF_RANGE           nothing yet: the leader is asked for its ends, and `out_of_range` cuts, or begins anew
    another error                 a pause, each longer than the one before, of `replica.fetch.backoff.ms` at most
    bad bytes, no answer          a pause of `replica.fetch.backoff.ms`
    the disk has no room          the same
    the disk fails                the directory goes offline
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Protocol
from uuid import UUID

from logkernel.broker.kept_out import CODES
from logkernel.broker.replicas.replica import Replica, StorageFailed
from logkernel.broker.runtime import Runtime
from logkernel.config.topic import TopicSettings
from logkernel.contracts import Buffer
from logkernel.errors import KafkaError, OffsetOutOfRange, error_for
from logkernel.partition.effects import Effects
from logkernel.partition.follower import FetchPosition, Follower
from logkernel.partition.producers import ProducerStates
from logkernel.record.replicated import scan_replicated
from logkernel.requests.data import PartitionData
from logkernel.storage.directory import CutNotBegun
from logkernel.storage.disk import PASSING
from logkernel.storage.log import Log
from logkernel.storage.segment import MAX_RELATIVE
from logkernel.vocabulary import BatchFacts, FileSlice, TopicPartition

log = logging.getLogger("logkernel.replica")

BACKOFF = "replica.fetch.backoff.ms"


FIRST_PAUSE_MS = 20
FLUSH_LOOK_MS = 5
"""How often a fetch that waits for a flush is tried."""


class Cuts(Protocol):
    """How a replica's log is made shorter, with its checkpoints in the right order (`LogManager`)."""

    def truncate(self, name: TopicPartition, offset: int) -> None:
        """Cut the log to end at `offset`, or before a batch that holds it; durable on return. Raises `CutNotBegun`
        where the log is as before, `OSError` where it may not be."""

    def restart(self, name: TopicPartition, offset: int) -> None:
        """Throw every record away; the log starts and ends at `offset`. Durable on return. Raises as `truncate`."""


class FollowerReplica(Replica):
    """A followed partition: its log and its machine."""

    __slots__ = ("_cuts", "_log_cut", "_refusals", "follower", "start_moved")

    def __init__(
        self,
        runtime: Runtime,
        name: TopicPartition,
        topic_id: UUID,
        disk_log: Log,
        producers: ProducerStates,
        follower: Follower,
        settings: TopicSettings,
        *,
        cuts: Cuts,
        log_cut: Callable[[TopicPartition], None],
        storage_failed: StorageFailed,
        before: Replica | None = None,
    ) -> None:
        super().__init__(
            runtime, name, topic_id, disk_log, producers, settings, storage_failed=storage_failed, before=before
        )
        self._cuts = cuts
        self._log_cut = log_cut
        self._refusals = 0
        """How often the leader refused in a row."""
        self.follower = follower
        self.start_moved = False
        """The log start followed the leader's, and must be stored before the next fetch names it."""
        self.configure(settings)
        producers.on_watermark(follower.high_watermark)

    def configure(self, settings: TopicSettings) -> None:
        """Take new topic settings at once."""
        self.settings = settings
        self.log.settings = settings

    # ------------------------------------------------------------ questions

    def next_fetch(self, mono_ms: int) -> FetchPosition | None:
        """Where to fetch from; None while there is nothing to ask for.

        A fetch says that all below its offset is held here. So where `flush.messages` promises that to be durable,
        there is none until a flush has ended.
        """
        if not self.in_service or self.log.failure is not None or self._owes_flush():
            return None
        return self.follower.next_fetch(mono_ms)

    def next_deadline(self) -> int | None:
        """Monotonic ms at which `next_fetch` may give something again; None where it does not pause."""
        if self._owes_flush():
            return self._runtime.clock.mono_ms() + FLUSH_LOOK_MS
        return self.follower.next_deadline()

    def flush_if_owed(self) -> None:
        """Begin the flush without which there is no next fetch; call it before asking for one.

        Mostly an append began it. Not where the records are from an earlier life of this broker, or from when this
        replica led, or where `flush.messages` was lowered since.
        """
        if self.in_service and self.log.failure is None and self._owes_flush():
            self.flushing.begin()

    def _owes_flush(self) -> bool:
        return self.log.unflushed_records >= self.settings.flush_messages

    # ------------------------------------------------------------ what the leader answers

    def apply(self, asked: FetchPosition, data: PartitionData, mono_ms: int) -> bool:
        """Take the leader's answer to the fetch that `asked` speaks of. True: the leader does not hold that offset, and
        its first and last one are to be told to `out_of_range`. Raises nothing."""
        if not self.in_service:
            return False
        if data.error_code == OffsetOutOfRange.code:
            return True
        if data.error_code:
            self._refused(asked, data.error_code, mono_ms)
            return False
        self._refusals = 0
        try:
            diverging = data.diverging_epoch
            if diverging.end_offset >= 0:
                self._cut(self.follower.on_diverging(asked, diverging.epoch, diverging.end_offset))
                return False
            if data.records:
                self._append(asked, data.records)
            self._follow_bounds(asked, data)
        except (KafkaError, OSError) as error:
            self._failed(asked, error, mono_ms)
        return False

    def out_of_range(self, asked: FetchPosition, leader_start: int, leader_end: int) -> None:
        """The leader's first and last offset, where `apply` gave True: cut the log, or begin it anew. Raises
        nothing."""
        if not self.in_service:
            return
        try:
            self._cut(self.follower.on_out_of_range(asked, leader_start, leader_end))
        except (KafkaError, OSError) as error:
            self._failed(asked, error, self._runtime.clock.mono_ms())

    def delay(self, asked: FetchPosition, mono_ms: int) -> None:
        """The leader refused, or could not be asked: pause."""
        self.follower.on_error(asked, mono_ms, int(self._runtime.config.get(BACKOFF)))

    def _refused(self, asked: FetchPosition, code: int, mono_ms: int) -> None:
        """The leader may not have its order yet: the first pauses are short. Of refusals that go on, the second, the
        fourth, the eighth … are logged."""
        if self._refusals & (self._refusals + 1) == 0:
            log.log(
                logging.DEBUG if code in CODES else logging.INFO,  # of all partitions, and the fetcher says it once
                "fetch refused: partition=%s leader=%d error=%s times=%d",
                self.name, self.follower.leader, type(error_for(code)).__name__, self._refusals + 1,
            )  # fmt: skip
        pause_ms = min(FIRST_PAUSE_MS << min(self._refusals, 16), int(self._runtime.config.get(BACKOFF)))
        self._refusals += 1
        self.follower.on_error(asked, mono_ms, pause_ms)

    def _failed(self, asked: FetchPosition, error: KafkaError | OSError, mono_ms: int) -> None:
        """The answer cannot be applied. A disk error that is not transient takes the directory offline."""
        if isinstance(error, OSError) and error.errno not in PASSING:
            self.storage_failed(error)
            return
        log.error("fetch not applied: partition=%s leader=%d error=%s", self.name, self.follower.leader, error)
        self.delay(asked, mono_ms)

    # ------------------------------------------------------------ effects

    def _cut(self, effects: Effects) -> None:
        """Truncate or restart. Epochs and producers are cut with the log; then ends move (KAFKA-10832, KAFKA-12153).
        Raises `CutNotBegun` where all is as before, and `KafkaStorageError` where it may not be."""
        follower = self.follower
        if effects.restart is not None:
            log.warning(
                "log begins anew: partition=%s offset=%d old=%d..%d",
                self.name, effects.restart, self.log.start_offset, self.log.end_offset,
            )  # fmt: skip
            self._restart(effects.restart)
            follower.on_restarted(effects.restart)
        elif effects.truncate is not None:
            log.info("log cut: partition=%s from=%d to=%d", self.name, self.log.end_offset, effects.truncate)
            try:
                self._cuts.truncate(self.name, effects.truncate)
            except CutNotBegun:
                raise
            except OSError as error:
                raise self.storage_failed(error) from error
            follower.on_truncated(self.log.end_offset)
        else:
            return
        self._log_cut(self.name)
        self.news.tell()

    def _restart(self, offset: int) -> None:
        """A restart that failed may be half done, so the log's content is unknown: its directory goes offline."""
        try:
            self._cuts.restart(self.name, offset)
        except CutNotBegun:
            raise
        except OSError as error:
            raise self.storage_failed(error) from error

    def _append(self, asked: FetchPosition, records: Buffer | FileSlice) -> None:
        """Store what is new in an answer, one write a segment. Raises `CorruptMessage`; `OSError` where the log is as
        before, and `KafkaStorageError` where it may not be."""
        data = records.read() if isinstance(records, FileSlice) else records
        batches = scan_replicated(data, asked.last_epoch, asked.leader_epoch)
        effects = self.follower.on_records(asked, batches)
        self._cut(effects)
        new = effects.append
        if not new:
            return
        disk_log, view = self.log, memoryview(data)
        if new[0].base_offset < disk_log.end_offset:  # the log is empty, and starts inside the leader's batch
            self._restart(new[0].base_offset)
        wall_ms = self._runtime.clock.wall_ms()
        for part in _by_segment(new, disk_log, self.settings.segment_bytes):
            first = part[0].position
            chunk = view[first : part[-1].position + part[-1].size]
            for facts in part:
                facts.position -= first
            disk_log.append(chunk, part, wall_ms)
            self.follower.on_appended(part)
            self._note_producers(part, chunk)
        disk_log.advance_log_start(self.follower.log_start)
        if self._owes_flush():
            self.flush()
        elif disk_log.unflushed_records:
            self.flushing.flush_in(self.settings.flush_ms)

    def _note_producers(self, batches: list[BatchFacts], chunk: memoryview) -> None:
        """Of batches that lie in the log: sequences and transactions are the leader's to judge (KAFKA-6003)."""
        for facts in batches:
            if facts.producer_id >= 0:
                position = facts.position
                control = bytes(chunk[position : position + facts.size]) if facts.is_control else None
                aborted = self.producers.replay(facts, control)
                if aborted is not None:
                    try:
                        self.log.note_aborted(aborted)
                    except OSError as error:
                        raise self.storage_failed(error) from error

    def _follow_bounds(self, asked: FetchPosition, data: PartitionData) -> None:
        """The leader's watermark and log start, as far as this log reaches."""
        follower = self.follower
        before = follower.high_watermark
        start = follower.on_progress(asked, data.high_watermark, data.log_start_offset)
        if start is not None:
            self.log.advance_log_start(start)
            self.start_moved = True
        if follower.high_watermark != before:
            self.producers.on_watermark(follower.high_watermark)
            self.news.tell()
        elif start is not None:
            self.news.tell()

    # ------------------------------------------------------------ what every role says of itself

    @property
    def leader_epoch(self) -> int:
        return self.follower.leader_epoch

    @property
    def high_watermark(self) -> int:
        return self.follower.high_watermark

    def last_stable_offset(self) -> int:
        follower, unstable = self.follower, self.producers.first_unstable_offset
        if unstable is None:
            return follower.high_watermark
        return max(follower.log_start, min(unstable, follower.high_watermark))

    def _on_log_start(self, offset: int) -> None:
        self.follower.on_log_start(offset)

    def on_flushed(self, end: int) -> None:
        """Nothing to do: the next fetch reports the new end."""

    def move_to(self, disk_log: Log) -> None:
        self.follower.take_epochs(disk_log.epochs)
        super().move_to(disk_log)

    def went_offline(self, error: KafkaError) -> None:
        self.follower.on_offline()


def _by_segment(batches: list[BatchFacts], disk_log: Log, segment_bytes: int) -> Iterator[list[BatchFacts]]:
    """The runs of batches that lie in one segment each, so that segments come out as they do on the leader."""
    active = disk_log.segments.active
    size, base = active.size, active.base
    part: list[BatchFacts] = []
    for facts in batches:
        if (size and size + facts.size > segment_bytes) or facts.last_offset - base > MAX_RELATIVE:
            if part:
                yield part
            part, size, base = [], 0, facts.base_offset
        part.append(facts)
        size += facts.size
    if part:
        yield part
