"""docs/plugins shows what `logkernel plugin new` writes, and what the contract kits promise; its examples work."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from module_files import load_module, page_generator

from logkernel.hookspecs import KINDS
from logkernel.testing.contracts import kits

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = DOCS / "plugins"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
SEAMS = ("compaction-strategies.md", "fetch-filters.md", "produce-interceptors.md", "quotas.md")
LONGEST = 50
"""Lines of an example, without those of a service, whose machine alone has nine methods."""


GENERATOR = page_generator("plugins")
PAGES: dict[str, tuple[str, str, str]] = GENERATOR.PAGES
OTHERS: dict[str, str] = GENERATOR.OTHERS
"""Pages without a project that `plugin new` writes: their programs are the example."""


@pytest.mark.parametrize("stem", PAGES)
def test_a_page_is_fresh(stem: str) -> None:
    text = (FOLDER / f"{stem}.md").read_text(encoding="utf-8")
    assert text == GENERATOR.page(stem, text), "run: python docs/generate_plugins.py"


@pytest.mark.parametrize("stem", PAGES)
def test_the_example_of_a_page_keeps_its_contract(stem: str, tmp_path: Path) -> None:
    kind, distribution, name = PAGES[stem]
    code, _ = BLOCK.findall((FOLDER / f"{stem}.md").read_text(encoding="utf-8"))[0]
    assert code.count("\n") < LONGEST or kind == "service"
    path = tmp_path / f"{distribution.replace('-', '_')}.py"
    path.write_text(code)
    module = load_module(path)
    more: dict[str, Any] = {}
    if kind == "service":
        from hypothesis import strategies as st

        more["requests"] = lambda self: st.builds(module.CountRequest, st.sampled_from(["a", "b"]), st.integers(0, 9))
    elif kind == "codec":
        more["levels"] = (1, 9)
    suite = type("Suite", (kits()[kind],), {"name": name, "plugins": (module,), "effort": 0.1, "quick": True, **more})
    for promise in dir(suite):
        if promise.startswith("test_"):
            with contextlib.suppress(pytest.skip.Exception):
                getattr(suite(), promise)()
    assert suite().kernel.names(kind).count(name) == 1


@pytest.mark.parametrize("page", ["index.md", "observers.md", *SEAMS])
def test_the_programs_of_a_page_run_and_print_what_it_says(page: str) -> None:
    found = BLOCK.findall((FOLDER / page).read_text(encoding="utf-8"))
    assert found
    world: dict[str, Any] = {"__name__": "page"}
    for code, said in found:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, page, "exec"), world)
        assert out.getvalue() == said


def test_every_kind_with_a_kit_has_a_page() -> None:
    paged = {kind for kind, _, _ in PAGES.values()} | set(OTHERS.values())
    assert paged == set(kits()) - {"shared coordination"}, "coordinations.md is also about shared ones"
    without_a_kit = {
        "index.md",
        "misbehaving.md",
        "tutorial.md",
        "observers.md",
    }
    assert {f"{stem}.md" for stem in [*PAGES, *OTHERS]} | without_a_kit == {path.name for path in FOLDER.iterdir()}
    text = (FOLDER / "index.md").read_text(encoding="utf-8")
    for path in FOLDER.iterdir():
        assert path.name == "index.md" or f"({path.name})" in text
    for kind, hook in KINDS.items():
        assert f"`{hook}`" in (DOCS / "hooks.md").read_text(encoding="utf-8"), kind
