"""The server's side of a connection takes the transitions of its table, and no others."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import count, product
from typing import Any

import pytest
from drawn import drawn

from logkernel.plugins.transport.tcp import connection as module
from logkernel.plugins.transport.tcp.connection import (
    CLOSED,
    DRAINING,
    LAST_ANSWERED,
    LOST,
    OPEN,
    REFUSED,
    TRANSITIONS,
    UNANSWERABLE,
    ServerConnection,
)
from logkernel.plugins.transport.tcp.versions import MOST_VERSIONS, VERSIONS_MS
from logkernel.requests.data import FetchResponse, PartitionProduceResponse, ProduceResponse, TopicProduceResponse

STATES = (OPEN, DRAINING, CLOSED)
EVENTS = (REFUSED, UNANSWERABLE, LAST_ANSWERED, LOST)
PRODUCE_ACKS_0 = struct.pack(">hhii", -1, 0, 1000, 1) + b"\0\1t" + struct.pack(">iii", 1, 0, 4) + b"data"


@pytest.fixture
def ticks() -> Iterator[int]:
    """What the connection's clock shows at each look, in ns."""
    return count(5_000, 100)


@pytest.fixture
def muted() -> list[int]:
    """For how many ms the connection was held back, each time."""
    return []


@pytest.fixture
def machine(door: Any, ticks: Iterator[int], muted: list[int]) -> ServerConnection:
    return ServerConnection(
        door,
        {},
        connection_id=1,
        peer="peer",
        client_host="127.0.0.1",
        listener="PLAINTEXT",
        max_request_bytes=1 << 20,
        wake=lambda: None,
        mute=muted.append,
        defer=lambda action, *facts: action(*facts),
        mono_ns=lambda: next(ticks),
    )


def happen(machine: ServerConnection, wire: Any, door: Any, event: int) -> None:
    """Bring the event about by what a peer, the broker or the driver does."""
    if event == LOST:
        machine.lost()
    elif event == REFUSED:
        machine.feed(memoryview(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n"))
    elif event == UNANSWERABLE:
        door.replies["HeartbeatRequest"] = lambda request: object()
        machine.feed(memoryview(wire.heartbeat(1)))
    else:
        failed = ProduceResponse([TopicProduceResponse("t", [PartitionProduceResponse(0, 6, -1)])])
        door.replies["ProduceRequest"] = lambda request: failed
        machine.feed(memoryview(bytearray(wire.frame("Produce", 3, 2, PRODUCE_ACKS_0))))


def test_the_table_that_is_drawn_is_the_table_that_runs() -> None:
    rows = {}
    for state, event, after in drawn(module.__doc__, "state", "event", "next"):
        for before in STATES if state == "any" else [getattr(module, state)]:
            rows[before, getattr(module, event.split(":")[0])] = getattr(module, after.split(",")[0])
    assert rows == TRANSITIONS


@pytest.mark.parametrize(("state", "event"), list(product(STATES, EVENTS)))
def test_each_event_in_each_state_leads_where_the_table_says(
    machine: ServerConnection, wire: Any, door: Any, state: int, event: int
) -> None:
    if state == DRAINING:
        happen(machine, wire, door, REFUSED)
    elif state == CLOSED:
        machine.lost()
    assert machine.state == state
    happen(machine, wire, door, event)
    assert machine.state == TRANSITIONS.get((state, event), state)


def test_reading_is_timed_from_when_that_is_asked_for(
    machine: ServerConnection, wire: Any, door: Any, ticks: Iterator[int]
) -> None:
    machine.feed(memoryview(wire.heartbeat(1) + wire.heartbeat(2)))
    (_, first), _ = door.seen
    assert next(ticks) == 5_000, "nobody asked"
    assert first.reading_ns() == 0
    machine.feed(memoryview(wire.heartbeat(3)))
    assert door.seen[-1][1].reading_ns() == 100


def test_a_request_behind_a_fetch_that_waits_is_looked_at_when_that_is_answered(
    machine: ServerConnection, wire: Any, door: Any
) -> None:
    fetch = wire.frame("Fetch", 4, 1, struct.pack(">iiiibi", -1, 500, 1, 1 << 20, 0, 0))
    sent = memoryview(fetch + wire.heartbeat(2))
    assert machine.feed(sent) == len(fetch)
    assert [type(request).__name__ for request, _ in door.seen] == ["FetchRequest"]
    assert (machine.has_more, machine.wants_data) == (True, False)
    door.parked.pop()(FetchResponse())
    assert machine.wants_data
    machine.feed(sent[len(fetch) :])
    assert [type(request).__name__ for request, _ in door.seen] == ["FetchRequest", "HeartbeatRequest"]


def test_a_fetch_that_waits_with_nothing_behind_it_does_not_stop_reading(
    machine: ServerConnection, wire: Any, door: Any
) -> None:
    machine.feed(memoryview(wire.frame("Fetch", 4, 1, struct.pack(">iiiibi", -1, 500, 1, 1 << 20, 0, 0))))
    assert machine.wants_data, "the end of the connection is to be noticed"


@pytest.mark.parametrize("version", [0, 99])
def test_a_client_that_asks_for_versions_without_end_is_held_back(
    machine: ServerConnection, wire: Any, muted: list[int], version: int
) -> None:
    """No quota measured them: a client could take all of the broker's time by them."""
    for _ in range(MOST_VERSIONS):
        machine.feed(memoryview(wire.frame("ApiVersions", version, 1)))
    assert (len(machine.output), muted, machine.wants_data) == (MOST_VERSIONS, [], True)
    machine.feed(memoryview(wire.frame("ApiVersions", version, 1) * 2))
    assert (len(machine.output), muted) == (MOST_VERSIONS + 1, [VERSIONS_MS])
    machine.output.clear()
    assert not machine.wants_data
