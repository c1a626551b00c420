"""Moving a live log to another data directory: copied beside it, then put in its place.

A log `t-0` in directory A moves to B in these steps; between any two of them the power may fail.

| step | in A | in B | the next open |
|---|---|---|---|
| the copy is made while the log is in use | t-0 | t-0.ID-future | drops the copy; the move may be started anew |
| the copy holds all, is synced, and B's checkpoints name it | t-0 | t-0.ID-future | the same |
| its folder is renamed: **now it is decided** | t-0 | t-0.ID-moved | keeps the one of the two that goes further |
| A's folder is renamed | t-0.ID-delete | t-0.ID-moved | gives the copy its name |
| the copy gets its name | | t-0 | is as any other |

Each rename is made durable before the next. "Further" is the higher leader epoch, then the higher end: both hold the
same records up to the moment of the decision, and after it at most one was ever written. While a directory is offline,
a decided copy is left alone, as the log that it stands for may lie there and go further. If the topic was deleted or
re-created meanwhile, its id shows that, and the copy is dropped.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from uuid import UUID

from logkernel.config.topic import TopicSettings
from logkernel.errors import InvalidTopicException, KafkaStorageError
from logkernel.record.batch import batches
from logkernel.storage.directory import DataDirectory
from logkernel.storage.disk import Disk
from logkernel.storage.ledger import NoProducers, ProducerLedger
from logkernel.storage.log import Log
from logkernel.storage.names import FUTURE_DIR, MOVED_DIR, NO_TOPICS, copy_of, doomed_name, future_name
from logkernel.vocabulary import TopicPartition

log = logging.getLogger("logkernel.storage")


class FutureLog:
    """The copy of one log on its way. One thread drives it, the one that appends to the log."""

    __slots__ = ("_disk", "_ledger", "_unique", "log", "name", "source", "source_directory", "target")

    def __init__(
        self,
        disk: Disk,
        source: Log,
        source_directory: DataDirectory,
        target: DataDirectory,
        ledger: ProducerLedger,
        unique: UUID,
        wall_ms: int,
    ) -> None:
        """Raises `InvalidTopicException` where the folder's name would be too long, `OSError`."""
        self._disk = disk
        self._ledger = ledger
        self._unique = unique
        self.source = source
        self.source_directory = source_directory
        self.target = target
        self.name = source.name
        folder = future_name(*self.name, unique)
        if folder is None:
            raise InvalidTopicException(f"{self.name}: the name is too long to move its log: its folder gets a suffix")
        self.log = Log.open(
            disk,
            target.path,
            *self.name,
            source.settings,
            log_start=self._first_offset(),
            clean=False,
            wall_ms=wall_ms,
            producers=ledger,
            topic_id=source.topic_id,
            folder=folder,
            file_deleter=target.file_deleter,
        )
        target.futures[self.name] = self.log

    def _first_offset(self) -> int:
        """Where the batch begins that holds the log's first offset."""
        data = self._read(self.source.start_offset, 1)
        if data is None:
            return self.source.start_offset
        return min(self.source.start_offset, next(iter(batches(data))).base_offset)

    @property
    def lag(self) -> int:
        """Offsets that the copy is behind."""
        return max(0, self.source.end_offset - self.log.end_offset)

    def step(self, max_bytes: int, wall_ms: int) -> int:
        """Copy up to `max_bytes` (a batch at least); returns how many, 0 where there is nothing left to copy."""
        source = self.source
        if self.log.end_offset < source.start_offset:
            first = self._first_offset()
            if self.log.end_offset < first:  # what was to be copied next is deleted: start over where the log starts
                self._ledger.reset()
                self.log.truncate_fully_and_start_at(first, wall_ms)
        data = self._read(max(self.log.end_offset, source.start_offset), max_bytes)
        return 0 if data is None else self._append(data, wall_ms)

    def _read(self, offset: int, max_bytes: int) -> bytes | None:
        try:
            found = self.source.read(offset, max_bytes)
            return None if found is None else found.read()
        except OSError as error:
            raise KafkaStorageError(f"{self.name} cannot be read at {offset}: {error}") from error

    def _append(self, data: bytes, wall_ms: int) -> int:
        whole = [facts for facts in batches(data) if facts.base_offset >= self.log.end_offset]
        if not whole:
            return 0
        first = whole[0].position
        size = whole[-1].position + whole[-1].size - first
        chunk = memoryview(data)[first : first + size]
        start = whole[0].base_offset
        for facts in whole:
            facts.position -= first
        self.log.append(chunk, whole, wall_ms)
        for facts in whole:
            control = bytes(chunk[facts.position : facts.position + facts.size]) if facts.is_control else None
            self._ledger.replay(facts, control)
        end = self.log.end_offset
        for row in self.source.aborted_in(start, end):
            if start <= row.last_offset < end:
                self.log.note_aborted(row)
        return size

    # ------------------------------------------------------------ the end

    def take_over(self, settings: TopicSettings, producers: ProducerLedger, wall_ms: int) -> Log:
        """Put the copy in the log's place, as tabulated; returns the log at its new place, with the log's ledger.

        The copy must hold all, and nobody may append meanwhile. Raises `OSError`: a directory that failed is offline
        then, and if neither is, the log goes on where it was.
        """
        self._finish(wall_ms)
        self._decide()
        return self._replace(settings, producers, wall_ms)

    def _finish(self, wall_ms: int) -> None:
        if self.log.end_offset < self.source.end_offset:
            self.log.roll(wall_ms, self.source.end_offset)  # the log's last records were compacted away
        self._ledger.load(copy.deepcopy(self.source.producer_entries()))
        self.log.close()
        self.log.advance_log_start(min(self.source.start_offset, self.log.end_offset))
        self.target.write_recovery_points()
        self.target.write_log_starts()

    def _decide(self) -> None:
        try:
            self._rename(self.target, self.log.folder, self._moved)
        except OSError as error:
            self.target.fail(error)
            raise

    def _replace(self, settings: TopicSettings, producers: ProducerLedger, wall_ms: int) -> Log:
        doomed = doomed_name(*self.name, self._unique)
        own = f"{self.name.topic}-{self.name.partition}"
        self.source.abandon()
        try:
            self._rename(self.source_directory, self.source.folder, doomed)
        except OSError as error:
            self.source_directory.fail(error)
            raise
        del self.source_directory.logs[self.name]
        try:
            self._rename(self.target, f"{self.target.path}/{self._moved}", own)
            made = Log.open(
                self._disk,
                self.target.path,
                *self.name,
                settings,
                recovery_point=self.log.end_offset,
                log_start=self.source.start_offset,
                clean=True,
                wall_ms=wall_ms,
                producers=self._ledger,
                on_roll=self.source.roll_observer,
                jitter=self.source.jitter,
                file_deleter=self.target.file_deleter,
            )
        except OSError as error:
            self.target.logs[self.name] = self.source  # offline with its directory, until the next open
            self.target.fail(error)
            raise
        made.take_ledger(producers)
        del self.target.futures[self.name]
        self.target.logs[self.name] = made
        self.source_directory.file_deleter.later([f"{self.source_directory.path}/{doomed}"])
        return made

    @property
    def _moved(self) -> str:
        return f"{self.name.topic}-{self.name.partition}.{self._unique.hex}{MOVED_DIR}"

    def _rename(self, directory: DataDirectory, old: str, name: str) -> None:
        self._disk.rename(old, f"{directory.path}/{name}")
        self._disk.sync_dir(directory.path)

    def abandon(self) -> None:
        """Give the copy up, and its folder where the directory lets us."""
        self.target.futures.pop(self.name, None)
        self.log.abandon()
        if self.target.failure is None:
            try:
                self.target.drop(self.log.folder.rpartition("/")[2], self.name)
            except OSError as error:
                log.warning("copy not removed, the next start does: folder=%s error=%s", self.log.folder, error)


