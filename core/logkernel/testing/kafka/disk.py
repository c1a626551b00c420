"""The disks of a tested broker, which may be full: one in memory, which outlives the broker, and a folder's."""

from __future__ import annotations

import errno
import os
from typing import Final

from logkernel.contracts import Buffer
from logkernel.storage.disk import RealDisk, RealFile
from logkernel.storage.memory_disk import MemoryDisk

NEED_ROOM: Final = ("append", "create", "mkdir", "write")


class TestDisk(MemoryDisk):
    """In memory."""

    __test__ = False
    """Not a test, whatever pytest makes of its name."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = False

    def step(self, kind: str, path: str) -> None:
        if self.is_full and kind in NEED_ROOM:
            raise no_room(path)


class FolderDisk(RealDisk):
    """The operating system's files. They outlive the process, but not a power cut: nothing waits for the device."""

    def __init__(self) -> None:
        self.is_full = False

    def open(self, path: str, *, create: bool = False, write: bool = True) -> RealFile:
        if create and not os.path.exists(path):
            self._take_room(path)
        plain = super().open(path, create=create, write=write)
        descriptor = os.dup(plain.fileno())
        return _File(self, path, descriptor, plain.size)

    def create(self, path: str) -> None:
        self._take_room(path)
        super().create(path)

    def mkdir(self, path: str) -> None:
        self._take_room(path)
        super().mkdir(path)

    def write(self, path: str, data: bytes) -> None:
        self._take_room(path)
        super().write(path, data)

    def sync(self, path: str) -> None:
        """Nothing waits."""

    def sync_dir(self, path: str) -> None:
        """Nothing waits."""

    def _take_room(self, path: str) -> None:
        if self.is_full:
            raise no_room(path)


class _File(RealFile):
    __slots__ = ("_disk", "_path")

    def __init__(self, disk: FolderDisk, path: str, descriptor: int, size: int) -> None:
        super().__init__(descriptor, size)
        self._disk = disk
        self._path = path

    def append(self, data: Buffer) -> None:
        if self._disk.is_full:
            raise no_room(self._path)
        super().append(data)

    def sync(self) -> None:
        """Nothing waits."""


def no_room(path: str) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
