"""The programs of `docs/plugins` run and print what the pages say; the example distributions do what they promise."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs" / "plugins"
BLOCK = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = (
    "compaction-strategies.md",
    "fetch-filters.md",
    "produce-interceptors.md",
    "quotas.md",
)


@pytest.mark.parametrize("page", PAGES)
def test_the_program_of_a_page_prints_what_the_page_says(page: str) -> None:
    blocks = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    assert blocks
    names: dict[str, object] = {"__name__": "page"}
    for code, said in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, page, "exec"), names)
        assert out.getvalue() == said
