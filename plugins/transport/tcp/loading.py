"""Modules that are loaded when they are first needed, by whatever thread needs them.

No fork comes in between: its child would have a module that is half there, and whose loader's thread is not.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module
from types import ModuleType
from typing import Final

LOADING: Final = threading.RLock()
"""Held while something is loaded, and by a fork."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LOADING.acquire, after_in_parent=LOADING.release, after_in_child=LOADING.release)


def load_module(name: str) -> ModuleType:
    with LOADING:
        return import_module(name)
