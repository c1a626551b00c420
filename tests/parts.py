"""Which tests a run takes: the first part (the README's command), the rest, or everything.

The first part is every test outside `REST_FOLDERS` that is not marked `long`; the rest is its complement. A run that
names files or folders takes all that is in them. `tests/docs/test_parts.py` holds first + rest = everything.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
REST_FOLDERS = ("chaos", "golden", "interop", "simulation")
"""Folders of tests that need outside tools, JVMs, many seeds or minutes."""
FIRST, REST, EVERYTHING = "first", "rest", "everything"
COMMAND = "python -m pytest -n auto --dist worksteal"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("logkernel")
    for option, part, text in (
        ("--rest", REST, "run what the plain command leaves out"),
        ("--everything", EVERYTHING, "run every test"),
    ):
        group.addoption(option, dest="part", action="store_const", const=part, help=text)


def part_of(config: pytest.Config) -> str:
    """FIRST, REST or EVERYTHING; paths on the command line mean EVERYTHING in them."""
    if config.option.part:
        return str(config.option.part)
    return EVERYTHING if config.args_source is pytest.Config.ArgsSource.ARGS else FIRST


def is_rest(path: Path) -> bool:
    """Whether all tests of this file or folder belong to the rest."""
    return path.is_relative_to(TESTS) and path.relative_to(TESTS).parts[:1] in [(name,) for name in REST_FOLDERS]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if part_of(config) == FIRST and is_rest(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part = part_of(config)
    if part == EVERYTHING:
        return
    taken, left = [], []
    for item in items:
        rest = is_rest(item.path) or item.get_closest_marker("long") is not None
        (taken if rest == (part == REST) else left).append(item)
    items[:] = taken
    config.hook.pytest_deselected(items=left)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if part_of(config) == FIRST:
        folders = ", ".join(f"tests/{name}" for name in REST_FOLDERS)
        terminalreporter.write_line(f"Left out: {folders} and the tests marked `long`.")
        terminalreporter.write_line(f"Run them with `{COMMAND} --rest`, and every test with `--everything`.")
