"""The broker's logs on its data directories: opened, made, removed, checkpointed.

It is told facts (a partition's name, its topic's id, watermarks) and reports the partitions whose directory failed; who
leads or reads them is not known here.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from logkernel.broker.metadata_log import DiskMetadataLog, metadata_generations
from logkernel.broker.runtime import Runtime
from logkernel.config.topic import TopicSettings
from logkernel.contracts import StateLog
from logkernel.errors import KafkaStorageError
from logkernel.storage.checkpoints import CLUSTER_MEMBER
from logkernel.storage.directories import LogAbsent, LogDirectories, Needs
from logkernel.storage.directory import CheckpointWrite, CutNotBegun, DataDirectory
from logkernel.storage.disk import PASSING, Disk
from logkernel.storage.log import Log
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.partition.producers import ProducerStates

log = logging.getLogger("logkernel.storage")

DEFAULT_FOLDER = "./data"
MAX_GIVEN_ID = 1 << 62
"""No cluster counts so far: a larger producer id in a log was made up by its client, and is not counted on from."""

Written = Callable[[DataDirectory, OSError | None], None]
"""Told of each directory, and what went wrong with writing there."""
Rolled = Callable[[TopicPartition, int, int], None]
"""Told partition, base offset and bytes of a segment that was closed."""


class LogEvents(Protocol):
    """What the rest of the broker does about failed directories."""

    def directory_failed(self, directory: DataDirectory) -> None:
        """A directory failed; its partitions are reported next."""
        ...

    def partition_failed(self, name: TopicPartition, error: KafkaStorageError) -> None:
        """Called for a partition in an offline directory, at each attempt to open it."""
        ...


class LogManager:
    """All data directories of one broker."""

    def __init__(
        self, runtime: Runtime, events: LogEvents, *, in_memory: bool = False, disk: Disk | None = None
    ) -> None:
        """`disk` stands in for the operating system's (a simulation)."""
        self._runtime = runtime
        self._events = events
        self._in_memory = in_memory
        self._ledgers: dict[TopicPartition, ProducerStates] = {}
        self._directories: LogDirectories | None = None
        self._all_loaded = False
        self._deleting_files = False
        configured = runtime.config.get("log.dirs") or ()
        self.paths: list[str] = ["/memory"] if in_memory else [str(path) for path in configured]
        if not self.paths:
            self.paths = [DEFAULT_FOLDER]
        self._disk = disk or self._make_disk()

    def _make_disk(self) -> Disk:
        if self._in_memory:
            from logkernel.storage.memory_disk import MemoryDisk

            return MemoryDisk()
        from logkernel.storage.disk import RealDisk

        return RealDisk()

    @property
    def directories(self) -> LogDirectories:
        assert self._directories is not None, "the directories are not open"
        return self._directories

    @property
    def cluster_id(self) -> str:
        return self.directories.cluster_id

    def folders(self) -> list[str]:
        """The data directories that are online, where there is a disk."""
        return [] if self._in_memory else [directory.path for directory in self.directories.online()]

    @property
    def coordination_name(self) -> str:
        return "memory" if self._in_memory else str(self._runtime.config.get("coordination"))

    # ------------------------------------------------------------ open

    def open(self, cluster_id: str | None = None) -> None:
        """Lock and read the directories; they must be new or of this cluster, where its id is known. Raises
        `DataDirectoryLocked`, `ConfigError`, `KafkaStorageError`."""
        runtime = self._runtime
        self._directories = LogDirectories.open(
            self._disk, self.paths, node_id=runtime.node_id, cluster_id=cluster_id, unique=runtime.random.uuid
        )

    def _find_metadata_folder(self) -> str:
        """Raises `KafkaStorageError` where it may be on a directory that is offline."""
        online = [directory.path for directory in self.directories.online()]
        for path in online:
            if metadata_generations(self._disk, path):
                return path
        if self.directories.offline():
            offline = ", ".join(directory.path for directory in self.directories.offline())
            raise KafkaStorageError(
                f"{', '.join(online)}: no metadata log is here, and it may lie where nothing can be read ({offline});"
                " repair that directory first, or remove it from log.dirs"
            )
        return online[0]

    def note_member(self, is_member: bool) -> None:
        """Note beside a metadata log whether it counts; in a cluster, what a broker once decided alone does not.
        Commands on the folder look for it. Most members have no such log, and get no note."""
        for directory in self.directories.online():
            note = f"{directory.path}/{CLUSTER_MEMBER}"
            with contextlib.suppress(OSError):  # a disk that fails is found by what it is needed for
                if is_member and metadata_generations(self._disk, directory.path):
                    self._disk.write_atomic(note, b"")
                elif self._disk.exists(note):
                    self._disk.remove(note)

    def open_metadata_log(self) -> StateLog:
        """The log that the coordination keeps the cluster's metadata in. Raises `KafkaStorageError`."""
        return DiskMetadataLog(
            self._disk, self._find_metadata_folder(), torn_is_well=not self.ended_well,
            clock=self._runtime.clock, randomness=self._runtime.random,
        )  # fmt: skip

    @property
    def ended_well(self) -> bool:
        """Whether every directory that is online was closed cleanly by its last owner."""
        return all(directory.clean for directory in self.directories.online())

    def load(self, settings: Callable[[str], TopicSettings], deleted: Container[UUID], rolled: Rolled) -> None:
        """Open every log, recover what needs it. `settings` are by topic, `deleted` holds the ids of topics that are
        gone, also those whose folder was out of reach by then."""
        needs = Needs(
            settings, self._ledger, rolled, self._runtime.random.fraction, lambda topic_id: topic_id in deleted
        )
        threads = int(self._runtime.config.get("num.recovery.threads.per.data.dir"))
        self.directories.load(needs, self._runtime.clock.wall_ms(), threads)

    def topic_ids(self) -> dict[TopicPartition, UUID | None]:
        """Of every log that is open, as its folder says."""
        return {name: each.topic_id for name, each in self.directories.logs.items()}

    def topic_id_of(self, name: TopicPartition) -> UUID | None:
        """The topic's id in the folder of an open log; None where there is no such log, or a crash took the id."""
        found = self.directories.logs.get(name)
        return None if found is None else found.topic_id

    def largest_producer_id(self) -> int:
        """Of those in the logs; -1 where there is none."""
        ids = (entry.producer_id for ledger in self._ledgers.values() for entry in ledger.entries())
        return max((found for found in ids if found < MAX_GIVEN_ID), default=-1)

    def all_loaded(self) -> None:
        """Every partition of an earlier life was asked for: a log that is asked for from now on is a new one."""
        self._all_loaded = True

    def _ledger(self, name: TopicPartition) -> ProducerStates:
        from logkernel.partition.producers import ProducerStates

        ledger = self._ledgers[name] = ProducerStates()
        return ledger

    # ------------------------------------------------------------ logs

    def obtain(
        self, name: TopicPartition, topic_id: UUID, *, is_new: bool | None = None, takes_unnamed: bool = True
    ) -> Log | LogAbsent:
        """The open log, or a new one; else the reason: it lies, or may lie, in a directory that is offline or
        unreadable, or could not be made.

        A controller says whether the partition `is_new`. Where nobody says so, one is that is asked for after
        `all_loaded`. A log whose topic's id a crash took may be of an earlier topic of that name: without
        `takes_unnamed` it begins anew, unless it may have been synced. It is had once its id is in its folder, so that
        nothing is synced without.
        """
        found = self.directories.logs.get(name)
        if found is not None:
            absent = None
            if found.topic_id is None and found.failure is None:
                absent = self._name(name, found, topic_id, takes_unnamed)
            return absent or (found if found.failure is None else LogAbsent("its directory is offline"))
        is_new = self._all_loaded if is_new is None else is_new
        if name in self.directories.unreadable:
            return LogAbsent("it cannot be read")
        if not is_new and self.directories.offline():  # made in an earlier life
            return LogAbsent("it may lie in a directory that is offline")
        if not is_new:
            log.warning("no directory has the log, which is made anew: partition=%s", name)
        try:
            return self.directories.create(name, topic_id, self._runtime.clock.wall_ms())
        except KafkaStorageError as error:
            cause = error.__cause__
            may_come = isinstance(cause, OSError) and cause.errno in PASSING
            if may_come:
                log.error("log not made yet, there is no room for it: partition=%s error=%s", name, error)
            else:
                log.error("log not made, the partition is offline until a restart: partition=%s error=%s", name, error)
            return LogAbsent(f"it could not be made: {error}", may_come)

    def _name(self, name: TopicPartition, found: Log, topic_id: UUID, takes_unnamed: bool) -> LogAbsent | None:
        """Give a log of an unknown topic its id, and empty it where it is not to be taken as it is."""
        try:
            if not takes_unnamed and found.end_offset and not self.directories.may_be_synced(name):
                log.warning("log of an unknown topic begins anew: partition=%s end=%d", name, found.end_offset)
                self.restart(name, 0)
        except CutNotBegun as error:
            return self._not_named(name, error)
        except OSError as error:
            self.fail_directory_of(name, error)
            return None
        try:
            found.take_topic(topic_id)
        except OSError as error:
            return self._not_named(name, error)
        return None

    def _not_named(self, name: TopicPartition, error: OSError) -> LogAbsent | None:
        if error.errno not in PASSING:
            self.fail_directory_of(name, error)
            return None
        log.error("log not had yet, there is no room for its topic's id: partition=%s error=%s", name, error)
        return LogAbsent(f"there is no room for its topic's id: {error}", may_come=True)

    def producers_of(self, name: TopicPartition) -> ProducerStates:
        """What its log says of the producers of a partition that was obtained."""
        return self._ledgers[name]

    def noted_watermark(self, name: TopicPartition) -> int:
        """The last watermark of a partition that is not served."""
        return self.directories.high_watermark(name)

    def note_watermark(self, name: TopicPartition, watermark: int) -> None:
        """Keep the watermark of a partition that is served no more; the next checkpoint writes it."""
        self.directories.directory_of(name).high_watermarks[name] = watermark

    def truncate(self, name: TopicPartition, offset: int) -> None:
        """Cut a log to end at `offset`, or before a batch that holds it; durable on return. Raises `CutNotBegun`
        where the log is as before, `OSError` where it may not be."""
        self.directories.truncate(name, offset)

    def restart(self, name: TopicPartition, offset: int) -> None:
        """Throw every record of a log away; it starts and ends at `offset`. Durable on return. Raises as `truncate`."""
        self.directories.truncate_fully_and_start_at(name, offset, self._runtime.clock.wall_ms())

    def delete(self, name: TopicPartition) -> None:
        """Remove the log, even if it is unreadable; its files are deleted later."""
        self.remove(name)
        self.report_failures()
        self.delete_files()

    def delete_topic(self, topic: str) -> None:
        """Remove every log of a topic; the files are deleted later."""
        for name in [*self.directories.logs, *self.directories.unreadable]:
            if name.topic == topic:
                self.remove(name)
        self.report_failures()
        self.delete_files()

    def remove(self, name: TopicPartition) -> None:
        self._ledgers.pop(name, None)
        try:
            self.directories.delete(name)
        except OSError as error:
            log.error("log not removed, the next start does: partition=%s error=%s", name, error)

    def sync_deletions(self, topics: Container[str]) -> bool:
        """Make the removal of the folders of all but these topics durable; return False if a disk may still have
        one."""
        directories = self.directories
        if not self._all_loaded or directories.offline() or directories.unreadable or directories.left:
            return False
        if any(name.topic not in topics for name in directories.logs):
            return False
        for directory in directories.online():
            try:
                self._disk.sync_dir(directory.path)
            except OSError as error:
                log.error("folder not synced: path=%s error=%s", directory.path, error)
                return False
        return True

    def delete_files(self) -> None:
        """Have removed, by a worker, what was dropped or deleted."""
        deleter = self.directories.file_deleter
        if deleter.waiting and not self._deleting_files:
            self._deleting_files = True
            workers = self._runtime.workers
            workers.run(lambda: deleter.run(workers.pause), self._files_deleted)

    def _files_deleted(self, error: BaseException | None) -> None:
        self._deleting_files = False
        if error is not None:
            log.error("removing dropped files failed: error=%s", error)
        else:
            self.delete_files()

    # ------------------------------------------------------------ failure

    def fail_directory_of(self, name: TopicPartition, error: OSError) -> None:
        """The directory of a partition goes offline with every partition in it."""
        directory = self.directories.directory_of(name)
        directory.fail(error)
        self.directory_failed(directory)

    def directory_failed(self, directory: DataDirectory) -> None:
        """Take a directory offline after an error in it."""
        self._events.directory_failed(directory)
        self.report_failures()

    def report_failures(self) -> None:
        """Report every partition in an offline directory, however the failure was found."""
        for directory in self.directories.offline():
            for name in directory.logs:
                self._events.partition_failed(name, KafkaStorageError(f"{directory.path}: {directory.failure}"))

    def path_of(self, directory: DataDirectory) -> str:
        """Return a directory's absolute path, as answers to tools name it."""
        return directory.path if self._in_memory else os.path.abspath(directory.path)

    # ------------------------------------------------------------ checkpoints and the end

    def checkpoint_recovery_points(self) -> None:
        """Begin to write them, in every directory that is online; as the next two."""
        self._checkpoint(DataDirectory.begin_recovery_points)

    def checkpoint_log_starts(self, done: Written | None = None) -> None:
        self._checkpoint(DataDirectory.begin_log_starts, done)

    def checkpoint_watermarks(self, marks: Mapping[TopicPartition, int]) -> None:
        self._checkpoint(lambda directory: directory.begin_high_watermarks(marks))

    def _checkpoint(self, begin: Callable[[DataDirectory], CheckpointWrite], done: Written | None = None) -> None:
        """Off the path of requests, as a disk that is busy lets a sync wait for long."""

        def written(directory: DataDirectory, error: BaseException | None) -> None:
            failed = error if error is None or isinstance(error, OSError) else OSError(str(error))
            if failed is not None:
                self.directories.not_written(directory, failed)
            self.report_failures()
            if done is not None:
                done(directory, failed)

        for directory in self.directories.online():
            self._runtime.run_flush(begin(directory), partial(written, directory))

    def write_log_starts(self) -> bool:
        """Here and now, as what was promised must not come undone; returns whether all were written."""
        well = self.directories.write_log_starts()
        self.report_failures()
        return well

    def close(self, marks: Mapping[TopicPartition, int]) -> None:
        """Sync and close every log, note the watermarks, leave the clean-shutdown marks."""
        self.directories.close(marks)

    def abandon(self) -> None:
        """Give the locks back and write nothing: the broker never started."""
        if self._directories is not None:
            self._directories.abandon()
