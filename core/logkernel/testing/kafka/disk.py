"""The disk of a tested broker in memory: it outlives the broker, and may be full."""

from __future__ import annotations

import errno
import os
from typing import Final

from logkernel.storage.memory_disk import MemoryDisk

NEED_ROOM: Final = ("append", "create", "mkdir", "write")


class TestDisk(MemoryDisk):
    """See the module."""

    __test__ = False
    """Not a test, whatever pytest makes of its name."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = False

    def step(self, kind: str, path: str) -> None:
        if self.is_full and kind in NEED_ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
