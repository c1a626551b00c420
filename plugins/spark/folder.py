"""Where rows go: a cluster, or a folder in which no broker lives, which is then served by the task itself.

One process at a time can have a folder. Tasks on one machine take turns, by a lock in its temporary directory; who
finds the folder in use in his turn has met a broker.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import logkernel
from logkernel.errors import ConfigError, DataDirectoryLocked

PATIENCE_S: Final = 600.0
"""How long a task waits for its turn."""


@contextlib.contextmanager
def served(bootstrap: str | None, path: str | None) -> Iterator[str]:
    """host:port to write to. Raises `ConfigError` for a folder whose broker must be asked."""
    if bootstrap is not None:
        yield bootstrap
        return
    assert path is not None
    with _turn(path), _opened(path) as log:
        yield log.listen()


def _opened(path: str) -> logkernel.EmbeddedLog:
    try:
        return logkernel.open(path)
    except DataDirectoryLocked as error:
        raise ConfigError(
            f"a broker uses {path}: only it can write there; name it by the option 'kafka.bootstrap.servers'"
        ) from error


@contextlib.contextmanager
def _turn(path: str) -> Iterator[None]:
    name = hashlib.sha256(str(Path(path).resolve()).encode()).hexdigest()[:16]
    deadline_s = time.monotonic() + PATIENCE_S
    with (Path(tempfile.gettempdir()) / f"logkernel-spark-{name}.lock").open("a") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline_s:
                    raise ConfigError(f"other tasks wrote to {path} for {PATIENCE_S:g} s, one at a time") from None
                time.sleep(0.02)
        yield
