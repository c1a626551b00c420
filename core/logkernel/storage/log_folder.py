"""The folder of one log: which of its names a crash may take back, and what was dropped from it.

A name is durable once the folder that holds it was synced, which a flush does (`take_unsynced`) or, where something
must not come back, the one that changed it (`sync`).
"""

from __future__ import annotations

from uuid import UUID

from logkernel.config.topic import TopicSettings
from logkernel.storage.checkpoints import (
    PARTITION_METADATA,
    CorruptCheckpoint,
    format_partition_metadata,
    parse_partition_metadata,
)
from logkernel.storage.disk import Disk
from logkernel.storage.dropped_files import DroppedFiles
from logkernel.storage.file_deleter import FileDeleter
from logkernel.storage.names import doomed_name
from logkernel.storage.segment import Segment
from logkernel.vocabulary import TopicPartition


class LogFolder:
    """Made on the disk, unless it is there already. `file_deleter` removes what is dropped; at once without one."""

    __slots__ = (
        "_file_deleter", "_loose", "_taken", "_unsynced_names", "_unsynced_self", "disk", "dropped", "is_fresh", "path",
    )  # fmt: skip

    def __init__(self, disk: Disk, path: str, file_deleter: FileDeleter | None = None) -> None:
        self.disk = disk
        self.path = path
        self._file_deleter = file_deleter
        self.dropped = DroppedFiles(disk, path, file_deleter)
        self.is_fresh = not disk.exists(path)
        """It was made just now."""
        self._unsynced_self = self.is_fresh
        """The folder's own name, or its partition.metadata, may not be durable."""
        self._unsynced_names = True
        """Names in the folder may not be durable."""
        self._loose: set[str] = set()
        """Small files that were written and that no flush took yet."""
        self._taken: set[str] = set()
        """Those that the last flush took, which may run still."""
        if self.is_fresh:
            disk.mkdir(path)

    @property
    def deletes_later(self) -> bool:
        """Whether another thread removes dropped files."""
        return self._file_deleter is not None

    def note_topic(self, topic_id: UUID | None, clean: bool) -> UUID | None:
        """Return the topic id in the folder; write `topic_id` there if it has none. Raises `CorruptCheckpoint`."""
        path = f"{self.path}/{PARTITION_METADATA}"
        if not self.is_fresh and self.disk.exists(path):
            data = self.disk.read(path)
            try:
                return parse_partition_metadata(data, path)
            except CorruptCheckpoint:
                if data and clean:
                    raise
                self.disk.remove(path)  # a crash left it behind, empty or torn: the metadata log knows the id
        if topic_id is not None:
            self.disk.write(path, format_partition_metadata(topic_id))
            self._unsynced_self = True
        return topic_id

    def new_segment(self, base: int, wall_ms: int, settings: TopicSettings) -> Segment:
        """An empty segment, with its file."""
        segment = Segment(self.disk, self.path, base, wall_ms, settings.segment_index_bytes)
        segment.create()
        if settings.preallocate:
            segment.preallocate(settings.segment_bytes)
        self._unsynced_names = True
        return segment

    # ------------------------------------------------------------ durable names

    @property
    def has_unsynced(self) -> bool:
        return self._unsynced_names or self._unsynced_self

    def names_changed(self) -> None:
        """The next flush has to sync the folder."""
        self._unsynced_names = True

    def write(self, path: str, data: bytes) -> None:
        """Write a small file that the next flush has to sync. Raises `OSError`."""
        self.disk.write(path, data)
        self._loose.add(path)
        self._unsynced_names = True

    def sync_file(self, path: str) -> None:
        """Sync such a file now, unless a flush did. Raises `OSError`."""
        if path in self._loose or path in self._taken:
            self.disk.sync(path)
            self.sync()
            self._loose.discard(path)
            self._taken.discard(path)

    def forget(self, path: str) -> None:
        """Such a file was removed."""
        self._loose.discard(path)
        self._taken.discard(path)

    def opened(self, *, changed: bool) -> None:
        """The log's files were read; where that `changed` names they are made durable, unless the folder is new."""
        if not self._unsynced_self:
            if changed:
                self.sync()
            self._unsynced_names = bool(self._loose)

    def sync(self) -> None:
        """Make the names in the folder durable. Raises `OSError`."""
        self.disk.sync_dir(self.path)

    def take_unsynced(self) -> tuple[list[str], list[str]]:
        """(files, folders) that a flush must sync; nothing is left to sync, unless `not_synced` says otherwise."""
        files, folders = [], []
        if self._unsynced_self:
            files = [path] if self.disk.exists(path := f"{self.path}/{PARTITION_METADATA}") else []
            folders.append(self.path.rpartition("/")[0])
        if self._unsynced_names:
            folders.append(self.path)
        self._taken, self._loose = self._loose, set()
        self._unsynced_self = self._unsynced_names = False
        return [*files, *sorted(self._taken)], folders

    def not_synced(self) -> None:
        """What `take_unsynced` gave was not synced: the next flush has to do all of it."""
        self._unsynced_self = self._unsynced_names = True
        self._loose |= self._taken

    # ------------------------------------------------------------ what goes

    def drop_later(self, paths: list[str]) -> None:
        """Files that have their names for removal: `dropped.purge` removes them."""
        if paths:
            self.dropped.renamed(paths)
        self._unsynced_names = True

    def remove(self, segment: Segment) -> None:
        """Remove the files of a segment, here and now; `sync` makes that durable."""
        for path in segment.rename_deleted():
            self.disk.remove(path)

    def delete(self, name: TopicPartition, unique: UUID) -> None:
        """The folder gets a name that is no log's, then goes."""
        parent = self.path.rpartition("/")[0]
        doomed = f"{parent}/{doomed_name(*name, unique)}"
        self.disk.rename(self.path, doomed)
        if self._file_deleter is not None:
            self._file_deleter.later([doomed])
        else:
            self.disk.remove_tree(doomed)
