"""Suites of others, run by pytest in a process of its own with the testing product's plugin."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

PLUGIN = "logkernel.testing.pytest_plugin"


def words() -> list[str]:
    """Of a pytest command, where no installed distribution brings the plugin. pytest looks at all distributions, also
    at one that another of the same name hides from `entry_points`."""
    points = (point for distribution in distributions() for point in distribution.entry_points)
    return [] if any((point.group, point.value) == ("pytest11", PLUGIN) for point in points) else ["-p", PLUGIN]


def suite(folder: Path, test: str, ini: str = "", conftest: str = "", *options: str, code: int = 0) -> str:
    """What pytest prints over a suite of one file."""
    (folder / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
    (folder / "conftest.py").write_text(conftest)
    (folder / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words(), *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout
