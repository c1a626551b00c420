"""The client's side of a connection goes through its states as its table says."""

from __future__ import annotations

import struct

import pytest
from drawn import drawn

from logkernel.plugins.transport.tcp import client as module
from logkernel.plugins.transport.tcp import registry
from logkernel.plugins.transport.tcp.client import (
    BROKEN,
    NEGOTIATING,
    READY,
    TRANSITIONS,
    UNREADABLE,
    VERSIONS,
    VERSIONS_REFUSED,
    ClientConnection,
)
from logkernel.plugins.transport.tcp.wire import WireError
from logkernel.requests.api_versions import ApiVersion, ApiVersionsResponse

STATES, EVENTS = (NEGOTIATING, READY, BROKEN), (VERSIONS, VERSIONS_REFUSED, UNREADABLE)
HEARTBEAT = 12


def answered(machine: ClientConnection, code: int) -> bytes:
    """The peer's answer to the request for its versions that went out last."""
    sent = bytes(machine.output[-1])
    version, correlation_id = struct.unpack_from(">hi", sent, 6)
    listed = ApiVersion(registry.API_VERSIONS_KEY, 0, 2), ApiVersion(HEARTBEAT, 0, 4)
    response = ApiVersionsResponse(error_code=code, api_keys=list(listed))
    encode = registry.load(registry.API_VERSIONS_KEY).response_encoder(0 if code else version)
    body = struct.pack(">i", correlation_id) + b"".join(map(bytes, encode(response)))  # type: ignore[arg-type]
    return struct.pack(">i", len(body)) + body


def happen(machine: ClientConnection, event: int) -> None:
    if event == UNREADABLE:
        with pytest.raises(WireError):
            machine.feed(memoryview(struct.pack(">i", -1)))
    else:
        machine.feed(memoryview(answered(machine, 35 if event == VERSIONS_REFUSED else 0)))


def test_the_table_that_is_drawn_is_the_table_that_runs() -> None:
    rows = {}
    for state, event, after in drawn(module.__doc__, "state", "event", "next"):
        for before in STATES if state == "any" else [getattr(module, state)]:
            rows[before, getattr(module, event.split(":")[0])] = getattr(module, after.split(",")[0])
    assert rows == TRANSITIONS


@pytest.mark.parametrize(("state", "event"), [(s, e) for s in STATES for e in EVENTS if (s, e) in TRANSITIONS])
def test_each_transition_of_the_table_is_taken(state: int, event: int) -> None:
    machine = ClientConnection("me")
    if state == READY:
        happen(machine, VERSIONS)
    elif state == BROKEN:
        happen(machine, UNREADABLE)
    assert machine.state == state
    happen(machine, event)
    assert machine.state == TRANSITIONS[state, event]


def test_every_state_can_be_reached_from_the_first() -> None:
    reached = {NEGOTIATING}
    for _ in STATES:
        reached |= {after for (before, _), after in TRANSITIONS.items() if before in reached}
    assert reached == set(STATES)


def test_a_peer_that_refuses_is_asked_in_a_version_that_it_lists() -> None:
    machine = ClientConnection("me")
    happen(machine, VERSIONS_REFUSED)
    happen(machine, VERSIONS)
    assert machine.state == READY
    assert len(machine.output) == 2
    assert struct.unpack_from(">h", bytes(machine.output[1]), 6) == (2,)


def test_nothing_is_read_from_a_connection_that_is_broken() -> None:
    machine = ClientConnection("me")
    whole = memoryview(answered(machine, 0))
    happen(machine, UNREADABLE)
    with pytest.raises(WireError, match="after"):
        machine.feed(whole)
