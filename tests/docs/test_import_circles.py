"""No module imports itself in a circle: neither at its top, nor for types alone, nor inside a function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

import logkernel
import logkernel.plugins

ROOMS = {"logkernel": Path(logkernel.__path__[0]), "logkernel.plugins": Path(logkernel.plugins.__path__[0])}
"""Package → its folder. `plugins` is a link in the first one, which a walk does not follow."""

IMPORT = re.compile(r"^(?:from \S+ )?import [^(\n]+$", re.MULTILINE)

Graph = Mapping[str, set[str]]


def sources() -> Iterator[tuple[str, bool, str]]:
    """(module, whether it is a package, source) of every module; of a compiled one, its imports alone."""
    for package, folder in ROOMS.items():
        for path in folder.rglob("*.py*"):
            if path.suffix not in (".py", ".pyi"):
                continue
            source = path.read_text() if path.suffix == ".py" else imports_of_compiled(path.with_suffix(".pyx"))
            *parts, last = path.relative_to(folder).with_suffix("").parts
            inner = parts if last == "__init__" else [*parts, last]
            yield ".".join([package, *inner]), last == "__init__", source


def imports_of_compiled(path: Path) -> str:
    """The imports of a Cython module; nothing for one that is written in C."""
    return "\n".join(IMPORT.findall(path.read_text())) if path.exists() else ""


def imported(source: str, package: str, modules: frozenset[str]) -> Iterator[str]:
    """Those of `modules` that a source names in imports, wherever they stand; `package` is what it lies in."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in modules)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            for each in node.names:
                inner = f"{base}.{each.name}"
                if inner in modules or base in modules:
                    yield inner if inner in modules else base


@cache
def graph() -> Graph:
    """Module → modules that it imports."""
    found = {module: (is_package, source) for module, is_package, source in sources()}
    modules = frozenset(found)
    return {
        module: set(imported(source, module if is_package else module.rpartition(".")[0], modules)) - {module}
        for module, (is_package, source) in found.items()
    }


def circle(graph: Graph) -> list[str]:
    """The modules of a circle, each imported by the next one; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_import_leads_back() -> None:
    assert circle(graph()) == [], "take what both need out of one of them, or name it as a Protocol"


def test_every_room_is_read() -> None:
    assert {
        "logkernel.broker.broker",
        "logkernel.plugins.services.groups.coordinator",
        "logkernel.cli",
    } <= graph().keys()
    assert "logkernel.broker.turn" in graph()["logkernel.broker.broker"]


@pytest.mark.parametrize(
    "source",
    ["import a.b", "from a import b", "from a.b import name", "from . import b", "from .b import name",
     "if TYPE_CHECKING:\n    from a.b import name", "def f():\n    import a.b"],
)  # fmt: skip
def test_an_import_is_found_wherever_it_stands(source: str) -> None:
    assert list(imported(source, "a", frozenset({"a", "a.b"}))) == ["a.b"]


def test_a_circle_is_found() -> None:
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": set()})) == {"a", "b", "c"}
    assert circle({"a": {"b"}, "b": set()}) == []
