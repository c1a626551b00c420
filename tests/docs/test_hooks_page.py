"""docs/hooks.md says what the code says."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

import pytest
from module_files import page_generator

from logkernel import contracts, hookspecs

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return page_generator("hooks")


HOOKS = [name for name in vars(hookspecs) if name.startswith("logkernel_")]


def test_the_page_is_fresh(generator: ModuleType) -> None:
    assert (DOCS / "hooks.md").read_text() == generator.page(), "run: python docs/generate_hooks.py"


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_is_explained(name: str) -> None:
    assert (getattr(hookspecs, name).__doc__ or "").strip()
    assert f"### `{name}`" in (DOCS / "hooks.md").read_text()


def test_every_providing_hook_shows_its_contract(generator: ModuleType) -> None:
    providing = {name for name in HOOKS if (getattr(hookspecs, name).logkernel_spec or {}).get("firstresult")}
    assert providing == set(generator.PROVIDES)


CLASSES = [name for name in contracts.__all__ if inspect.isclass(getattr(contracts, name))]


@pytest.mark.parametrize("name", [*CLASSES, "Record", "SegmentFacts", "Setting", "TopicSettings"])
def test_every_class_that_a_hook_or_a_contract_names_is_shown(name: str) -> None:
    assert f"### `{name}`" in (DOCS / "hooks.md").read_text()


@pytest.mark.parametrize("kind", hookspecs.KINDS)
def test_every_kind_is_named_with_its_hook(kind: str) -> None:
    assert f"- `{kind}`: `{hookspecs.KINDS[kind]}`" in (DOCS / "hooks.md").read_text()


def test_the_page_says_how_a_plugin_reads_its_settings() -> None:
    assert "settings.plugin[" in (DOCS / "hooks.md").read_text()
