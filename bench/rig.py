"""What a measure is given, and what it gives: how to have a broker, and samples by row name."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from server import Server

Samples = dict[str, float]


@dataclass
class Rig:
    """How to have a broker: `make(folder, settings)` gives one that is not started."""

    make: Callable[[Path, dict[str, str]], Server]
    folder: Path
    shared: Server
    """One that runs all along, for the measures of a steady state."""
    megabytes: int
    restart_gb: float

    @contextlib.contextmanager
    def fresh(self) -> Iterator[Server]:
        """A broker of its own folder, prepared but not started; ended afterwards."""
        server = self.make(self.folder / uuid.uuid4().hex[:8], {})
        server.prepare()
        try:
            yield server
        finally:
            server.stop()
