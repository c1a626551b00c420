"""An embedded broker with two log directories, asked by versionless requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logkernel.broker.build import build
from logkernel.embed import EmbeddedLog

Start = Callable[..., EmbeddedLog]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Opens (again) the same two directories, one and two."""
    running: list[EmbeddedLog] = []

    def begin(*settings: str) -> EmbeddedLog:
        for log in running:
            log.close()
        log = EmbeddedLog(build(None, [f"log.dirs={tmp_path / 'one'},{tmp_path / 'two'}", *settings]))
        running.append(log)
        return log

    yield begin
    for log in running:
        log.close()
