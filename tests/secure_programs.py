"""Outside clients in other languages at secure listeners: programs that take a table of logins and try each.

They are in `interop/secure`, and built once, into the folder of the interop tests."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from attrs import asdict, frozen
from outside_suites import CACHE
from outside_tools import missing
from secure_clients import Login

SOURCES = Path(__file__).resolve().parent / "interop" / "secure"
KAFKAJS = "kafkajs@2.2.4"
TAKES_S = 600
BUILD_TAKES_S = 600
"""Of a first build, which compiles all modules, on a busy machine."""


@frozen
class Case:
    """Where a login is tried, and what it writes and reads there."""

    bootstrap: str
    login: Login
    topic: str
    values: Sequence[str] = ("one", "two")
    max_block_ms: int = 60_000
    """Of Java's producer, which goes on trying where nothing answers it."""


@frozen
class Outcome:
    read: Sequence[str]
    error: str


def run(
    command: Sequence[str], cases: Mapping[str, Case], environ: Mapping[str, str] | None = None
) -> dict[str, Outcome]:
    """What became of each case, by its name."""
    table = [
        {
            **asdict(case.login),
            "name": name,
            "bootstrap": case.bootstrap,
            "topic": case.topic,
            "values": case.values,
            "max_block_ms": case.max_block_ms,
        }
        for name, case in cases.items()
    ]
    done = subprocess.run(
        command,
        input=json.dumps(table),
        capture_output=True,
        text=True,
        timeout=TAKES_S,
        env={**os.environ, **(environ or {})},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["name"]: Outcome(row["read"] or (), row["error"]) for row in rows}


def go_version() -> tuple[int, int]:
    """Of the installed Go, without which a test is skipped, or fails where tools have to be there."""
    if shutil.which("go") is None:
        missing("there is no Go")
    found = re.search(r"go(\d+)\.(\d+)", subprocess.run(["go", "version"], capture_output=True, text=True).stdout)
    assert found
    return int(found[1]), int(found[2])


def go_program(name: str) -> list[str]:
    """Of `interop/secure/NAME`; skip without Go. Its modules are the newest, but those of `go119.mod` where Go is as
    old as Debian 12's, which reads no other."""
    modules = "go119.mod" if go_version() < (1, 21) else "go.mod"
    build = ["go", "build", f"-modfile={modules}"]
    sources = sorted(path for path in SOURCES.rglob("*") if path.suffix in (".go", ".mod", ".sum"))
    try:
        folder = _built(f"go-{modules}", sources, lambda made: [*build, "-o", f"{made}/", "./franz", "./sarama"])
    except (subprocess.SubprocessError, OSError) as error:
        missing(f"the programs in Go cannot be built: {error}")
    return [str(folder / name)]


def _built(kind: str, sources: Sequence[Path], command: Callable[[Path], Sequence[str]]) -> Path:
    """The folder that the command filled; it is kept for as long as the sources are the same."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    folder = CACHE / f"secure-{kind}-{digest}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if not folder.is_dir():
            made = Path(scratch) / "made"
            made.mkdir()
            subprocess.run(command(made), cwd=SOURCES, check=True, capture_output=True, timeout=BUILD_TAKES_S)
            made.rename(folder)
    return folder


def kafkajs() -> Path:
    """A folder for NODE_PATH, or to be copied as node_modules; skip without npm."""
    if shutil.which("npm") is None:
        missing("there is no npm")
    if shutil.which("node") is None:
        missing("there is no Node")
    modules = CACHE / KAFKAJS
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not modules.is_dir():
            try:
                subprocess.run(["npm", "install", "--silent", KAFKAJS], cwd=scratch, check=True, timeout=TAKES_S)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                missing(f"{KAFKAJS} cannot be installed: {error}")
            (Path(scratch) / "node_modules").rename(modules)
    return modules


def java_program(apache_kafka: ModuleType, version: str) -> list[str]:
    """`SecureClients` with the clients of this version of Kafka, for the oldest of which it is compiled."""
    try:
        for one in (version, apache_kafka.OLDER):
            apache_kafka.fetch(apache_kafka.jars_of(one), apache_kafka.artifacts_of(one))
    except subprocess.CalledProcessError as error:
        missing(f"the jars of Kafka cannot be fetched: {error}")
    jars, source = f"{apache_kafka.jars_of(apache_kafka.OLDER)}/*", SOURCES / "SecureClients.java"
    classes = _built("java", [source], lambda made: ["javac", "-cp", jars, "-d", str(made), str(source)])
    command: list[str] = apache_kafka.java("SecureClients", classpath=str(classes), version=version)
    return command
