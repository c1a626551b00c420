"""docs/durability.md and docs/disk-faults.md promise nothing that no test shows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"durability.md": "test_durability.py", "disk-faults.md": "test_disk_faults*.py"}


def functions(files: str) -> set[str]:
    trees = [ast.parse(path.read_text()) for path in (ROOT / "tests" / "scenarios" / "faults").glob(files)]
    nodes = [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name for node in nodes if node.name.startswith("test_")}


@pytest.mark.parametrize(("page", "tests"), PAGES.items())
def test_every_test_is_named_and_every_name_is_a_test(page: str, tests: str) -> None:
    named = re.findall(r"^\d+\. `(test_\w+)`$", (ROOT / "docs" / page).read_text(), re.MULTILINE)
    assert len(named) == len(set(named))
    assert set(named) == functions(tests)


@pytest.mark.parametrize("page", PAGES)
def test_every_cell_has_a_number_that_is_listed(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert rows
    numbers = set()
    for row in rows:
        promises = [cell.strip() for cell in row.strip("|").split("|")][-2 if page == "durability.md" else -1 :]
        for cell in promises:
            found = re.findall(r"\[(\d+)\]", cell)
            assert found, f"{page}: no test shows that {cell!r}"
            numbers.update(found)
    numbers.update(re.findall(r"\[(\d+)\]", text))
    listed = re.findall(r"^(\d+)\. `test_", text, re.MULTILINE)
    assert sorted(numbers, key=int) == listed
