"""The README's command and `--rest` are two halves of `--everything`; no test is in both or in neither."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COLLECT = """
import json, sys, pytest

class Collected:
    def pytest_collection_finish(self, session):
        self.ids = [item.nodeid for item in session.items]

parts = {}
for part in ("--everything", "", "--rest"):
    collected = Collected()
    pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *part.split()], [collected])
    parts[part] = collected.ids
with open(sys.argv[1], "w") as file:
    json.dump(parts, file)
"""


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_the_plain_command_and_the_rest_are_everything(tmp_path: Path) -> None:
    path = tmp_path / "ids.json"
    command = [sys.executable, "-c", COLLECT, str(path)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, timeout=1200)
    parts: dict[str, list[str]] = json.loads(path.read_text())
    first, rest, everything = parts[""], parts["--rest"], parts["--everything"]
    assert len(everything) > 9_000
    assert sorted(first + rest) == sorted(everything)
    assert min(len(first), len(rest)) > 1_000
    folders = {Path(name).parts[1] for name in first}
    assert folders == {"unit", "contracts", "scenarios", "docs", "smoke", "matrix"}


def test_a_named_path_is_run_whole() -> None:
    """Nobody who names a test is told that it was left out."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "tests/docs/test_parts.py", "tests/golden/storage"], cwd=ROOT, capture_output=True, text=True
    )
    assert "test_the_plain_command_and_the_rest_are_everything" in done.stdout
    assert "tests/golden/storage" in done.stdout
    assert "deselected" not in done.stdout


def test_the_plain_command_says_what_it_leaves_out() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, "-o", "testpaths=tests/smoke"], cwd=ROOT, capture_output=True, text=True)
    told = "Left out: tests/chaos, tests/golden, tests/interop, tests/simulation and the tests marked `long`."
    assert told in done.stdout
    assert "--rest" in done.stdout
