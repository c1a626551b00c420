"""A Python for Spark's workers that takes pyspark from its own packages.

Spark puts a zip of pyspark before them. What is imported from a zip is compiled anew by every process: 0.8 s for each
worker that starts, and a stream starts two before its first record.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Final

WRAPPER: Final = """\
#!/bin/sh
kept=
IFS=:
for part in $PYTHONPATH; do
  case $part in
    */python/lib/pyspark.zip | */python/lib/py4j-*-src.zip) ;;
    *) kept=$kept${{kept:+:}}$part ;;
  esac
done
unset IFS
PYTHONPATH=$kept exec {python} "$@"
"""


def made(folder: str | Path, python: str | Path = sys.executable) -> str:
    """Write the wrapper of `python` into `folder`; returns its path, for PYSPARK_PYTHON. `python` must have the pyspark
    of the session installed."""
    program = Path(folder).absolute() / "python"
    program.parent.mkdir(parents=True, exist_ok=True)
    scratch = program.with_name(f".python.{os.getpid()}")
    scratch.write_text(WRAPPER.format(python=shlex.quote(str(python))))
    scratch.chmod(0o755)
    scratch.replace(program)
    return str(program)
