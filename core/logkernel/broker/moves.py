"""Moves of logs between `log.dirs`, while they are in use.

| state | what happens | next |
|---|---|---|
| copying | a chunk at a time, at the rate that all moves share | nothing left to copy: syncing |
| syncing | what was copied is synced, off the loop where there is one | much came meanwhile: copying; else swapping |
| swapping | the rest is copied and the copy takes the log's place, in one go | done |

The rate is `replica.alter.log.dirs.io.max.bytes.per.second`.

A move ends without effect where its topic is deleted, a directory of its fails, or another directory is asked for.
"""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING

from logkernel.broker.log_manager import LogManager
from logkernel.broker.replicas.manager import ReplicaManager
from logkernel.broker.runtime import Runtime
from logkernel.errors import KafkaError, KafkaStorageError
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.storage.directory import DataDirectory
    from logkernel.storage.flush import Flush
    from logkernel.storage.moving import FutureLog

log = logging.getLogger("logkernel.storage")

CHUNK_BYTES = 1 << 20
PAUSE_MS = 1
"""Between two chunks, so that requests get their turn."""
BUSY_MS = 5
"""The log itself is being synced: the swap is tried again then."""
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


class Move:
    __slots__ = ("begun_ms", "copied_bytes", "future", "over")

    def __init__(self, future: FutureLog, begun_ms: int) -> None:
        self.future = future
        self.begun_ms = begun_ms
        self.copied_bytes = 0
        self.over = False


class Moves:
    """All moves under way."""

    def __init__(self, runtime: Runtime, replicas: ReplicaManager, logs: LogManager) -> None:
        self._runtime = runtime
        self._replicas = replicas
        self._logs = logs
        self.active: dict[TopicPartition, Move] = {}
        self._free_at_ms = 0.0
        """When the copies made so far are paid for, by the rate."""

    def start(self, name: TopicPartition, target: DataDirectory) -> None:
        """Move a log to `target`, which ends a move of it to elsewhere. Raises KafkaError."""
        from logkernel.partition.producers import ProducerStates

        replica = self._replicas.held(name)
        running = self.active.get(name)
        if running is not None:
            if running.future.target is target:
                return
            self.cancel(name, "another directory is asked for")
        directories = self._logs.directories
        if directories.directory_of(name) is target:
            return
        try:
            future = directories.begin_move(replica.name, target, ProducerStates(), self._runtime.clock.wall_ms())
        except OSError as error:
            target.fail(error)
            target.check()
            raise
        log.info("move begun: partition=%s from=%s to=%s", name, future.source_directory.path, target.path)
        self.active[name] = move = Move(future, self._runtime.clock.mono_ms())
        self._later(move, PAUSE_MS)

    def resume(self) -> None:
        """Begin again what the last owner of the directories did not finish."""
        directories = self._logs.directories
        by_path = {directory.path: directory for directory in directories.directories}
        for name, path in directories.interrupted:
            try:
                self.start(name, by_path[path])
            except KafkaError as error:
                log.warning("move not taken up again: partition=%s to=%s error=%s", name, path, error)
        directories.interrupted.clear()

    def cancel(self, name: TopicPartition, reason: str) -> None:
        move = self.active.pop(name, None)
        if move is not None:
            move.over = True
            move.future.abandon()
            self._logs.delete_files()
            log.warning("move given up: partition=%s to=%s reason=%s", name, move.future.target.path, reason)

    def begin_anew(self, name: TopicPartition) -> None:
        """The log was truncated: the copy may have records that it no longer has."""
        running = self.active.get(name)
        if running is not None:
            self.cancel(name, "the log was cut; the move begins anew")
            try:
                self.start(name, running.future.target)
            except (OSError, KafkaError) as error:
                log.warning("move not begun anew: partition=%s error=%s", name, error)

    def cancel_topic(self, topic: str) -> None:
        for name in [name for name in self.active if name.topic == topic]:
            self.cancel(name, "the topic is deleted")

    def directory_failed(self, directory: DataDirectory) -> None:
        for name, move in list(self.active.items()):
            if directory in (move.future.target, move.future.source_directory):
                self.cancel(name, f"{directory.path} is offline")

    def close(self) -> None:
        """Let go of every copy; the folders stay, so that the next start takes the moves up."""
        for move in self.active.values():
            move.over = True
        self.active.clear()

    # ------------------------------------------------------------ steps

    def _later(self, move: Move, wait_ms: float) -> None:
        self._runtime.after(max(PAUSE_MS, int(wait_ms)), lambda: self._step(move))

    def _step(self, move: Move) -> None:
        if move.over:
            return
        try:
            self._advance(move)
        except (OSError, KafkaError) as error:
            self._failed(move, error)

    def _failed(self, move: Move, error: Exception) -> None:
        """Give up the move: the log stays where it is, unless its directory failed. A target that is only full stays in
        use."""
        future = move.future
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if isinstance(error, OSError) and not full and future.source_directory.failure is None:
            future.target.fail(error)
        self.cancel(future.name, str(error))
        for directory in (future.target, future.source_directory):
            if directory.failure is not None:
                self._logs.directory_failed(directory)

    def _advance(self, move: Move) -> None:
        future, runtime = move.future, self._runtime
        if future.target.failure is not None or future.source.failure is not None:
            self._failed(move, KafkaStorageError("a directory is offline"))
            return
        rate = int(runtime.config.get(RATE))
        now_ms = runtime.clock.mono_ms()
        if self._free_at_ms > now_ms:
            self._later(move, self._free_at_ms - now_ms)
            return
        copied = future.step(min(CHUNK_BYTES, max(1, rate // 10)), runtime.clock.wall_ms())
        if copied:
            move.copied_bytes += copied
            self._free_at_ms = max(self._free_at_ms, now_ms) + copied * 1000 / rate
            self._later(move, self._free_at_ms - now_ms)
            return
        flush = future.log.begin_flush()
        runtime.run_flush(flush.run, lambda error: self._synced(move, flush, error))

    def _synced(self, move: Move, flush: Flush, error: BaseException | None) -> None:
        if move.over:
            return
        future = move.future
        if error is not None:
            self._failed(move, error if isinstance(error, OSError) else OSError(str(error)))
            return
        try:
            future.log.end_flush(flush)
            self._swap_or_go_on(move)
        except (OSError, KafkaError) as problem:
            self._failed(move, problem)

    def _swap_or_go_on(self, move: Move) -> None:
        future, runtime = move.future, self._runtime
        wall_ms = runtime.clock.wall_ms()
        if future.step(CHUNK_BYTES, wall_ms) >= CHUNK_BYTES // 2:
            self._later(move, PAUSE_MS)
            return
        replica = self._replicas.held(future.name)
        if replica.is_flushing or replica.log.rewriting is not None:
            self._later(move, BUSY_MS)
            return
        while future.step(CHUNK_BYTES, wall_ms):
            pass
        clean_offset = replica.log.clean_offset
        moved = self._logs.directories.finish_move(future, replica.producers, wall_ms)
        moved.clean_offset = clean_offset
        replica.move_to(moved)
        self._logs.delete_files()
        del self.active[future.name]
        move.over = True
        log.info(
            "moved: partition=%s to=%s bytes=%d took_ms=%d",
            future.name, future.target.path, move.copied_bytes, runtime.clock.mono_ms() - move.begun_ms,
        )  # fmt: skip
