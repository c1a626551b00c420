"""docs/groups.md shows the states that the machines have."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_fresh() -> None:
    spec = importlib.util.spec_from_file_location("generate_groups", DOCS / "generate_groups.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (DOCS / "groups.md").read_text()
    assert module.page(page) == page, "run: python docs/generate_groups.py"
    assert page.count("```mermaid") == 2
    assert "UNREVOKED_PARTITIONS --> STABLE" in page
    assert "PreparingRebalance --> CompletingRebalance" in page
