"""Python files that are no package's, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).resolve().parent.parent / "docs"


def load_module(path: Path) -> ModuleType:
    """A Python file as a module, under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"logkernel_test_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def page_generator(name: str) -> ModuleType:
    """`docs/generate_NAME.py`, which writes a page."""
    return load_module(DOCS / f"generate_{name}.py")
