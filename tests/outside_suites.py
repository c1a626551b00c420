"""Public projects' own suites, from their source distributions, unchanged and with a broker of ours."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from attrs import frozen
from testing_plugin import words

CACHE = Path(os.environ.get("LOGKERNEL_INTEROP_CACHE") or Path.home() / ".cache" / "logkernel-interop")
TAKES_S = 280


@frozen
class OutsideSuite:
    """`needs` are what its tests require beyond the project; `options` are pytest's, and all that is changed."""

    project: str
    version: str
    needs: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return CACHE / "suites" / f"{self.project}-{self.version}"

    def fetch(self) -> None:
        """The sources, and what they import, in `folder`. Raises CalledProcessError where pip fails."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with (CACHE / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=self.folder.parent) as scratch:
            fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
            if self.folder.is_dir():
                return
            wanted, pip = f"{self.project}=={self.version}", [sys.executable, "-m", "pip"]
            quiet, site = ["-q", "--disable-pip-version-check"], f"{scratch}/made/site"
            for command in (
                [*pip, "download", *quiet, "--no-deps", "--no-binary", self.project, "-d", scratch, wanted],
                [*pip, "install", *quiet, "--no-warn-conflicts", "--target", site, wanted, *self.needs],
            ):
                subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=TAKES_S)
            (archive,) = Path(scratch).glob("*.tar.gz")
            subprocess.run(["tar", "-xzf", str(archive), "-C", scratch], check=True)
            (source,) = (path for path in Path(scratch).iterdir() if path.is_dir() and path.name != "made")
            source.rename(Path(scratch) / "made" / "source")
            (Path(scratch) / "made").rename(self.folder)

    def run(self, report: Path) -> subprocess.CompletedProcess[str]:
        """Its tests, with a report in JUnit's XML."""
        site = f"{self.folder / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}".rstrip(os.pathsep)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *words()]
        return subprocess.run(
            [*command, f"--junitxml={report}", *self.options],
            cwd=self.folder / "source",
            env={**os.environ, "PYTHONPATH": site},
            capture_output=True,
            text=True,
            timeout=TAKES_S,
        )
