"""Archives of classes (JEP 350) for JVMs that live for seconds: one that maps an archive starts in half the time, as
it neither parses nor verifies what the archive holds. Made once, from the classes that a real run has loaded."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For a JVM that is gone before it would be worth compiling much."""
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""An archive that does not fit is passed over; standard output is not told so."""
UNUSED_S = 14 * 86400
"""Archives that nobody used for so long are removed when one is made."""

_failed: set[Path] = set()

Train = Callable[[list[str]], object]
"""Runs a JVM with these options until it ends."""


def options(name: str, cache: Path, jars: Path, train: Train | None = None) -> list[str]:
    """Options of a JVM whose class path begins with all of `jars`. An archive that is missing is made by `train`; there
    are none without it, where it fails, and while another process is at it."""
    archive = cache / f"{name}-{_key(jars)}.jsa"
    if not archive.exists() and (train is None or not _make(archive, train)):
        return []
    os.utime(archive)
    return [f"-XX:SharedArchiveFile={archive}", *QUIET]


def _key(jars: Path) -> str:
    """A JVM takes an archive only with the same Java and the same jars."""
    javas = [Path(shutil.which("java") or "java"), Path(os.environ.get("JAVA_HOME", "")) / "bin" / "java"]
    files = [*javas, *sorted(jars.glob("*.jar"))]
    facts = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in files if path.exists()]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def _make(archive: Path, train: Train) -> bool:
    if archive in _failed:
        return False
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # tests run in several processes
        except BlockingIOError:
            return False
        if archive.exists():
            return True
        scratch = archive.with_suffix(f".{os.getpid()}")
        try:
            train([f"-XX:ArchiveClassesAtExit={scratch}", *QUIET])
            scratch.rename(archive)
        except (OSError, RuntimeError, subprocess.SubprocessError):
            _failed.add(archive)
            return False
        finally:
            scratch.unlink(missing_ok=True)
        for path in archive.parent.glob("*.jsa"):
            if path.stat().st_mtime < time.time() - UNUSED_S:
                path.unlink(missing_ok=True)
                path.with_suffix(".lock").unlink(missing_ok=True)
        return True
