"""A Python worker of Spark between two tasks: Spark has it collect garbage after each.

What pyspark, pyarrow and this package are made of is looked through every time, for 30 ms, though it never goes: three
times what a small task takes. So it is put aside where the collector does not look.
"""

from __future__ import annotations

import gc
import sys

_aside = 0
"""How many modules there were when that was done."""


def settle() -> None:
    """At the end of a task: put aside what is there, once for all that was imported."""
    global _aside
    if len(sys.modules) == _aside:
        return
    _aside = len(sys.modules)
    gc.collect()
    gc.freeze()
