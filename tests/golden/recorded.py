"""What was recorded from Apache Kafka, read from the files beside the tests, and asked of a broker of ours."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from logkernel.broker.broker import Broker
from logkernel.contracts import RequestContext

DEADLINE_S = 180


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


def answer_of(broker: Broker, request: Any, context: RequestContext) -> Any:
    """The response to a request, of a broker that nobody else drives."""
    found: list[Any] = []
    broker.submit(request, context, found.append)
    deadline_s = time.monotonic() + DEADLINE_S
    while not found and time.monotonic() < deadline_s:
        broker.step()
    (response,) = found
    return response
