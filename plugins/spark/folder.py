"""Where rows go: a cluster, or a folder in which no broker lives, which is then served by the task itself."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import logkernel
from logkernel.errors import ConfigError, DataDirectoryLocked

CONTROL: Final = "control.sock"
PATIENCE_S: Final = 600.0
"""How long a task waits for others of its job that write to the same folder: one at a time can."""


@contextlib.contextmanager
def served(bootstrap: str | None, path: str | None) -> Iterator[str]:
    """host:port to write to. Raises `ConfigError` for a folder whose broker must be asked."""
    if bootstrap is not None:
        yield bootstrap
        return
    assert path is not None
    with _opened(path) as log:
        yield log.listen()


def _opened(path: str) -> logkernel.EmbeddedLog:
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return logkernel.open(path)
        except DataDirectoryLocked as error:
            if _broker_lives(Path(path)) or time.monotonic() > deadline_s:
                raise ConfigError(
                    f"a broker uses {path}: only it can write there; name it by the option 'kafka.bootstrap.servers'"
                ) from error
        time.sleep(0.05)


def _broker_lives(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as control:
        try:
            control.connect(str(path / CONTROL))
        except OSError:
            return False
    return True
