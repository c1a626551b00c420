"""The command line. `main` is the entry point.

serve          run a broker: its start-up is measured, so it is parsed by argparse and imports nothing else
everything     `app`: a table of commands, each in a module that is imported when it is called
output         tables, JSON lines, colours, progress bars, exit codes: the same for every command
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Exit codes: 0 well, 1 something was found or failed, 2 refused (bad arguments or settings, locked directory)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["serve"]:
        gc.disable()  # until it is ready: nothing that a start makes is garbage
        from logkernel.cli.serve import serve

        return serve(arguments[1:])
    from logkernel.cli.app import run

    return run(arguments)
