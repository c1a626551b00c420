"""A Python worker of Spark between two tasks: Spark has it collect garbage after each.

What pyspark, pyarrow and this package are made of is looked through every time, for 30 ms, though it never goes: three
times what a small task takes. So it is put aside where the collector does not look. A worker may have run the user's
functions before; what these hold at that moment is put aside as well, so the moment is not chosen by what they import.
"""

from __future__ import annotations

import gc
import sys
from typing import Final

OURS: Final = ("logkernel", "pyspark", "pyarrow")
_aside = 0
"""How many modules of ours there were when that was done."""


def freeze_modules() -> None:
    """At the end of a task: put aside what is there, once for all that was imported of ours."""
    global _aside
    count = sum(name.startswith(OURS) for name in list(sys.modules))
    if count == _aside:
        return
    _aside = count
    gc.collect()
    gc.freeze()
