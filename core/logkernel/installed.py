"""Entry points of installed distributions, read from their `entry_points.txt`.

`importlib.metadata` gives the same, but importing it brings in an e-mail parser and a ZIP reader: a tenth of the time
in which a broker has to answer. Distributions inside ZIP files are not looked at.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from logkernel.attrs_lite import frozen

SUFFIXES = (".dist-info", ".egg-info")


@frozen
class EntryPoint:
    """`name = target` of a distribution; `target` is a module, or "module:attribute"."""

    name: str
    target: str
    distribution: str

    def load(self) -> Any:
        module, _, path = self.target.partition(":")
        found: Any = import_module(module)
        for part in filter(None, path.split(".")):
            found = getattr(found, part)
        return found


def entry_points(group: str, paths: Sequence[str] | None = None) -> Iterator[EntryPoint]:
    """Those of `group` on `paths` (None: `sys.path`); of two distributions with one name the first found counts, as
    beside an editable install, whose folder of sources has one, too."""
    seen: set[str] = set()
    section = f"[{group}]".encode()
    for folder in sys.path if paths is None else paths:
        for name in _listed(folder or "."):
            stem, suffix = os.path.splitext(name)
            written = stem.partition("-")[0]
            if suffix not in SUFFIXES or (key := _normalized(written)) in seen:
                continue
            seen.add(key)
            info = os.path.join(folder, name)
            text = _read(f"{info}/entry_points.txt")
            if section in text:
                yield from _parse(text.decode(), group, _distribution(info) or written)


def _normalized(name: str) -> str:
    """A distribution's name in the one spelling of all that mean it (PEP 503, with `_`)."""
    return "_".join(filter(None, name.lower().replace(".", "_").replace("-", "_").split("_")))


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _parse(text: str, group: str, distribution: str) -> Iterator[EntryPoint]:
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == group and line and line[0] not in "#;":
            name, _, target = line.partition("=")
            yield EntryPoint(name.strip(), target.partition("[")[0].strip(), distribution)


def _distribution(info: str) -> str | None:
    for file in ("METADATA", "PKG-INFO"):
        for line in _read(os.path.join(info, file)).decode().splitlines():
            if line.startswith("Name:"):
                return line.partition(":")[2].strip()
            if not line:
                break
    return None
