"""A shell for commands, as a user types them."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

import logkernel
from logkernel.cli import main


class Shell:
    """Runs commands against a broker."""

    def __init__(self, log: logkernel.EmbeddedLog, address: str, capture: Any, patch: pytest.MonkeyPatch) -> None:
        self.log = log
        self.address = address
        self._capture = capture
        self._patch = patch
        self.error = ""

    def __call__(self, line: str, code: int = 0, stdin: bytes = b"") -> str:
        """The output of a command; blanks part arguments, `␣` stands for one inside."""

        class Stdin(io.StringIO):
            buffer = io.BytesIO(stdin)

        self._patch.setattr(sys, "stdin", Stdin(stdin.decode(errors="replace")))
        self._capture.readouterr()
        found = main([part.replace("␣", " ") for part in line.split()])
        out, error = self._capture.readouterr()
        self.error = error.decode()
        assert found == code, f"{line}: {found}, not {code}\n{self.error}{out.decode()}"
        return str(out.decode())

    def rows(self, line: str, code: int = 0) -> list[Any]:
        return [json.loads(row) for row in self(f"{line} --json", code).splitlines()]

    def table(self, line: str, code: int = 0) -> list[list[str]]:
        """The cells of a table without its head."""
        return [row.split() for row in self(line, code).splitlines()[1:]]


def committed(shell: Shell, group: str, topic: str, records: int = 5, read: int = 3) -> None:
    shell(f"topic create {topic}")
    for number in range(records):
        shell.log.append(topic, b"%d" % number, timestamp_ms=1000 + number)
    shell(f"consume {topic} -g {group} -n {read}")
