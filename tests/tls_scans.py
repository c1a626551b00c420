"""What sslyze finds at TLS listeners. Its requirements differ from ours, so it has a folder of its own."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from outside_suites import CACHE
from outside_tools import missing

VERSION = "6.3.1"
PROGRAM = Path(__file__).resolve().parent / "interop" / "secure" / "scan.py"
TAKES_S = 240


def scan(*addresses: str) -> dict[str, dict[str, Any]]:
    """Address → facts, as `scan.py` has them."""
    environ = {**os.environ, "PYTHONPATH": str(_sslyze())}
    command = [sys.executable, str(PROGRAM), *addresses]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=TAKES_S)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def _sslyze() -> Path:
    """Where it is installed; skip where it cannot be had."""
    folder = CACHE / f"sslyze-{VERSION}-{sys.implementation.cache_tag}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if not folder.is_dir():
            pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-warn-conflicts"]
            try:
                wanted = ["--target", f"{scratch}/made", f"sslyze=={VERSION}"]
                subprocess.run([*pip, *wanted], check=True, stdin=subprocess.DEVNULL, timeout=TAKES_S)
            except subprocess.SubprocessError as error:
                missing(f"sslyze {VERSION} cannot be installed: {error}")
            (Path(scratch) / "made").rename(folder)
    return folder


def allows_more(ours: dict[str, Any], kafkas: dict[str, Any]) -> list[str]:
    """What ours accepts, or suffers from, and Kafka does not."""
    found = [
        f"{version} {suite}"
        for version, suites in ours["suites"].items()
        for suite in suites
        if suite not in kafkas["suites"][version]
    ]
    found += [f"curve {curve}" for curve in ours["curves"] if curve not in kafkas["curves"]]
    return found + [f"{name}: {has}" for name, has in ours["flaws"].items() if has and not kafkas["flaws"][name]]
