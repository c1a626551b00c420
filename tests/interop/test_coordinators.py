"""Coordinators and command line tools beside Apache Kafka 4.3.1: the same steps, the same answers.

`kafka-4.3.1-coordinator-steps.txt` and `kafka-4.3.1-tool-steps.txt` are what a fresh KRaft node said to
`coordinator_steps.py` and to `tool_steps.py`, recorded by `record_coordinator_steps.py`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import coordinator_steps  # noqa: E402
import tool_steps  # noqa: E402

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


def steps(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, _, said = line.partition("\t")
        assert name not in found, name
        found[name] = said
    return found


ASKED = steps((HERE / "kafka-4.3.1-coordinator-steps.txt").read_text())
TYPED = steps((HERE / "kafka-4.3.1-tool-steps.txt").read_text())

OTHERWISE: dict[str, str] = {}
"""Steps that coordinators answer otherwise here, and why."""
TYPED_OTHERWISE: dict[str, str] = {}
"""Commands that print something else here, and why."""


def differing(found: dict[str, str], recorded: dict[str, str], otherwise: dict[str, str]) -> list[str]:
    """What is not as it was recorded, and what is though it should not be."""
    lines = []
    for step, said in recorded.items():
        if (found[step] == said) is (step in otherwise):
            lines.append(f"{step}\n  Kafka: {said}\n  here:  {found[step]}")
    return lines


@pytest.fixture(scope="module")
def bootstrap(start_module_broker: Callable[..., Any]) -> Callable[[], str]:
    """Starts a fresh broker, set as Apache Kafka was."""

    def start() -> str:
        words = (word for name, value in coordinator_steps.SETTINGS.items() for word in ("--set", f"{name}={value}"))
        return str(start_module_broker(*words).bootstrap)

    return start


def test_coordinators_answer_as_kafkas(bootstrap: Callable[[], str]) -> None:
    lines: list[str] = []
    coordinator_steps.run(bootstrap(), lines.append)
    found = steps("\n".join(lines))
    assert list(found) == list(ASKED)
    assert differing(found, ASKED, OTHERWISE) == []


def test_tools_print_what_they_print_of_kafka(
    bootstrap: Callable[[], str], apache_kafka: ModuleType, tmp_path: Path
) -> None:
    source = str(HERE / "ToolSteps.java")
    subprocess.run(["javac", "-cp", f"{apache_kafka.JARS}/*", "-d", str(tmp_path), source], check=True)
    lines: list[str] = []
    tool_steps.run(bootstrap(), apache_kafka.java("ToolSteps", classpath=str(tmp_path)), lines.append)
    found = steps("\n".join(lines))
    assert list(found) == list(TYPED)
    assert differing(found, TYPED, TYPED_OTHERWISE) == []
