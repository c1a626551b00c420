"""docs/architecture.md says where to look for what happens: each file is there, and has what the page names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import logkernel

DOC = Path(__file__).parents[2] / "docs" / "architecture.md"
PACKAGE = Path(logkernel.__path__[0])
PLACE = re.compile(r"`(?P<file>[\w/]+\.py)` `(?P<name>[\w.]+)`")


def places() -> list[tuple[str, str]]:
    """(file, name in it) of each place of the page's table."""
    section = DOC.read_text().split("## Where to look", 1)[1].split("\n## ", 1)[0]
    return [(row["file"], row["name"]) for row in PLACE.finditer(section)]


def names(file: str) -> set[str]:
    """Functions, classes and methods of a file."""
    found: set[str] = set()
    for node in ast.parse((PACKAGE / file).read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found.update(f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef))
    return found


def test_the_page_names_places() -> None:
    assert len(places()) > 10


@pytest.mark.parametrize(("file", "name"), places(), ids=lambda each: str(each))
def test_what_happens_is_where_the_page_says(file: str, name: str) -> None:
    assert name in names(file)
