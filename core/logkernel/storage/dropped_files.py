"""Files of segments that a log has dropped: renamed in slices, removed when their time is over."""

from __future__ import annotations

import contextlib
from collections import deque

from logkernel.storage.disk import Disk
from logkernel.storage.file_deleter import FileDeleter
from logkernel.storage.names import DELETED, SEGMENT_SUFFIXES, SNAPSHOT, offset_name

RENAMED_AT_ONCE = 16
"""Of so many dropped segments the files are renamed in one go: some 64 names, a few milliseconds."""


class DroppedFiles:
    """What left the log in `folder`. `file_deleter` removes it; without one it goes at once."""

    __slots__ = ("_disk", "_file_deleter", "_files", "_folder", "_leaving")

    def __init__(self, disk: Disk, folder: str, file_deleter: FileDeleter | None) -> None:
        self._disk = disk
        self._folder = folder
        self._file_deleter = file_deleter
        self._leaving: deque[tuple[int | None, int]] = deque()
        """(since when, base offset) of segments that have their names still, oldest first; None: since the next
        purge."""
        self._files: list[tuple[int | None, list[str]]] = []
        """(since when, files) that `purge` removes."""

    @property
    def leaving(self) -> int:
        """How many segments wait for `rename`."""
        return len(self._leaving)

    def leave(self, base: int, since_ms: int | None) -> None:
        """The segment at `base` is no part of the log any more, but for the names of its files."""
        self._leaving.append((since_ms, base))

    def renamed(self, paths: list[str]) -> None:
        """Files that were renamed for removal already."""
        self._files.append((None, paths))

    def rename(self, most: int | None = None) -> int:
        """Rename the files of `most` segments, oldest first; returns how many segments wait still."""
        leaving = self._leaving
        for _ in range(len(leaving) if most is None else min(most, len(leaving))):
            since, base = leaving[0]
            paths = []
            for path in self.files_of(base):
                if self._disk.exists(path):
                    self._disk.rename(path, path + DELETED)
                    paths.append(path + DELETED)
            leaving.popleft()
            if self._files and self._files[-1][0] == since:
                self._files[-1][1].extend(paths)
            else:
                self._files.append((since, paths))
        return len(leaving)

    def files_of(self, base: int) -> list[str]:
        """Every file that a segment may have."""
        return [f"{self._folder}/{offset_name(base, suffix)}" for suffix in (*SEGMENT_SUFFIXES, SNAPSHOT)]

    def due_ms(self, wall_ms: int, delay_ms: int) -> int | None:
        """In how many ms `purge` finds something to do, None where nothing waits."""
        if not self._files:
            return None
        first = min(wall_ms if since is None else since for since, _ in self._files)
        return max(0, first + delay_ms - wall_ms)

    def purge(self, wall_ms: int, delay_ms: int) -> int:
        """Remove the files that wait for `delay_ms` or longer; returns how many."""
        due: list[str] = []
        waiting: list[tuple[int | None, list[str]]] = []
        for since, paths in self._files:
            since = wall_ms if since is None else since
            if wall_ms - since < delay_ms:
                waiting.append((since, paths))
            else:
                due += paths
        self._files = waiting
        self.remove(due)
        return len(due)

    def remove(self, paths: list[str]) -> None:
        """If a segment is rewritten twice within the delay, two files have one name: the first is removed already."""
        if self._file_deleter is not None:
            self._file_deleter.later(paths)
            return
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                self._disk.remove(path)

    def let_go(self) -> None:
        """The log is closed: everything goes, also what has its names still."""
        self.remove([path for _, paths in self._files for path in paths])
        self._files.clear()
        self.remove([path for _, base in self._leaving for path in self.files_of(base)])
        self._leaving.clear()
