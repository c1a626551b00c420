"""A disk in memory that forgets what was not synced, as a real one may.

What `crash()` may lose, each by the seed's choice:

    file content    every 4 KiB page since the last sync: old, new, or torn between 512-byte sectors
    file length     any length between the synced one and the present one; pages never written read as zeros
    mapped stores   as file content, at any moment
    names           every create, rename, remove and mkdir since the folder's last `sync_dir`, each on its own

`fail_at` makes the n-th changing operation fail, with an errno or a power cut. `memory_disk.MemoryDisk` is the same
disk without the bookkeeping; it can be saved and restored.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attrs import define, field

from logkernel.contracts import Buffer
from logkernel.errors import DataDirectoryLocked

PAGE = 4096
SECTOR = 512


class PowerCut(BaseException):
    """The machine lost power. No handler for errors of the disk may catch this."""


@define(eq=False)
class SavedContent:
    """Content that snapshots rely on, while its file goes on appending to it."""

    data: bytearray
    size: int
    """Of the longest of them: what is below is not changed any more."""


@define(eq=False)
class Inode:
    data: bytearray = field(factory=bytearray)
    synced: bytes = b""
    modified_ms: int = 0
    is_mapped: bool = False
    saved: SavedContent | None = None

    def part_from_snapshots(self, position: int) -> None:
        """What is behind `position` is about to be changed."""
        if self.saved is not None and position < self.saved.size:
            self.data = bytearray(self.data)
            self.saved = None


@define(eq=False)
class Folder:
    names: dict[str, Inode | Folder] = field(factory=dict)
    durable: dict[str, Inode | Folder] = field(factory=dict)
    pending: list[tuple[str | None, str | None, Inode | Folder]] = field(factory=list)
    """(name removed, name added, what it names) since the last sync."""


class SimulatedFile:
    __slots__ = ("_disk", "_inode", "_path", "size")

    def __init__(self, disk: SimulatedDisk, path: str, inode: Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self.size = len(inode.data)

    def append(self, data: Buffer) -> None:
        inode = self._inode
        inode.part_from_snapshots(self.size)
        try:
            self._disk.step("append", self._path)
        except BaseException:
            inode.data[self.size :] = data[: len(data) // 2]  # a write may fail after a part of it
            raise
        inode.data[self.size :] = data
        self.size += len(data)
        inode.modified_ms = self._disk.wall_ms

    def read(self, position: int, size: int) -> bytes:
        self._disk.check_read(self._path)
        return bytes(memoryview(self._inode.data)[position : position + size])

    def read_into(self, position: int, buffer: memoryview) -> int:
        data = self.read(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def truncate(self, size: int) -> None:
        self._disk.step("truncate", self._path)
        _set_length(self._inode, size)
        self.size = size

    def reserve(self, size: int) -> None:
        """Lengths stay as they are, so there is nothing to model."""

    def sync(self) -> None:
        self._disk.step("sync", self._path)
        self._disk.persist(self._inode)

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        """Memory needs no closing."""


class SimulatedMapping:
    __slots__ = ("_disk", "_inode", "_path")

    def __init__(self, disk: SimulatedDisk, path: str, inode: Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode

    @property
    def buffer(self) -> bytearray:
        return self._inode.data

    def resize(self, size: int) -> None:
        self._disk.step("truncate", self._path)
        _set_length(self._inode, size)

    def sync(self) -> None:
        self._disk.step("sync", self._path)
        self._disk.persist(self._inode)

    def close(self) -> None:
        """Memory needs no closing."""


def _set_length(inode: Inode, size: int) -> None:
    inode.part_from_snapshots(size)
    data = inode.data
    if size < len(data):
        del data[size:]
    else:
        data.extend(bytes(size - len(data)))


class SimulatedDisk:
    """See the module. Paths are absolute; `wall_ms` is what `modified_ms` takes."""

    durable = True

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.wall_ms = 0
        self.operations = 0
        """Changing operations so far."""
        self.trace: list[str] = []
        """The last operations, for a failing test to print."""
        self._faults: dict[int, int | None] = {}
        self._broken: int | None = None
        self.fault: Callable[[str, str], int | None] | None = None
        """Asked of every operation (kind, path) and of every "open"; fails it with the errno that it gives."""
        self.unreadable: set[str] = set()
        """Paths whose content cannot be read: EIO."""
        self._off = False
        self._root = Folder()
        self._locks: set[str] = set()

    # ------------------------------------------------------------ faults

    def fail_at(self, operation: int, error: int | None = errno.EIO, *, forever: bool = False) -> None:
        """Fail operation number `operation` (from 1) with an errno, or cut the power where it is None.
        `forever`: every later operation and read fails as well, as on a dead device."""
        self._faults[operation] = error
        if forever and error is not None:
            self._faults[-operation] = error

    @property
    def is_off(self) -> bool:
        """Whether the power is cut."""
        return self._off

    def heal(self) -> None:
        """Power is back, and no operation fails any more."""
        self._off, self._broken = False, None
        self._faults.clear()

    @contextmanager
    def unharmed(self) -> Iterator[None]:
        """For a look at the files from outside: meanwhile nothing fails."""
        kept = self.fault, self._broken, self.unreadable
        self.fault, self._broken, self.unreadable = None, None, set()
        try:
            yield
        finally:
            self.fault, self._broken, self.unreadable = kept

    def forget_locks(self) -> None:
        """The process that held them was killed."""
        self._locks.clear()

    def step(self, kind: str, path: str) -> None:
        if not self.durable:
            return
        if self._off:
            raise PowerCut(path)
        self.operations += 1
        self.trace.append(f"{self.operations} {kind} {path}")
        del self.trace[:-200]
        if self._broken is not None:
            raise OSError(self._broken, os.strerror(self._broken), path)
        self.ask(kind, path)
        if self.operations in self._faults:
            error = self._faults[self.operations]
            if error is None:
                self._off = True
                raise PowerCut(f"operation {self.operations}: {kind} {path}")
            self._broken = self._faults.get(-self.operations)
            raise OSError(error, os.strerror(error), path)

    def ask(self, kind: str, path: str) -> None:
        error = None if self.fault is None else self.fault(kind, path)
        if error is not None:
            raise OSError(error, os.strerror(error), path)

    def check_read(self, path: str) -> None:
        error = errno.EIO if path in self.unreadable else self._broken
        if error is not None:
            raise OSError(error, os.strerror(error), path)

    def crash(self) -> SimulatedDisk:
        """The disk as the next boot finds it; this one is dead."""
        self._off = True
        survivor = SimulatedDisk(self.random.randrange(2**63))
        survivor.wall_ms = self.wall_ms
        survivor._root = self._after_crash(self._root, {})
        return survivor

    def _after_crash(self, directory: Folder, seen: dict[int, Inode]) -> Folder:
        names = dict(directory.durable)
        odds = self.random.choice((0.0, 0.5, 0.9, 1.0))
        for old, new, node in directory.pending:
            if self.random.random() < odds:
                if old is not None:
                    names.pop(old, None)
                if new is not None:
                    names[new] = node
        found = Folder()
        for name, node in names.items():
            if isinstance(node, Folder):
                found.names[name] = self._after_crash(node, seen)
            else:
                if id(node) not in seen:
                    content = self._content_after_crash(node)
                    seen[id(node)] = Inode(bytearray(content), content, node.modified_ms)
                found.names[name] = seen[id(node)]
        found.durable = dict(found.names)
        return found

    def _content_after_crash(self, inode: Inode) -> bytes:
        old, new = inode.synced, bytes(inode.data)
        if old == new:
            return new
        low, high = sorted((len(old), len(new)))
        size = self.random.choice((low, high, self.random.randint(low, high)))
        odds = self.random.choice((0.0, 0.5, 1.0))
        survived = bytearray(size)
        for page in range(0, size, PAGE):
            end = min(page + PAGE, size)
            before = old[page:end].ljust(end - page, b"\0")
            after = new[page:end].ljust(end - page, b"\0")
            if self.random.random() >= odds:
                after, before = before, after
            if self.random.random() < 0.1:
                cut = self.random.randrange(0, PAGE, SECTOR)
                after = after[:cut] + before[cut:]
            survived[page:end] = after
        return bytes(survived)

    def persist(self, inode: Inode) -> None:
        inode.synced = bytes(inode.data)

    # ------------------------------------------------------------ names

    def _walk(self, path: str) -> tuple[Folder, str]:
        *parents, name = [part for part in path.split("/") if part]
        here = self._root
        for part in parents:
            node = here.names.get(part)
            if not isinstance(node, Folder):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            here = node
        return here, name

    def _node(self, path: str) -> Inode | Folder:
        parent, name = self._walk(path)
        node = parent.names.get(name)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def _inode(self, path: str) -> Inode:
        node = self._node(path)
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return node

    def content(self, path: str) -> bytearray:
        """The bytes of a file, which rot where somebody changes them here. Raises `FileNotFoundError`."""
        return self._inode(path).data

    def _change(self, parent: Folder, old: str | None, new: str | None, node: Inode | Folder) -> None:
        if old is not None:
            del parent.names[old]
        if new is not None:
            parent.names[new] = node
        if self.durable:
            parent.pending.append((old, new, node))

    def _make(self, path: str) -> Inode:
        parent, name = self._walk(path)
        node = parent.names.get(name)
        if node is None:
            self.step("create", path)
            node = Inode(modified_ms=self.wall_ms)
            self._change(parent, None, name, node)
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return node

    # ------------------------------------------------------------ the interface

    def open(self, path: str, *, create: bool = False, write: bool = True) -> SimulatedFile:
        self.ask("open", path)
        return SimulatedFile(self, path, self._make(path) if create else self._inode(path))

    def map(self, path: str, size: int) -> SimulatedMapping:
        self.ask("open", path)
        inode = self._make(path)
        inode.part_from_snapshots(0)
        inode.is_mapped = True
        if len(inode.data) < size:
            self.step("truncate", path)
            _set_length(inode, size)
        return SimulatedMapping(self, path, inode)

    def exists(self, path: str) -> bool:
        try:
            self._node(path)
        except FileNotFoundError:
            return False
        return True

    def size(self, path: str) -> int:
        return len(self._inode(path).data)

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def space(self, path: str) -> tuple[int, int]:
        self._dir(path)
        return -1, -1

    def listdir(self, path: str) -> list[str]:
        self.check_read(path)
        return list(self._dir(path).names)

    def _dir(self, path: str) -> Folder:
        node = self._node(path) if path.strip("/") else self._root
        if not isinstance(node, Folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return node

    def mkdir(self, path: str) -> None:
        here = self._root
        for part in [part for part in path.split("/") if part]:
            node = here.names.get(part)
            if node is None:
                self.step("mkdir", path)
                node = Folder()
                self._change(here, None, part, node)
            if not isinstance(node, Folder):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            here = node

    def create(self, path: str) -> None:
        self._make(path)

    def truncate(self, path: str, size: int) -> None:
        inode = self._inode(path)
        self.step("truncate", path)
        _set_length(inode, size)

    def rename(self, old: str, new: str) -> None:
        parent, name = self._walk(old)
        target, new_name = self._walk(new)
        if parent is not target:
            raise OSError(errno.EXDEV, "storage renames within a folder only", old)
        node = self._node(old)
        self.step("rename", f"{old} {new_name}")
        self._change(parent, name, new_name, node)

    def remove(self, path: str) -> None:
        inode = self._inode(path)
        self.step("remove", path)
        parent, name = self._walk(path)
        self._change(parent, name, None, inode)

    def remove_tree(self, path: str) -> None:
        for name, node in list(self._dir(path).names.items()):
            if isinstance(node, Folder):
                self.remove_tree(f"{path}/{name}")
            else:
                self.remove(f"{path}/{name}")
        self.step("rmdir", path)
        parent, name = self._walk(path)
        self._change(parent, name, None, parent.names[name])

    def sync_dir(self, path: str) -> None:
        directory = self._dir(path)
        self.ask("open", path)
        self.step("sync_dir", path)
        directory.durable = dict(directory.names)
        directory.pending.clear()

    def read(self, path: str) -> bytes:
        self.check_read(path)
        return bytes(self._inode(path).data)

    def write(self, path: str, data: bytes) -> None:
        self.ask("open", path)
        inode = self._make(path)
        self.step("write", path)
        inode.part_from_snapshots(0)
        inode.data[:] = data
        inode.modified_ms = self.wall_ms

    def sync(self, path: str) -> None:
        inode = self._inode(path)
        self.step("sync", path)
        self.persist(inode)

    def write_atomic(self, path: str, data: bytes) -> None:
        temporary = path + ".tmp"
        self.write(temporary, data)
        self.sync(temporary)
        self.rename(temporary, path)
        self.sync_dir(path.rpartition("/")[0])

    def is_dir(self, path: str) -> bool:
        return not path.strip("/") or (self.exists(path) and isinstance(self._node(path), Folder))

    def lock(self, path: str) -> Callable[[], None]:
        if path in self._locks:
            raise DataDirectoryLocked(
                f"{path.rpartition('/')[0]} is in use: another broker holds its lock file {path}; stop that broker"
            )
        self._make(path)
        self._locks.add(path)
        return lambda: self._locks.discard(path)

    def share(self, path: str) -> Callable[[], None]:
        return self.lock(path) if self.exists(path) else lambda: None
