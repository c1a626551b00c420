"""logkernel as installed in this interpreter, started by its command line."""

from __future__ import annotations

import sys
from pathlib import Path

from server import Server


def compiled() -> str:
    """What of ours is machine code."""
    from logkernel.record import columns, loops

    parts = {"record codec": loops.COMPILED, "columns": columns.COMPILED}
    return ", ".join(f"{name} {'compiled' if is_so else 'plain Python'}" for name, is_so in parts.items())


class LogkernelServer(Server):
    name = "logkernel"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def command(self) -> list[str]:
        options = [part for name, value in self.settings.items() for part in ("--set", f"{name}={value}")]
        serve = [sys.executable, "-m", "logkernel", "serve", "--data", str(self.data), "--listen", self.bootstrap]
        return [*serve, *options]
