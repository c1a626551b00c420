"""All data directories of a broker: opening every log, placing new ones, checkpoints, the clean end."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from logkernel.attrs_lite import frozen
from logkernel.config.topic import TopicSettings
from logkernel.errors import ConfigError, KafkaStorageError, LogkernelError
from logkernel.storage.directory import CutNotBegun, DataDirectory
from logkernel.storage.disk import FULL, PASSING, Disk
from logkernel.storage.file_deleter import FileDeleter
from logkernel.storage.ledger import ProducerLedger
from logkernel.storage.log import Log
from logkernel.storage.names import partition_of
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.storage.moving import FutureLog

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger("logkernel.storage")

CLOSE_THREADS = 8
"""Closing waits for the disk, so more threads than cores pay."""
REMOVED_AT_CLOSE = 256
"""Of the files that wait for their removal; the others are found at the next open. Closing must not take long."""
FEW_LOGS = 4
"""Below this no thread is started."""


def _no_jitter() -> float:
    return 0.0


def _none(topic_id: UUID) -> bool:
    return False


@frozen
class LogAbsent:
    """Why a log cannot be had."""

    reason: str
    may_come: bool = False
    """It only lacked room or file handles: try again."""


@frozen
class Needs:
    """What a log needs of its broker."""

    settings: Callable[[str], TopicSettings]
    """By topic name."""
    ledger: Callable[[TopicPartition], ProducerLedger]
    """A new one; called from several threads while logs are recovered."""
    on_roll: Callable[[TopicPartition, int, int], None] | None = None
    """Told partition, base offset and bytes of a closed segment."""
    jitter: Callable[[], float] = _no_jitter
    """Numbers in [0, 1) for `segment.jitter.ms`."""
    deleted: Callable[[UUID], bool] = _none
    """Whether a topic id is one of a topic that was deleted, whose folder may have been out of reach by then."""


class LogDirectories:
    """Made by `LogDirectories.open`; `load` then opens the logs."""

    __slots__ = (
        "_disk",
        "_needs",
        "_unique",
        "cluster_id",
        "directories",
        "file_deleter",
        "interrupted",
        "left",
        "logs",
        "node_id",
        "unreadable",
    )

    def __init__(self, disk: Disk, node_id: int, unique: Callable[[], UUID]) -> None:
        self._disk = disk
        self._unique = unique
        self._needs: Needs | None = None
        self.node_id = node_id
        self.file_deleter = FileDeleter(disk)
        """Removes dropped and deleted files; the owner of these directories runs it on a thread."""
        self.cluster_id = ""
        self.directories: list[DataDirectory] = []
        self.logs: dict[TopicPartition, Log] = {}
        """Every log that is open, those of failed directories included."""
        self.unreadable: dict[TopicPartition, LogkernelError] = {}
        """Logs that could not be opened, and why; their folders are left alone."""
        self.interrupted: list[tuple[TopicPartition, str]] = []
        """(partition, path it was to move to) of moves that the last owner did not finish."""
        self.left: dict[TopicPartition, DataDirectory] = {}
        """Deleted logs whose folders are still there."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        paths: Sequence[str],
        *,
        node_id: int,
        cluster_id: str | None = None,
        unique: Callable[[], UUID] = uuid.uuid4,
    ) -> LogDirectories:
        """Lock and read the directories; `cluster_id` is made up where neither it nor any directory says one.

        Raises as `DataDirectory.open`, `ConfigError` where two directories disagree, and `KafkaStorageError`
        where all of them are offline.
        """
        self = cls(disk, node_id, unique)
        try:
            for path in paths:
                directory = DataDirectory.open(
                    disk, path.rstrip("/") or "/", node_id=node_id, cluster_id=cluster_id, unique=unique,
                    file_deleter=self.file_deleter,
                )  # fmt: skip
                self.directories.append(directory)
                if directory.meta is not None:
                    cluster_id = cluster_id or directory.meta.cluster_id
            if not self.online():
                causes = "; ".join(f"{each.path}: {each.failure}" for each in self.directories)
                raise KafkaStorageError(
                    f"every data directory is offline: {causes}; make one of them a writable directory, or change"
                    " log.dirs"
                )
        except BaseException:
            self.abandon()
            raise
        self.cluster_id = cluster_id or ""
        return self

    def online(self) -> list[DataDirectory]:
        return [directory for directory in self.directories if directory.failure is None]

    def offline(self) -> list[DataDirectory]:
        return [directory for directory in self.directories if directory.failure is not None]

    # ------------------------------------------------------------ logs

    def load(self, needs: Needs, wall_ms: int, threads: int = 1) -> None:
        """Open every log, recovering those of directories that were not closed cleanly, `threads` at a time.

        Raises `ConfigError` where two directories hold the same partition, and `OSError` where there is no room or
        there are no file handles.
        """
        self._needs = needs
        if any(directory.has_copies() for directory in self.online()):
            from logkernel.storage.moving import end_interrupted

            self.interrupted += end_interrupted(self._disk, self.directories, needs.settings, needs.deleted)
        places: dict[TopicPartition, list[DataDirectory]] = {}
        for directory in self.online():
            try:
                for name in directory.partitions():
                    places.setdefault(name, []).append(directory)
            except OSError as error:
                directory.fail(error)
        work = [
            (directory, name)
            for name, found in places.items()
            for directory in (found if len(found) == 1 else self._true_place(name, found))
        ]
        recovering = not all(directory.clean for directory in self.online())
        opened = _each(lambda item: self._open(*item, wall_ms), work, threads if recovering else 1)
        for (directory, name), each in zip(work, opened, strict=True):
            if each is not None:
                self.logs[name] = directory.logs[name] = each
                if directory.failure is not None:
                    each.fail(directory.failure)
        if recovering:
            self.write_recovery_points()  # a log that was cut may now end below its old one
        for directory in self.online():  # or below where it was compacted to: what is written there is not
            if any(each.clean_offset != directory.clean_offsets.get(name) for name, each in directory.logs.items()):
                self._try(directory, DataDirectory.write_clean_offsets)
            if directory.limit_high_watermarks():
                self._try(directory, lambda each: each.write_high_watermarks({}))

    def _true_place(self, name: TopicPartition, places: Sequence[DataDirectory]) -> list[DataDirectory]:
        """Which of several directories has the log of a partition, as a list of one; elsewhere its folder goes, left
        in a directory that was offline while its topic was deleted and made anew, or that failed while it was made."""
        assert self._needs is not None, "load comes first"
        folder, deleted, found = str(name), self._needs.deleted, [*places]

        def sift(goes: Callable[[DataDirectory], bool]) -> None:
            for directory in [*found]:
                try:
                    if len(found) > 1 and goes(directory):
                        found.remove(directory)
                except OSError as error:
                    self._not_opened(directory, name, error)
                    found.remove(directory)

        sift(lambda each: each.drop_deleted(folder, name, deleted))
        sift(lambda each: each.drop_untouched(folder, name))
        if len(found) > 1:
            paths = " and in ".join(directory.path for directory in found)
            raise ConfigError(f"{name} lies in {paths}: move one folder away")
        return found

    @staticmethod
    def _not_opened(directory: DataDirectory, name: TopicPartition, error: OSError) -> None:
        if error.errno in PASSING:  # not the disk's fault: make room, raise the limit of file handles, start again
            raise OSError(error.errno, error.strerror, f"{directory.path}/{name}") from error
        directory.fail(error)

    def _open(self, directory: DataDirectory, name: TopicPartition, wall_ms: int) -> Log | None:
        if directory.failure is not None:
            return None
        try:
            try:
                return self._known(directory, name, wall_ms)
            except OSError as error:
                if error.errno not in FULL or not directory.remove_dropped():
                    raise
                return self._known(directory, name, wall_ms)
        except OSError as error:
            self._not_opened(directory, name, error)
        except LogkernelError as error:
            log.error("%s/%s cannot be opened: %s", directory.path, name, error)
            self.unreadable[name] = error
        return None

    def _known(self, directory: DataDirectory, name: TopicPartition, wall_ms: int) -> Log:
        """The log as the directory's checkpoints know it."""
        return self._log(
            directory, name, wall_ms, directory.clean, directory.recovery_points.get(name, 0), directory.log_starts,
            clean_offset=directory.clean_offsets.get(name),
        )  # fmt: skip

    def _log(
        self,
        directory: DataDirectory,
        name: TopicPartition,
        wall_ms: int,
        clean: bool,
        recovery_point: int = 0,
        log_starts: Mapping[TopicPartition, int] | None = None,
        topic_id: UUID | None = None,
        clean_offset: int | None = None,
    ) -> Log:
        needs = self._needs
        assert needs is not None, "load comes first"
        tell = needs.on_roll
        return Log.open(
            self._disk,
            directory.path,
            name.topic,
            name.partition,
            needs.settings(name.topic),
            recovery_point=recovery_point,
            log_start=(log_starts or {}).get(name, 0),
            clean=clean,
            wall_ms=wall_ms,
            producers=needs.ledger(name),
            on_roll=None if tell is None else lambda base, size: tell(name, base, size),
            topic_id=topic_id,
            jitter=needs.jitter(),
            clean_offset=clean_offset,
            file_deleter=self.file_deleter,
        )

    def create(self, name: TopicPartition, topic_id: UUID | None, wall_ms: int) -> Log:
        """A new log in the online directory with the fewest that has room; the one that is there already, if any.

        Nothing is synced: the folder becomes durable with the log's first flush. Raises `KafkaStorageError`
        where no directory can take it, or no folder can be called so.
        """
        if name in self.logs:
            return self.logs[name]
        if partition_of(str(name)) is None:
            raise KafkaStorageError(f"no log can be called {str(name)!r:.100}")
        full: list[tuple[DataDirectory, OSError]] = []
        for directory in sorted(self.online(), key=lambda each: len(each.logs)):
            try:
                if self.left.get(name) is directory:
                    directory.drop(str(name), name)
                    del self.left[name]
                directory.forget(name)  # durably, before there is anything that an old offset could be taken for
                made = self._log(directory, name, wall_ms, clean=False, topic_id=topic_id)
            except OSError as error:
                if error.errno in FULL:
                    full.append((directory, error))
                elif error.errno in PASSING:  # file handles are lacking everywhere
                    raise KafkaStorageError(f"{name}: {error}") from error
                else:
                    directory.fail(error)
                continue
            for begun, _ in full:
                self._drop_begun(begun, name)
            self.logs[name] = directory.logs[name] = made
            return made
        if full:
            cause = full[0][1]
            raise KafkaStorageError(f"{name}: {cause}") from cause
        raise KafkaStorageError(f"{name}: no data directory is online")

    def _drop_begun(self, directory: DataDirectory, name: TopicPartition) -> None:
        """Let what was begun in a full directory go: the log lies in another one."""
        try:
            if self._disk.exists(f"{directory.path}/{name}"):
                directory.drop(str(name), name)
        except OSError as error:
            self.left[name] = directory
            if error.errno not in PASSING:
                directory.fail(error)

    def may_be_synced(self, name: TopicPartition) -> bool:
        """Whether the log that an earlier life left, or a part of it, may have been synced. Without a recovery point
        and a clean end nothing was, unless with its topic's id. Raises `KeyError`."""
        directory = self.directory_of(name)
        return directory.clean or directory.recovery_points.get(name, 0) > 0

    def directory_of(self, name: TopicPartition) -> DataDirectory:
        """Return the directory of a log. Raises `KeyError`."""
        for directory in self.directories:
            if name in directory.logs:
                return directory
        raise KeyError(name)

    def delete(self, name: TopicPartition) -> None:
        """Remove the log, even if it is unreadable; its files are deleted later. If its directory is offline, the log
        is only forgotten: when the directory is back, the topic id in the files shows that they must go. The same holds
        if this raises `OSError`, which takes the directory offline unless it lacks only room or file handles."""
        known = name in self.logs
        directory = self.directory_of(name) if known else self._place_of_unreadable(name)
        if directory is None:
            return
        try:
            if not known:
                directory.drop(str(name), name)
            elif directory.failure is None:
                directory.logs[name].delete(self._unique())
        except OSError as error:
            self.left[name] = directory
            if error.errno not in PASSING:
                directory.fail(error)
            raise
        finally:
            directory.logs.pop(name, None)
            self.logs.pop(name, None)
            self.unreadable.pop(name, None)

    def _place_of_unreadable(self, name: TopicPartition) -> DataDirectory | None:
        if partition_of(str(name)) is None:
            return None
        return next((each for each in self.online() if self._disk.exists(f"{each.path}/{name}")), None)

    def begin_move(
        self, name: TopicPartition, target: DataDirectory, ledger: ProducerLedger, wall_ms: int
    ) -> FutureLog:
        """A copy of a log, still empty, in another directory; `ledger` is one of the copy's own. Raises `OSError`,
        `KafkaStorageError` where the directory is offline, `InvalidTopicException` for too long a name."""
        from logkernel.storage.moving import FutureLog

        target.check()
        source = self.directory_of(name)
        return FutureLog(self._disk, self.logs[name], source, target, ledger, self._unique(), wall_ms)

    def finish_move(self, future: FutureLog, producers: ProducerLedger, wall_ms: int) -> Log:
        """Put a copy that holds all in the place of its log, see `FutureLog.take_over`; returns the log that now is."""
        needs = self._needs
        assert needs is not None, "load comes first"
        made = self.logs[future.name] = future.take_over(needs.settings(future.name.topic), producers, wall_ms)
        return made

    def truncate(self, name: TopicPartition, offset: int) -> None:
        """Cut a log to end at `offset`. Watermarks, recovery points and clean offsets are written before, so that a cut
        that a crash interrupts is finished by recovery, and after, where a whole batch went with `offset`, before
        anything is appended there. Raises `CutNotBegun` where the first are not written, `OSError` behind that."""
        each, directory = self.logs[name], self.directory_of(name)
        clean_offset = each.clean_offset if each.clean_offset is None else min(each.clean_offset, offset)
        self._before_cut(name, offset, offset, clean_offset)
        each.truncate_to(offset)
        if each.end_offset < offset:
            directory.lower_high_watermark(name, each.end_offset)
            directory.write_recovery_points()
        if each.clean_offset != clean_offset:
            directory.write_clean_offsets()

    def truncate_fully_and_start_at(self, name: TopicPartition, offset: int, wall_ms: int) -> None:
        """Empty a log and start it at `offset`; recovery points are written before, log starts after. Raises
        `CutNotBegun` and `OSError` as `truncate`."""
        each, directory = self.logs[name], self.directory_of(name)
        self._before_cut(name, offset, min(each.first_base_offset, offset), None)
        each.truncate_fully_and_start_at(offset, wall_ms)
        directory.write_log_starts()

    def _before_cut(self, name: TopicPartition, watermark: int, recovery: int, clean_offset: int | None) -> None:
        """Lower what is noted of a log, on the disk too."""
        each, directory = self.logs[name], self.directory_of(name)
        known_clean = each.clean_offset
        try:
            directory.lower_high_watermark(name, watermark)
            each.lower_recovery_point(recovery)
            directory.write_recovery_points()
            if each.clean_offset != clean_offset:
                each.clean_offset = clean_offset
                directory.write_clean_offsets()
        except OSError as error:
            each.clean_offset = known_clean  # as the file says, so that it is written the next time
            raise CutNotBegun(error.errno, error.strerror, error.filename) from error

    # ------------------------------------------------------------ checkpoints

    def high_watermark(self, name: TopicPartition) -> int:
        """The last that was noted; 0 where none was."""
        return self.directory_of(name).high_watermarks.get(name, 0)

    def write_recovery_points(self) -> None:
        """In every online directory, as the two below; one that fails goes offline."""
        self._everywhere(DataDirectory.write_recovery_points)

    def write_log_starts(self) -> bool:
        """Whether all were written."""
        return self._everywhere(DataDirectory.write_log_starts)

    def write_clean_offsets(self, name: TopicPartition) -> None:
        """In the directory of one log."""
        self._try(self.directory_of(name), DataDirectory.write_clean_offsets)

    def write_high_watermarks(self, watermarks: Mapping[TopicPartition, int]) -> None:
        self._everywhere(lambda directory: directory.write_high_watermarks(watermarks))

    def _everywhere(self, action: Callable[[DataDirectory], None]) -> bool:
        well = [self._try(directory, action) for directory in self.online()]
        return all(well)

    def _try(self, directory: DataDirectory, action: Callable[[DataDirectory], None]) -> bool:
        try:
            action(directory)
        except OSError as error:
            self.not_written(directory, error)
            return False
        return True

    @staticmethod
    def not_written(directory: DataDirectory, error: OSError) -> None:
        """A checkpoint was refused."""
        if error.errno in PASSING:
            log.error("checkpoint not written, the one before stays in force: %s", error)
        else:
            directory.fail(error)

    # ------------------------------------------------------------ the end

    def close(self, watermarks: Mapping[TopicPartition, int] | None = None) -> None:
        """Sync and close every log, write checkpoints and the clean-shutdown marks, give the locks back."""
        work = [(directory, each) for directory in self.online() for each in directory.logs.values()]
        errors = _each(lambda item: _close(item[1]), work, CLOSE_THREADS)
        for (directory, _), error in zip(work, errors, strict=True):
            if error is not None:
                directory.fail(error)
        if watermarks is not None:
            self.write_high_watermarks(watermarks)
        self._everywhere(DataDirectory.mark_clean)
        if not self.offline():
            self.file_deleter.remove(REMOVED_AT_CLOSE)
        self.abandon()

    def abandon(self) -> None:
        """Let go of everything and write nothing; the next open recovers."""
        for directory in self.directories:
            directory.abandon()


def _close(each: Log) -> OSError | None:
    """What it failed with. The directory goes offline when all is closed: that takes the files from under other logs,
    which other threads may be closing."""
    try:
        each.close()
    except OSError as error:
        return error
    return None


def _each(action: Callable[[T], R], items: Sequence[T], threads: int) -> Iterable[R]:
    if threads < 2 or len(items) < FEW_LOGS:
        return [action(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(threads, len(items)), "logkernel-storage") as pool:
        return list(pool.map(action, items))
