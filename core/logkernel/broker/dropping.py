"""Drops what cleanup policies want dropped, so that no request waits behind it, whatever its size.

| what | where |
|---|---|
| segments leave the log, whose start moves | the broker's thread, a few logs in a turn |
| the log starts are written | by name at once; by the clock where flushes run |
| files are renamed `.deleted` | the broker's thread, once the log start is durable, a few in a turn |
| files are removed, `file.delete.delay.ms` later | a worker's thread, see `storage.sweeping` |

What a stop or a crash leaves of it is taken up by the next start, which waits for none of it.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from logkernel.contracts import DropBefore
from logkernel.errors import LogkernelError
from logkernel.storage.upkeep import RENAMED_AT_ONCE
from logkernel.vocabulary import CleanupResult, LogSize, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker
    from logkernel.broker.cleaner import Cleaner
    from logkernel.broker.replica import Replica

log = logging.getLogger("logkernel.cleaner")

TURN_MS = 2
"""So long the loop looks at logs in one go."""


class Dropper:
    def __init__(self, broker: Broker, cleaner: Cleaner) -> None:
        self._broker = broker
        self._cleaner = cleaner
        self._to_drop: deque[Replica] = deque()
        """Logs that the clock's look at retention has still to see."""
        self._turn = 0
        self._unwritten: dict[TopicPartition, int] = {}
        """Partition → the turn at which its log start moved, while no checkpoint says so."""
        self._purging: set[TopicPartition] = set()
        """Partitions for which a timer goes on with dropped files."""
        self._sweeping = False

    def start(self) -> None:
        """Take up what the last run left."""
        for replica in self._broker.replicas.values():
            if replica.log.leaving:
                self._purge_on(replica)
        self.sweep()

    def forget(self, name: TopicPartition) -> None:
        self._unwritten.pop(name, None)

    def drop_all(self) -> None:
        """What the policies want dropped, of every log that is not being rewritten; files whose delay is over go. A
        turn of the loop takes only so many logs."""
        under_way = bool(self._to_drop)
        self._to_drop = deque(self._broker.replicas.values())
        if not under_way:
            self._drop_some()

    def _drop_some(self) -> None:
        clock, begun_ms = self._broker.clock, self._broker.clock.mono_ms()
        while self._to_drop:
            replica = self._to_drop.popleft()
            if self._broker.leads(replica) and replica.log.rewriting is None:
                self._drop_of_clock(replica)
            if self._to_drop and clock.mono_ms() - begun_ms >= TURN_MS:
                self._broker.timers.at(clock.mono_ms() + 1, self._drop_some)
                break
        self._write_starts()

    def drop_in_the_background(self, replica: Replica) -> None:
        """As `drop`, durable some time later. Raises nothing."""
        self._drop_of_clock(replica)
        self._write_starts()

    def _drop_of_clock(self, replica: Replica) -> None:
        try:
            self._drop_all_of(replica, now=False)
        except LogkernelError as error:
            log.error("cleanup policy failed: partition=%s error=%s", replica.name, error)
        except Exception:
            log.exception("cleanup policy failed: partition=%s", replica.name)

    def drop(self, replica: Replica) -> list[CleanupResult]:
        """What the policies of a log want dropped; it is durable on return. Raises `KafkaStorageError`."""
        return self._drop_all_of(replica, now=True)

    def _drop_all_of(self, replica: Replica, *, now: bool) -> list[CleanupResult]:
        """Policies one after the other: each sees what the one before it has left."""
        results = []
        try:
            for name in replica.settings.cleanup_policy:
                policy = self._cleaner.policy(name)
                if policy is None:
                    continue
                before = size_of(replica)
                steps = [step for step in policy.plan(self._cleaner.facts(replica)) if isinstance(step, DropBefore)]
                dropped = [self._drop(replica, name, step, now) for step in steps]
                if any(dropped):
                    results.append(self._cleaner.result(replica, name, before, size_of(replica)))
            self._purge(replica)
        except OSError as error:
            raise self._broker.storage_failed(replica, error) from error
        return results

    def _purge(self, replica: Replica) -> None:
        """Rename files of dropped segments, a few at a time, as a request may wait behind them; those whose delay is
        over are a worker's to remove."""
        waiting = replica.name not in self._unwritten and replica.log.rename_dropped(RENAMED_AT_ONCE)
        replica.log.purge(self._broker.clock.wall_ms())
        self.sweep()
        if waiting and replica.name not in self._purging:
            self._purging.add(replica.name)
            self._broker.timers.at(self._broker.clock.mono_ms() + 1, lambda: self._purge_on(replica))

    def _purge_on(self, replica: Replica) -> None:
        self._purging.discard(replica.name)
        if self._broker.leads(replica):
            try:
                self._purge(replica)
            except OSError as error:
                self._broker.storage_failed(replica, error)

    def sweep(self) -> None:
        """Have removed, on a thread, what was dropped or deleted."""
        sweeper = self._broker.storage.directories.sweeper
        if sweeper.waiting and not self._sweeping:
            self._sweeping = True
            self._cleaner.workers.run(sweeper.run, self._swept)

    def _swept(self, error: BaseException | None) -> None:
        self._sweeping = False
        if error is not None:
            log.error("removing dropped files failed: error=%s", error)
        else:
            self.sweep()

    def _drop(self, replica: Replica, policy: str, step: DropBefore, now: bool) -> bool:
        wall_ms = self._broker.clock.wall_ms()
        offset = min(step.offset, replica.leader.high_watermark)
        if offset >= replica.log.end_offset and not replica.log.active_is_empty:
            replica.log.roll(wall_ms)
        if offset > replica.log.start_offset:
            replica.advance_log_start(offset)
            self._turn += 1
            self._unwritten[replica.name] = self._turn
            if now and self._broker.storage.write_log_starts(self._broker):
                self._starts_written(self._turn)
        dropped = replica.log.drop_before(offset, wall_ms, rename=replica.name not in self._unwritten)
        if dropped:
            log.info(
                "segments deleted: partition=%s count=%d log_start_offset=%d reason=%s",
                replica.name, len(dropped), replica.log.start_offset, step.reason,
            )  # fmt: skip
            self._cleaner.tell(replica, policy)
        return bool(dropped)

    def _write_starts(self) -> None:
        """Have log starts written that moved: before that no file goes, as a crash would bring back others."""
        if self._unwritten:
            turn = self._turn
            self._broker.storage.checkpoint_log_starts(
                self._broker, lambda well: self._starts_written(turn) if well else None
            )

    def _starts_written(self, turn: int) -> None:
        """Those of the turns up to `turn`."""
        durable = [name for name, at in self._unwritten.items() if at <= turn]
        for name in durable:
            del self._unwritten[name]
        for name in durable:
            replica = self._broker.replicas.get(name)
            if replica is not None and replica.log.leaving:
                self._purge_on(replica)


def size_of(replica: Replica) -> LogSize:
    """Each offset counts as a record."""
    disk_log = replica.log
    return LogSize(
        disk_log.segment_count, disk_log.size_bytes, disk_log.end_offset - disk_log.first_base_offset
    )
