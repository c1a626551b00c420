"""Makes a folder for PYTHONPATH in which every built-in plugin lives in an outside distribution, none in our own.

    python tests/outside_copies.py FOLDER && PYTHONPATH=FOLDER python -m pytest tests/scenarios tests/interop

`acme-copies` holds a copy of each plugin under the built-in's name; a distribution `logkernel` without entry points
stands before the installed one and hides its own.
"""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

from outside_distribution import describe

ROOT = Path(__file__).resolve().parents[1]


def built_ins() -> dict[str, str]:
    """Entry point → module, as pyproject.toml declares them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: dict[str, str] = project["entry-points"]["logkernel"]
    return found


def make(site: Path, *, hide: bool, prefix: str = "") -> Path:
    """The folder; `hide` hides the built-ins, `prefix` goes before the names of the copies' entry points."""
    shutil.copytree(ROOT / "plugins", site / "acme_copies", ignore=shutil.ignore_patterns("__pycache__"))
    points = {
        f"{prefix}{name}": module.replace("logkernel.plugins", "acme_copies") for name, module in built_ins().items()
    }
    describe(site, "acme-copies", {"logkernel": points})
    if hide:
        describe(site, "logkernel", {})
    return site


if __name__ == "__main__":
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    make(Path(sys.argv[1]), hide=True)
