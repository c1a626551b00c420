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
ONE_LINERS = ("python3 -m venv .venv-test",)
"""Commands that must stand on one line, so that they can be copied and be found by tests."""


def links(page: str) -> list[str]:
    """Pages and files that a page links to, from the root."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    found = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    return [((ROOT / page).parent / target).resolve().relative_to(ROOT).as_posix() for target in found]


def test_every_page_is_reached_from_the_readme() -> None:
    reached, new = set(), {"README.md"}
    while new:
        reached |= new
        new = {target for page in new for target in links(page) if target in PAGES} - reached
    assert set(PAGES) - reached == set()


def test_the_index_has_every_page() -> None:
    listed = {target for target in links("docs/index.md") if target.endswith(".md")}
    pages = {page for page in PAGES if page.startswith("docs/") and page.count("/") == 1}
    assert pages - listed == {"docs/index.md"}


def test_every_decision_is_listed() -> None:
    pages = {page for page in PAGES if page.startswith("docs/decisions/")}
    assert pages - set(links("docs/decisions/README.md")) == {"docs/decisions/README.md"}


def test_the_readme_fits_three_screens_and_says_whom_it_is_for() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150, "three screens of fifty lines"
    assert any("It is for you if" in line for line in lines[:10])


def test_the_glossary_gives_a_word_one_meaning() -> None:
    entries = re.findall(r"^- (.+?):", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    words = [word for entry in entries for word in re.findall(r"\*\*(.+?)\*\*", entry)]
    assert len(words) > 50
    assert len(words) == len(set(words))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in links(page):
        assert (ROOT / target).exists(), f"{page} links to {target}"


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_to_a_section_lead_to_its_heading(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)", text):
        there = ((ROOT / page).parent / target).resolve().relative_to(ROOT).as_posix() if target else page
        assert anchor in anchors(there), f"{page} links to {target}#{anchor}"


@pytest.mark.parametrize("page", PAGES)
def test_lines_fit_a_screen(page: str) -> None:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    wide = [
        f"{page}:{number}: {len(line)} characters"
        for number, line in enumerate(lines, 1)
        if len(line) > WIDTH and not line.startswith(ONE_LINERS)
    ]
    assert not wide
