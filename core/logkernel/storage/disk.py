"""The disk: the one small interface between storage and the operating system, and the real one.

`simdisk` and `memory_disk` hold the other implementations. Whatever is not synced may be lost in a crash, page by
page and name by name; nothing here syncs unless its docstring says so. Faults are `OSError`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
from collections.abc import Callable
from typing import Any, Protocol

from logkernel.contracts import Buffer
from logkernel.errors import DataDirectoryLocked

PAGE_BYTES = mmap.PAGESIZE
_FALLOC_FL_KEEP_SIZE = 1


FULL = frozenset((errno.ENOSPC, errno.EDQUOT))
PASSING = FULL | {errno.EMFILE, errno.ENFILE}
"""Transient errors: no space, no file handles. The data on disk is intact, and a refused write left nothing behind. All
other errors take the directory offline."""


class File(Protocol):
    """An open file that grows at its end. It closes when the last reference to it goes."""

    size: int
    """Bytes in the file, as this handle knows it."""

    def append(self, data: Buffer) -> None:
        """Write all of `data` at the end. After an error the file may hold a part of it: truncate."""

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer`; returns how many bytes there were."""

    def truncate(self, size: int) -> None:
        """Truncate the file, and free the space reserved beyond its end."""

    def reserve(self, size: int) -> None:
        """Ask for blocks up to `size` without changing the file's length; a refusal is not an error."""

    def sync(self) -> None:
        """Make content and length durable. The name is durable only after `Disk.sync_dir`."""

    def fileno(self) -> int:
        """A descriptor for sendfile, or -1."""

    def close(self) -> None: ...


