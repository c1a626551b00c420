"""The folder of a tested broker, saved beside it and restored.

Where the file system can, files are cloned (btrfs, XFS), which costs nothing until one of the two is changed. Elsewhere
they are copied. Hard links would be cheaper, but a broker changes files in place.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import weakref
from pathlib import Path
from typing import Final

FICLONE: Final = 0x40049409
"""ioctl: have the content of another file."""


class FolderSnapshot:
    """What `save_folder` saved. Its files go when nobody has it any more."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._end = weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)


def save_folder(folder: str | Path) -> FolderSnapshot:
    """A copy beside the folder, which no broker may use meanwhile. Raises `OSError`."""
    whole = Path(folder).absolute()
    saved = FolderSnapshot(tempfile.mkdtemp(prefix=f".{whole.name}-saved-", dir=whole.parent))
    _copy(str(whole), saved.path)
    return saved


def restore_folder(folder: str | Path, snapshot: FolderSnapshot) -> None:
    """Replace what is in the folder, which no broker may use meanwhile. Raises `OSError`."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.remove(entry.path)
    _copy(snapshot.path, str(folder))


def _copy(source: str, target: str) -> None:
    """What lies in the folder, with its times; sockets are left out."""
    for entry in os.scandir(source):
        there = os.path.join(target, entry.name)
        if entry.is_dir():
            os.mkdir(there)
            _copy(entry.path, there)
        elif stat.S_ISREG(entry.stat().st_mode):
            _clone(entry.path, there)
            shutil.copystat(entry.path, there)


def _clone(source: str, target: str) -> None:
    with open(source, "rb") as one, open(target, "wb") as other:
        try:
            fcntl.ioctl(other.fileno(), FICLONE, one.fileno())
            return
        except OSError:  # the file system cannot
            pass
    shutil.copyfile(source, target)
