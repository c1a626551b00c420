"""Every page can be reached from the README, leads somewhere, and has lines that fit a screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 120
FOLDERS = ("docs", "examples", "bench")
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*.md")),
]
WIDE = {
    "docs/architecture.md",
    "docs/client.md",
    "docs/consumer.md",
    "docs/decisions/026-exactly-once-from-spark.md",
    "docs/disk-faults.md",
    "docs/durability.md",
    "docs/perf.md",
    "docs/pipelines.md",
    "docs/producer.md",
    "docs/spark.md",
    "docs/table.md",
    "docs/transactions.md",
    "examples/acme-delay-queue/README.md",
    "examples/acme-plugins/README.md",
}
"""Pages that still have wide tables; none may join them."""
ONE_LINERS = ("python3 -m venv .venv-test",)
"""Commands that must stand on one line, so that they can be copied and be found by tests."""


def links(page: str) -> list[str]:
    """Pages and files that a page links to, from the root."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    found = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    return [((ROOT / page).parent / target).resolve().relative_to(ROOT).as_posix() for target in found]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in links(page):
        assert (ROOT / target).exists(), f"{page} links to {target}"


@pytest.mark.parametrize("page", sorted(set(PAGES) - WIDE))
def test_lines_fit_a_screen(page: str) -> None:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    wide = [
        f"{page}:{number}: {len(line)} characters"
        for number, line in enumerate(lines, 1)
        if len(line) > WIDTH and not line.startswith(ONE_LINERS)
    ]
    assert not wide
