"""Whether the process that started this one is still there.

It ends when its standard input does, if that is a pipe or a socket: the other end closes however its owner dies.
Besides it asks for its parent's id, which changes when the parent dies, on every POSIX system. Linux could send a
signal then (PR_SET_PDEATHSIG), but sends it when the *thread* ends that started the process, as threads of pools do.
"""

from __future__ import annotations

import os
import stat
import threading
from typing import Final

LOOK_S: Final = 0.25
"""How often the parent's id is asked for."""
READ_BYTES: Final = 4096


class Lifeline:
    """Sets `ended` when the process should end."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._parent: int | None = None

    def hold(self) -> None:
        """Live no longer than the process that started this one."""
        self._parent = os.getppid()
        if _is_pipe(0):
            threading.Thread(target=self._read, name="logkernel-lifeline", daemon=True).start()

    def _read(self) -> None:
        try:
            while os.read(0, READ_BYTES):
                continue
        except OSError:
            pass
        self.end()

    def end(self) -> bool:
        """From any thread, or a signal's handler. Returns whether this is the first call."""
        first = not self._ended.is_set()
        self._ended.set()
        return first

    def wait(self) -> None:
        """Until the process should end."""
        while not self._ended.wait(LOOK_S):
            if self._parent is not None and os.getppid() != self._parent:
                return


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:  # it was closed by who started us
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
