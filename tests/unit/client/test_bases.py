"""Parts of a client that are made from a base: one that leaves something out cannot be made."""

from __future__ import annotations

from typing import Any

import pytest

from logkernel.client.cluster.leader_queries import LeaderQuery
from logkernel.client.drivers.driver import Driver
from logkernel.client.membership.base import GroupMembership


@pytest.mark.parametrize(
    ("base", "wanted"),
    [
        (LeaderQuery, {"request", "rows"}),
        (Driver, {"perform", "wake"}),
        (GroupMembership, {"handled", "step", "rejoin", "stale", "lost", "leave", "_too_slow"}),
    ],
)
def test_who_leaves_something_out_cannot_be_made(base: Any, wanted: set[str]) -> None:
    for left_out in wanted:
        given = {name: lambda *_: None for name in wanted - {left_out}}
        with pytest.raises(TypeError, match=f"abstract method {left_out}"):
            type("Partial", (base,), given)()
