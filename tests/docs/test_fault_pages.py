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


def test_every_promise_has_a_number() -> None:
    """The last two cells of each row of durability's first table, and what follows each case of disk faults."""
    lines = (ROOT / "docs" / "durability.md").read_text().partition("\n## ")[0].splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("|")][2:]
    cases = re.findall(
        r"^- (\*\*.+?)(?=^- |^$)", (ROOT / "docs" / "disk-faults.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert len(rows) >= 9
    assert len(cases) >= 30
    for promise in (*(cell for row in rows for cell in row[-2:]), *cases):
        assert re.search(r"\[\d+\]", promise), f"no test shows that {promise!r}"


@pytest.mark.parametrize("page", PAGES)
def test_every_number_is_listed(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    listed = re.findall(r"^(\d+)\. `test_", text, re.MULTILINE)
    assert sorted(set(re.findall(r"\[(\d+)\]", text)), key=int) == listed
