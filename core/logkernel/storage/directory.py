"""One data directory (an entry of `log.dirs`): its owner, whether its last stop was clean, and its checkpoints.

    .lock                              held while a broker runs
    meta.properties                    node id, cluster id, directory id
    .kafka_cleanshutdown               there only between a clean close and the next open
    recovery-point-offset-checkpoint   below it everything is synced
    log-start-offset-checkpoint        where logs start, if not at 0
    replication-offset-checkpoint      high watermarks
    cleaner-offset-checkpoint          below it logs are compacted
    <topic>-<partition>/               logs

A directory that fails goes offline with its logs, alone.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
from collections.abc import Callable, Mapping
from uuid import UUID

from logkernel.errors import ConfigError, KafkaStorageError
from logkernel.storage.checkpoints import (
    CLEAN_OFFSETS,
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    CorruptCheckpoint,
    MetaProperties,
    format_clean_shutdown,
    format_meta,
    format_offsets,
    parse_clean_shutdown,
    parse_meta,
    parse_offsets,
    parse_partition_metadata,
)
from logkernel.storage.disk import Disk
from logkernel.storage.file_deleter import FileDeleter
from logkernel.storage.log import Log
from logkernel.storage.names import (
    BROKER_FOLDER,
    DELETE_DIR,
    DELETED,
    FUTURE_DIR,
    LOG,
    MOVED_DIR,
    NO_TOPICS,
    doomed_name,
    offset_of,
    partition_of,
)
from logkernel.vocabulary import TopicPartition, format_id

log = logging.getLogger("logkernel.storage")

LOCK = ".lock"
CheckpointWrite = Callable[[], None]
"""Writes a checkpoint file durably, with the offsets as they were when the call was made; runs on any thread. Does
nothing if a later checkpoint was written meanwhile. Raises `OSError`."""


class CutNotBegun(OSError):
    """A checkpoint that a cut needs was not written; the log is as before, and the cut may be tried again."""


class DataDirectory:
    """One directory of `log.dirs`. `DataDirectory.open` makes it; it holds the lock until `close` or `abandon`."""

    __slots__ = (
        "_disk",
        "_release",
        "_turn",
        "_unique",
        "_writing",
        "_written",
        "broker_epoch",
        "clean",
        "clean_offsets",
        "failure",
        "file_deleter",
        "futures",
        "high_watermarks",
        "log_starts",
        "logs",
        "meta",
        "noted",
        "path",
        "recovery_points",
    )  # fmt: skip

    def __init__(
        self, disk: Disk, path: str, unique: Callable[[], UUID], file_deleter: FileDeleter | None = None
    ) -> None:
        self._disk = disk
        self._unique = unique
        self.file_deleter = FileDeleter(disk) if file_deleter is None else file_deleter
        """Removes folders of logs that were deleted."""
        self.path = path
        self._release: Callable[[], None] | None = None
        self.meta: MetaProperties | None = None
        self.clean = False
        """The last owner closed it cleanly."""
        self.broker_epoch = -1
        """The epoch that the clean-shutdown mark named."""
        self.failure: OSError | None = None
        """Why the directory is offline, or None."""
        self.logs: dict[TopicPartition, Log] = {}
        self.futures: dict[TopicPartition, Log] = {}
        """Copies of logs of other directories that are to move here; see `moving`."""
        self.log_starts: Mapping[TopicPartition, int] = {}
        """What their file says, durably."""
        self.recovery_points: dict[TopicPartition, int] = {}
        """As read at open; so are clean offsets."""
        self.clean_offsets: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        """The last ones that are known, as read at open or noted since; none above its log's end once logs are open."""
        self.noted: dict[str, frozenset[TopicPartition]] = {}
        """Checkpoint file → the partitions that it names, or may name."""
        self._turn = 0
        self._writing = threading.Lock()
        self._written: dict[str, int] = {}
        """Checkpoint file → the turn of which it holds the offsets."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        path: str,
        *,
        node_id: int,
        cluster_id: str | None = None,
        unique: Callable[[], UUID] = uuid.uuid4,
        file_deleter: FileDeleter | None = None,
    ) -> DataDirectory:
        """Lock, check and read the directory, which is made where it does not exist.

        Raises `DataDirectoryLocked`, `ConfigError` for a directory of another node or cluster, or that holds those of
        a cluster's brokers, and `CorruptCheckpoint` for an unreadable meta.properties. A failing disk gives a
        directory that is offline.
        """
        self = cls(disk, path, unique, file_deleter)
        try:
            refuse_clusters_folder(disk, path)
            _make_durably(disk, path)
            self._release = disk.lock(f"{path}/{LOCK}")
            self._own(node_id, cluster_id)
            self._take_mark()
            self.recovery_points = self._offsets(RECOVERY_POINTS)
            self.log_starts = self._offsets(LOG_STARTS)
            self.high_watermarks = self._offsets(HIGH_WATERMARKS)
            self.clean_offsets = self._offsets(CLEAN_OFFSETS)
            self.file_deleter.later([f"{path}/{each}" for each in disk.listdir(path) if each.endswith(DELETE_DIR)])
        except OSError as error:
            self.fail(error)
        except BaseException:
            self.abandon()
            raise
        return self

    def _own(self, node_id: int, cluster_id: str | None) -> None:
        path = f"{self.path}/{META_PROPERTIES}"
        known = parse_meta(self._disk.read(path), path) if self._disk.exists(path) else None
        if known is not None and known.node_id != node_id:
            raise ConfigError(f"{path} says that the directory belongs to node.id={known.node_id}, not {node_id}")
        if known is not None and cluster_id and known.cluster_id and known.cluster_id != cluster_id:
            raise ConfigError(f"{path} says that the directory belongs to cluster {known.cluster_id}, not {cluster_id}")
        version = 1 if known is None else known.version  # a Kafka over ZooKeeper takes its own directory back
        directory_id = None if known is None else known.directory_id
        self.meta = MetaProperties(
            node_id,
            (known.cluster_id if known is not None else "") or cluster_id or format_id(self._unique()),
            directory_id or (format_id(self._unique()) if version else None),
            version,
        )
        if self.meta != known:
            self._disk.write_atomic(path, format_meta(self.meta))

    def remove_dropped(self) -> bool:
        """Remove, here and now, the files that logs dropped in an earlier life; says whether there were any."""
        found = False
        for name in self._disk.listdir(self.path):
            folder = f"{self.path}/{name}"
            for file in self._disk.listdir(folder) if partition_of(name) is not None else ():
                if file.endswith(DELETED):
                    with contextlib.suppress(FileNotFoundError):
                        self._disk.remove(f"{folder}/{file}")
                    found = True
        return found

    def _take_mark(self) -> None:
        """Read the clean-shutdown mark and remove it, durably: a crash from now on must be seen as one."""
        path = f"{self.path}/{CLEAN_SHUTDOWN}"
        self.clean = self._disk.exists(path)
        if self.clean:
            self.broker_epoch = parse_clean_shutdown(self._disk.read(path))
            self._disk.remove(path)
            self._disk.sync_dir(self.path)

    def _offsets(self, name: str) -> dict[TopicPartition, int]:
        path = f"{self.path}/{name}"
        if not self._disk.exists(path):
            return {}
        data = self._disk.read(path)
        if not data:  # so Kafka makes it, before there is anything to write
            return {}
        try:
            found = parse_offsets(data, path)
        except CorruptCheckpoint as error:
            log.warning("%s: the file is ignored, every offset in it counts as 0", error)
            return {}
        self.noted[name] = frozenset(found)
        return found

    # ------------------------------------------------------------ logs

    def partitions(self) -> list[TopicPartition]:
        """The partitions that have a log folder here."""
        found = [partition_of(folder) for folder in self._disk.listdir(self.path)]
        return sorted(name for name in found if name is not None and name.topic not in NO_TOPICS)

    def drop(self, folder: str, name: TopicPartition) -> None:
        """Give a folder a name that says that it goes, and let it go. Raises `OSError`."""
        doomed = f"{self.path}/{doomed_name(*name, self._unique())}"
        self._disk.rename(f"{self.path}/{folder}", doomed)
        self.file_deleter.later([doomed])

    def drop_deleted(self, folder: str, name: TopicPartition, deleted: Callable[[UUID], bool]) -> bool:
        """Let a folder go if its topic's id is one that was deleted; says whether it was. Raises `OSError`."""
        path = f"{self.path}/{folder}/{PARTITION_METADATA}"
        try:
            found = self._disk.exists(path) and deleted(parse_partition_metadata(self._disk.read(path), path))
        except CorruptCheckpoint:
            return False
        if found:
            log.info("log of a deleted topic removed: partition=%s path=%s", name, self.path)
            self.drop(folder, name)
        return found

    def drop_untouched(self, folder: str, name: TopicPartition) -> bool:
        """Let a folder go if nothing was ever appended to its log; says whether it was so. Raises `OSError`."""
        path = f"{self.path}/{folder}"
        segments = [file for file in self._disk.listdir(path) if file.endswith(LOG)]
        found = all(offset_of(file, LOG) == 0 and not self._disk.size(f"{path}/{file}") for file in segments)
        if found:
            self.drop(folder, name)
        return found

    def has_copies(self) -> bool:
        """Did an unfinished move leave something here? A failing disk takes the directory offline."""
        try:
            return any(folder.endswith((FUTURE_DIR, MOVED_DIR)) for folder in self._disk.listdir(self.path))
        except OSError as error:
            self.fail(error)
            return False

    def space(self) -> tuple[int, int]:
        """(all bytes, usable bytes) of the volume. Raises `OSError`."""
        return self._disk.space(self.path)

    def fail(self, cause: OSError) -> None:
        """Take the directory offline: its logs raise `KafkaStorageError` from now on."""
        if self.failure is None:
            log.error("%s goes offline with %d logs: %s", self.path, len(self.logs), cause)
            self.failure = cause
            for each in (*self.logs.values(), *self.futures.values()):
                each.fail(cause)

    def check(self) -> None:
        """Raises `KafkaStorageError` where the directory is offline."""
        if self.failure is not None:
            raise KafkaStorageError(f"{self.path} is offline: {self.failure}") from self.failure

    # ------------------------------------------------------------ checkpoints

    def begin_recovery_points(self) -> CheckpointWrite:
        """For every log here; as the three below. Raises `KafkaStorageError`."""
        here = {**self.futures, **self.logs}
        return self._begin(RECOVERY_POINTS, {name: each.recovery_point for name, each in here.items()})

    def begin_log_starts(self) -> CheckpointWrite:
        """Kafka leaves out logs that start at a segment's base; they stay here, as a crash may undo a removal."""
        here = {**self.futures, **self.logs}
        found = {name: max(each.start_offset, each.promised_start) for name, each in here.items()}
        starts = {name: start for name, start in found.items() if start}

        def written() -> None:
            self.log_starts = starts

        return self._begin(LOG_STARTS, starts, written)

    def begin_high_watermarks(self, watermarks: Mapping[TopicPartition, int]) -> CheckpointWrite:
        """`watermarks` may name partitions that lie elsewhere. A log that it does not name keeps its old one: it is not
        served, or not yet."""
        self.high_watermarks.update((name, watermarks[name]) for name in self.logs if name in watermarks)
        return self._begin(
            HIGH_WATERMARKS, {name: mark for name, mark in self.high_watermarks.items() if name in self.logs}
        )

    def limit_high_watermarks(self) -> bool:
        """Lower those above their logs' ends, which a crash may have cut. True: they have to be written."""
        above = {name: each.end_offset for name, each in self.logs.items() if self._mark(name) > each.end_offset}
        self.high_watermarks.update(above)
        return bool(above)

    def _mark(self, name: TopicPartition) -> int:
        return self.high_watermarks.get(name, 0)

    def lower_high_watermark(self, name: TopicPartition, end: int) -> None:
        """A log ends, or is about to end, at `end`: keep no watermark above it, durably. Else what is appended there
        would count as committed after a crash. Raises `OSError`, with the old one kept: the file has it still."""
        before = self._mark(name)
        if before > end:
            self.high_watermarks[name] = end
            try:
                self.write_high_watermarks({})
            except OSError:
                self.high_watermarks[name] = before
                raise

    def begin_clean_offsets(self) -> CheckpointWrite:
        """Of the logs that were rewritten once."""
        found = {name: each.clean_offset for name, each in self.logs.items()}
        return self._begin(CLEAN_OFFSETS, {name: offset for name, offset in found.items() if offset is not None})

    def _begin(
        self, name: str, offsets: Mapping[TopicPartition, int], written: CheckpointWrite | None = None
    ) -> CheckpointWrite:
        self.check()
        path, data = f"{self.path}/{name}", format_offsets(offsets)
        self.noted[name] = self.noted.get(name, frozenset()) | frozenset(offsets)
        self._turn += 1
        turn = self._turn

        def write() -> None:
            with self._writing:
                if self._written.get(name, 0) < turn:
                    self._disk.write_atomic(path, data)
                    self._written[name] = turn
                    if written is not None:
                        written()

        return write

    def write_recovery_points(self) -> None:
        """Here and now, as the three below. Raises `OSError`."""
        self.begin_recovery_points()()

    def write_log_starts(self) -> None:
        self.begin_log_starts()()

    def write_high_watermarks(self, watermarks: Mapping[TopicPartition, int]) -> None:
        self.begin_high_watermarks(watermarks)()

    def write_clean_offsets(self) -> None:
        self.begin_clean_offsets()()

    def forget(self, name: TopicPartition) -> None:
        """Remove a deleted partition from the checkpoints, before a new one gets its name. Raises `OSError`."""
        self.high_watermarks.pop(name, None)
        for file, write in (
            (RECOVERY_POINTS, self.write_recovery_points),
            (LOG_STARTS, self.write_log_starts),
            (CLEAN_OFFSETS, self.write_clean_offsets),
            (HIGH_WATERMARKS, lambda: self.write_high_watermarks({})),
        ):
            if name in self.noted.get(file, ()):
                write()
                self.noted[file] -= {name}

    # ------------------------------------------------------------ the end

    def mark_clean(self) -> None:
        """Every log here was closed: write what the next owner needs to trust them unchecked."""
        self.write_recovery_points()
        self.write_log_starts()
        self._disk.write_atomic(f"{self.path}/{CLEAN_SHUTDOWN}", format_clean_shutdown())

    def abandon(self) -> None:
        """Give the lock back and write nothing."""
        for each in (*self.logs.values(), *self.futures.values()):
            each.abandon()
        if self._release is not None:
            self._release()
            self._release = None


def refuse_clusters_folder(disk: Disk, path: str) -> None:
    """Raise `ConfigError` where the folder holds the directories of a cluster's brokers. To one broker they would be
    logs of a topic named `broker`."""
    for name in disk.listdir(path) if disk.exists(path) else ():
        if name.startswith(BROKER_FOLDER) and disk.exists(f"{path}/{name}/{META_PROPERTIES}"):
            raise ConfigError(
                f"{path} is the folder of a cluster; give one of its brokers' directories, such as {path}/{name}, "
                "or serve the cluster by --brokers and name its brokers by -b"
            )


def _make_durably(disk: Disk, path: str) -> None:
    """Make a folder and those above it so that their names survive a crash."""
    made = []
    while path and not disk.exists(path):
        made.append(path)
        path = path.rpartition("/")[0]
    if made:
        disk.mkdir(made[0])
        for folder in made:
            disk.sync_dir(folder.rpartition("/")[0] or ("/" if folder.startswith("/") else "."))
