"""Removing what is no part of any log any more: the files of dropped segments, the folders of deleted logs.

Their names say so (`.deleted`, `-delete`), or the log's start does, and nobody waits for them to go. Ten thousand
segments are forty thousand files, which take seconds: so a worker's thread removes them, in portions with a pause,
and what a stop or a crash leaves is found when its directory is opened, and goes the same way.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable

from logkernel.storage.disk import Disk
from logkernel.storage.names import DELETE_DIR

log = logging.getLogger("logkernel.storage")

PORTION = 64
PAUSE_S = 0.002
"""Between portions, so that other changes to the file system need not queue behind all of them."""


class FileDeleter:
    """`later` is for the log's thread, `run` for any one other."""

    __slots__ = ("_disk", "_refused", "_stopped", "_waiting")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._waiting: deque[str] = deque()
        self._refused: set[str] = set()
        """Folders in which a removal failed; the rest of their files is left to the next start."""
        self._stopped = False

    @property
    def waiting(self) -> int:
        """Files and folders to remove."""
        return len(self._waiting)

    def later(self, paths: Iterable[str]) -> None:
        """Files, which need not be there, and folders whose names end in `-delete`."""
        self._waiting.extend(paths)

    def run(self, pause: Callable[[float], object]) -> None:
        """Remove everything, until `stop`; `pause` lets some seconds pass."""
        while self._waiting and not self._stopped:
            self.remove(PORTION)
            pause(PAUSE_S)

    def stop(self) -> None:
        """From any thread; `run` returns after the portion at hand."""
        self._stopped = True

    def remove(self, most: int) -> None:
        """Remove `most` files at most. An error of the disk is logged, once for a folder."""
        for _ in range(most):
            if not self._waiting:
                return
            path = self._waiting.popleft()
            folder = path.rpartition("/")[0]
            if folder in self._refused or path in self._refused:
                continue
            try:
                self._remove(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._refused.add(folder)
                log.warning("dropped files stay, the next start removes them: folder=%s error=%s", folder, error)

    def _remove(self, path: str) -> None:
        if not path.endswith(DELETE_DIR):
            self._disk.remove(path)
        elif inside := self._disk.listdir(path):
            self._waiting.extendleft([path, *(f"{path}/{name}" for name in inside)])  # the folder behind its files
        else:
            self._disk.remove_tree(path)
