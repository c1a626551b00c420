"""Every way to a log as a fixture; and the suites of this folder may import it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import logkernel

sys.path.insert(0, str(Path(__file__).parent))

from consuming import QUICK
from doors import WAYS, Bench, way_into


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """A way into a log, for `doors.way_into`."""
    return str(request.param)


@pytest.fixture
def bench(way: str) -> Iterator[Bench]:
    """A log whose groups lose no time, and one way into it."""
    with logkernel.open(**QUICK) as log, way_into(log, way) as far:
        yield Bench(log, far)
