"""docs/groups.md and docs/streams-groups.md show the states that the machines have."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from module_files import page_generator

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return page_generator("groups")


def test_the_page_is_fresh(generator: ModuleType) -> None:
    page = (DOCS / "groups.md").read_text()
    assert generator.page(page) == page, "run: python docs/generate_groups.py"
    assert page.count("```mermaid") == 2
    assert "UNREVOKED --> STABLE" in page
    assert "PreparingRebalance --> CompletingRebalance" in page


def test_the_page_of_streams_groups_is_fresh(generator: ModuleType) -> None:
    page = (DOCS / "streams-groups.md").read_text()
    assert generator.streams_page(page) == page, "run: python docs/generate_groups.py"
    assert "| its topics are not as the topology needs them | NotReady |" in page
