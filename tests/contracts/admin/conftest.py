"""One suite over every admin client: embedded and over TCP, by threads and by asyncio."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from administering import Bench
from doors import way_into

import logkernel


@pytest.fixture
def bench(way: str) -> Iterator[Bench]:
    with logkernel.open(group_initial_rebalance_delay_ms=0) as log, way_into(log, way) as far, far.admin() as admin:
        yield Bench(log, admin)
