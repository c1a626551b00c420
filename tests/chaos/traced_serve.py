"""`logkernel` with traced machines: `traced_serve.py FOLDER serve …` writes `FOLDER/PID.trace` (see `trace`)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> int:
    from chaos import trace

    folder = Path(sys.argv.pop(1))
    trace.record(folder / f"{os.getpid()}.trace")
    from logkernel.cli import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
