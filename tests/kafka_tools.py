"""Kafka's command line tools, in one JVM: `interop/ToolSteps.java` runs one after the other."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import ModuleType, TracebackType
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parent / "interop" / "ToolSteps.java"


class Printed(NamedTuple):
    code: int
    """-1: it raised what it printed last; -2: it did not end."""
    text: str
    """Of stdout and stderr."""


def command(apache_kafka: ModuleType, classes: Path, version: str) -> list[str]:
    """Of the JVM that runs the tools of this version of Kafka; its program is compiled into `classes`."""
    jars = apache_kafka.jars_of(version)
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(classes), str(SOURCE)], check=True)
    made: list[str] = apache_kafka.java("ToolSteps", classpath=str(classes), version=version)
    return made


class KafkaTools:
    """Use as a context manager, or `close` it."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, main: str, *words: str) -> Printed:
        """Of a tool's main class with these arguments; they hold no tabs and no line ends."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join([main, *words]) + "\n")
        self._process.stdin.flush()
        code, _, text = self._process.stdout.readline().rstrip("\n").partition("\t")
        return Printed(int(code), re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(300)

    def __enter__(self) -> KafkaTools:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()
