"""A disk in memory that nothing is kept of, and its snapshots.

A snapshot shares content that is only appended to: it notes the size, and whoever changes what lies below it copies the
content first (`simdisk.Inode.part_from_snapshots`).
"""

from __future__ import annotations

from attrs import define

from logkernel.storage.simdisk import Folder, Inode, SavedContent, SimulatedDisk


class MemoryDisk(SimulatedDisk):
    """Files in memory, for a kernel without a folder. Nothing is kept for a crash."""

    durable = False

    def persist(self, inode: Inode) -> None:
        """Nothing outlives this process."""

    def sync_dir(self, path: str) -> None:
        """Nothing outlives this process."""

    def snapshot(self) -> DiskSnapshot:
        """All files as they are. It costs little: content that is appended to is shared, until it is changed."""
        return DiskSnapshot(_saved(self._root))

    def restore(self, snapshot: DiskSnapshot) -> None:
        """Have the files of a snapshot, any number of times. Files that were opened before must not be used any
        more."""
        self._root = _restored(snapshot.root)
        self._locks.clear()


@define(eq=False)
class _SavedFile:
    saved: SavedContent
    size: int
    modified_ms: int


_SavedDir = dict[str, "_SavedFile | _SavedDir"]


@define(eq=False)
class DiskSnapshot:
    """What `MemoryDisk.snapshot` saw."""

    root: _SavedDir


def _saved(directory: Folder) -> _SavedDir:
    found: _SavedDir = {}
    for name, node in list(directory.names.items()):  # a worker's thread may change it meanwhile
        if isinstance(node, Folder):
            found[name] = _saved(node)
            continue
        size = len(node.data)
        if node.is_mapped:  # whoever has it mapped writes where nobody sees it
            saved = SavedContent(bytearray(node.data), size)
        else:
            saved = node.saved = node.saved or SavedContent(node.data, size)
            saved.size = max(saved.size, size)
        found[name] = _SavedFile(saved, size, node.modified_ms)
    return found


def _restored(directory: _SavedDir) -> Folder:
    names: dict[str, Inode | Folder] = {}
    for name, node in directory.items():
        if isinstance(node, dict):
            names[name] = _restored(node)
            continue
        saved = node.saved
        if node.size == saved.size:
            del saved.data[node.size :]  # what its file appended since
            names[name] = Inode(saved.data, modified_ms=node.modified_ms, saved=saved)
        else:  # a later snapshot relies on more of it
            names[name] = Inode(bytearray(memoryview(saved.data)[: node.size]), modified_ms=node.modified_ms)
    return Folder(names)