# ---------------------------------------------------------------- at the next open


def end_interrupted(
    disk: Disk,
    directories: Sequence[DataDirectory],
    settings: Callable[[str], TopicSettings],
    deleted: Callable[[UUID], bool],
) -> list[tuple[TopicPartition, str]]:
    """Finish or undo what an interrupted move left in any of `directories`, which are all, before the logs are opened.

    What is of a topic whose id was `deleted` goes. Returns (partition, path of the directory) of moves to be started
    anew. A directory that fails is offline then.
    """
    interrupted: list[tuple[TopicPartition, str]] = []
    for directory in _online(directories):
        try:
            for folder in sorted(disk.listdir(directory.path)):
                moved, future = copy_of(folder, MOVED_DIR), copy_of(folder, FUTURE_DIR)
                name = moved or future
                if name is None or name.topic in NO_TOPICS or directory.drop_deleted(folder, name, deleted):
                    continue
                if moved is not None:
                    _end_moved(disk, directories, directory, folder, moved, settings, deleted)
                else:
                    directory.drop(folder, name)
                    interrupted.append((name, directory.path))
        except OSError as error:
            directory.fail(error)
    return interrupted


def _online(directories: Sequence[DataDirectory]) -> list[DataDirectory]:
    return [each for each in directories if each.failure is None]


def _end_moved(
    disk: Disk,
    directories: Sequence[DataDirectory],
    directory: DataDirectory,
    folder: str,
    name: TopicPartition,
    settings: Callable[[str], TopicSettings],
    deleted: Callable[[UUID], bool],
) -> None:
    own = str(name)
    rivals = [each for each in _online(directories) if disk.exists(f"{each.path}/{own}")]
    rivals = [each for each in rivals if not each.drop_deleted(own, name, deleted)]
    if not rivals and any(each.failure is not None for each in directories):
        log.warning("a moved log waits for the directory that is offline: path=%s folder=%s", directory.path, folder)
        return
    for rival in rivals:
        if _reach(disk, directory, name, settings, folder) < _reach(disk, rival, name, settings, own):
            log.warning("the log at its old place goes further than its copy: kept=%s dropped=%s", rival.path, folder)
            directory.drop(folder, name)
            return
        try:
            rival.drop(own, name)
            disk.sync_dir(rival.path)
        except OSError as error:
            rival.fail(error)
            return
    disk.rename(f"{directory.path}/{folder}", f"{directory.path}/{own}")
    disk.sync_dir(directory.path)
    log.info("move finished: partition=%s path=%s", name, directory.path)


def _reach(
    disk: Disk, directory: DataDirectory, name: TopicPartition, settings: Callable[[str], TopicSettings], folder: str
) -> tuple[int, int]:
    """(latest leader epoch, end) of a log; it is recovered for that."""
    found = Log.open(
        disk,
        directory.path,
        *name,
        settings(name.topic),
        recovery_point=directory.recovery_points.get(name, 0),
        log_start=directory.log_starts.get(name, 0),
        clean=directory.clean,
        producers=NoProducers(),
        folder=folder,
    )
    try:
        return found.epochs.latest, found.end_offset
    finally:
        found.abandon()