class Mapping(Protocol):
    """A file in memory. Stores reach the disk whenever the system likes, or at `sync`."""

    @property
    def buffer(self) -> Any:
        """Supports slices, `len`, and `struct`'s `pack_into` and `unpack_from`; anew after `resize`."""

    def resize(self, size: int) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False, write: bool = True) -> File: ...
    def map(self, path: str, size: int) -> Mapping:
        """Map `size` bytes for reading and writing; the file is made or extended where it is shorter, and has blocks
        for all of them: a store into a hole would end the process where the disk is full."""

    def exists(self, path: str) -> bool: ...
    def size(self, path: str) -> int: ...
    def modified_ms(self, path: str) -> int: ...
    def space(self, path: str) -> tuple[int, int]:
        """Return (total, free) bytes of the volume of a folder; -1 if not known."""

    def listdir(self, path: str) -> list[str]: ...
    def mkdir(self, path: str) -> None:
        """Make a folder, and those above it; one that exists is no error."""

    def create(self, path: str) -> None:
        """Make an empty file."""

    def truncate(self, path: str, size: int) -> None: ...
    def rename(self, old: str, new: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def remove_tree(self, path: str) -> None: ...
    def sync_dir(self, path: str) -> None:
        """Make the names in a folder durable."""

    def read(self, path: str) -> bytes: ...
    def write(self, path: str, data: bytes) -> None:
        """Replace a small file, neither atomic nor durable."""

    def sync(self, path: str) -> None:
        """Make a file's content durable."""

    def write_atomic(self, path: str, data: bytes) -> None:
        """Replace a file: after a crash it holds the old content or the new one, durable on return."""

    def is_dir(self, path: str) -> bool: ...
    def lock(self, path: str) -> Callable[[], None]:
        """Take an exclusive lock until the function that is returned is called. Raises `DataDirectoryLocked`."""

    def share(self, path: str) -> Callable[[], None]:
        """Keep others from `lock` until the function that is returned is called, and write nothing: where there is
        no lock file, nothing is kept. Raises `DataDirectoryLocked`."""


class RealFile:
    __slots__ = ("_fd", "size")

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self.size = size

    def append(self, data: Buffer) -> None:
        written = os.pwrite(self._fd, data, self.size)
        if written != len(data):
            self._append_rest(data, written)
            written = len(data)
        self.size += written

    def _append_rest(self, data: Buffer, done: int) -> None:
        """A short write: the disk is nearly full, or a signal came."""
        view = memoryview(data)
        while done < len(view):
            written = os.pwrite(self._fd, view[done:], self.size + done)
            if written == 0:
                raise OSError(errno.EIO, "the disk took no more bytes")
            done += written

    def read(self, position: int, size: int) -> bytes:
        data = os.pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        got = len(data)
        while got < size and (data := os.pread(self._fd, size - got, position + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def read_into(self, position: int, buffer: memoryview) -> int:
        got = 0
        while got < len(buffer) and (step := os.preadv(self._fd, [buffer[got:]], position + got)):
            got += step
        return got

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)
        self.size = size

    def reserve(self, size: int) -> None:
        _fallocate(self._fd, self.size, size - self.size)

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


_c_fallocate: Any = None


def _fallocate(fd: int, offset: int, size: int) -> None:
    """Reserve blocks and keep the length: readers and dump tools then see no zero tail."""
    global _c_fallocate
    if _c_fallocate is None:
        import ctypes

        try:
            call = ctypes.CDLL(None, use_errno=True).fallocate
            call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
            _c_fallocate = call
        except AttributeError:  # not Linux: files simply grow
            _c_fallocate = lambda *_: -1  # noqa: E731
    _c_fallocate(fd, _FALLOC_FL_KEEP_SIZE, offset, size)


def _allocate(fd: int, size: int) -> None:
    """Allocate blocks for the first `size` bytes; a shorter file grows."""
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENODEV):
            raise
        if os.fstat(fd).st_size < size:  # a file system that cannot promise blocks
            os.ftruncate(fd, size)


class RealMapping:
    __slots__ = ("_path", "buffer")

    def __init__(self, path: str, size: int) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            known = os.fstat(fd)
            if known.st_size < size or known.st_blocks * 512 < size:
                _allocate(fd, size)
            self.buffer = mmap.mmap(fd, size)
        finally:
            os.close(fd)
        self._path = path

    def resize(self, size: int) -> None:
        fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            _allocate(fd, size)
        finally:
            os.close(fd)
        self.buffer.resize(size)

    def sync(self) -> None:
        self.buffer.flush()

    def close(self) -> None:
        self.buffer.close()


class RealDisk:
    """The operating system's files. Holds no state; every method is one or two system calls."""

    def open(self, path: str, *, create: bool = False, write: bool = True) -> RealFile:
        flags = (os.O_RDWR if write else os.O_RDONLY) | (os.O_CREAT if create else 0) | os.O_CLOEXEC
        fd = os.open(path, flags, 0o644)
        return RealFile(fd, os.fstat(fd).st_size)

    def map(self, path: str, size: int) -> RealMapping:
        return RealMapping(path, size)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def space(self, path: str) -> tuple[int, int]:
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def listdir(self, path: str) -> list[str]:
        return os.listdir(path)

    def mkdir(self, path: str) -> None:
        try:
            os.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
        except FileNotFoundError:
            os.makedirs(path, exist_ok=True)

    def create(self, path: str) -> None:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))

    def truncate(self, path: str, size: int) -> None:
        os.truncate(path, size)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        import shutil

        shutil.rmtree(path)

    def sync_dir(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write(self, path: str, data: bytes) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
        finally:
            os.close(fd)

    def sync(self, path: str) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.fdatasync(fd)
        finally:
            os.close(fd)

    def write_atomic(self, path: str, data: bytes) -> None:
        temporary = path + ".tmp"
        self.write(temporary, data)
        self.sync(temporary)
        os.rename(temporary, path)
        self.sync_dir(os.path.dirname(path) or ".")

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def lock(self, path: str) -> Callable[[], None]:
        return _lock(os.path.realpath(path))

    def share(self, path: str) -> Callable[[], None]:
        return _lock(os.path.realpath(path), shared=True)


_locked_here: dict[str, int] = {}
"""Path → the process that holds it: fcntl locks do not keep a process from itself, and a forked child has none."""


def _lock(path: str, *, shared: bool = False) -> Callable[[], None]:
    refusal = f"{os.path.dirname(path)} is in use: another broker holds its lock file {path}; stop that broker"
    if _locked_here.get(path) == os.getpid():
        raise DataDirectoryLocked(refusal)
    if shared and not os.path.exists(path):
        return lambda: None
    fd = os.open(path, (os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT) | os.O_CLOEXEC, 0o644)
    try:
        fcntl.lockf(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise DataDirectoryLocked(refusal) from None
        raise
    owner = _locked_here[path] = os.getpid()

    def release() -> None:
        if os.getpid() == owner and _locked_here.get(path) == owner:  # a forked child must not lift its parent's
            del _locked_here[path]
            with contextlib.suppress(OSError):
                os.close(fd)

    return release
