"""What was recorded from Apache Kafka, read from the files beside the tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def by_case(lines: Iterable[str]) -> dict[str, list[str]]:
    """Case → its lines, which are indented below its name."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if not line.startswith(" "):
            name = line
            found[name] = []
        else:
            found[name].append(line.strip())
    return found


def hex_rows(path: Path) -> dict[str, bytes]:
    """Name → bytes, from lines with both and a tab between them."""
    return {name: bytes.fromhex(data) for name, data in (line.split("\t") for line in path.read_text().splitlines())}
