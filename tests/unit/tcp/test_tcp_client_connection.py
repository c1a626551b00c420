"""The client's side of a connection goes through its states as its table says."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from drawn import drawn

from logkernel.errors import SaslAuthenticationFailed, UnsupportedSaslMechanism
from logkernel.plugins.transport.tcp import client as module
from logkernel.plugins.transport.tcp import registry
from logkernel.plugins.transport.tcp.client import (
    AUTHENTICATED,
    AUTHENTICATING,
    BROKEN,
    CHALLENGED,
    CHOOSING,
    CHOSEN,
    NEGOTIATING,
    READY,
    REAUTHENTICATE,
    REFUSED,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    TRANSITIONS,
    UNREADABLE,
    VERSIONS,
    VERSIONS_OF_SASL,
    VERSIONS_REFUSED,
    ClientConnection,
)
from logkernel.plugins.transport.tcp.wire import WireError
from logkernel.requests.access import SaslAuthenticateResponse, SaslHandshakeResponse
from logkernel.requests.api_versions import ApiVersion, ApiVersionsResponse
from logkernel.requests.groups import HeartbeatRequest

STATES = (NEGOTIATING, CHOOSING, AUTHENTICATING, READY, BROKEN)
EVENTS = range(9)
WAYS = {
    CHOOSING: [VERSIONS_OF_SASL],
    AUTHENTICATING: [VERSIONS_OF_SASL, CHOSEN],
    READY: [VERSIONS_OF_SASL, CHOSEN, CHALLENGED, AUTHENTICATED],
    BROKEN: [UNREADABLE],
}
"""State → the events that lead to it."""
HEARTBEAT = 12


def answered(machine: ClientConnection, code: int) -> bytes:
    """The peer's answer to the request for its versions that went out last."""
    sent = bytes(machine.output[-1])
    version, correlation_id = struct.unpack_from(">hi", sent, 6)
    keys = ((registry.API_VERSIONS_KEY, 2), (HEARTBEAT, 4), (SASL_HANDSHAKE, 1), (SASL_AUTHENTICATE, 2))
    listed = [ApiVersion(key, 0, newest) for key, newest in keys]
    response = ApiVersionsResponse(error_code=code, api_keys=listed)
    encode = registry.load(registry.API_VERSIONS_KEY).response_encoder(0 if code else version)
    body = struct.pack(">i", correlation_id) + b"".join(map(bytes, encode(response)))  # type: ignore[arg-type]
    return struct.pack(">i", len(body)) + body


def response(machine: ClientConnection, key: int, version: int, body: Any) -> bytes:
    """The peer's answer to the request that went out last."""
    (correlation_id,) = struct.unpack_from(">i", bytes(machine.output[-1]), 8)
    api = registry.load(key)
    tags = b"\0" if version >= api.row.flexible_from else b""
    frame = struct.pack(">i", correlation_id) + tags
    frame += b"".join(map(bytes, api.response_encoder(version)(body)))  # type: ignore[arg-type]
    return struct.pack(">i", len(frame)) + frame


def chosen(machine: ClientConnection, code: int = 0) -> bytes:
    return response(machine, SASL_HANDSHAKE, 1, SaslHandshakeResponse(code, ["PLAIN"]))


def challenged(machine: ClientConnection, code: int = 0, text: str | None = None, lifetime_ms: int = 0) -> bytes:
    body = SaslAuthenticateResponse(code, text, b"challenge", lifetime_ms)
    return response(machine, SASL_AUTHENTICATE, 2, body)


def happen(machine: ClientConnection, event: int) -> None:
    if event == UNREADABLE:
        with pytest.raises(WireError):
            machine.feed(memoryview(struct.pack(">i", -1)))
    elif event == CHOSEN:
        machine.feed(memoryview(chosen(machine)))
    elif event == CHALLENGED:
        if machine.challenge is not None:
            machine.respond(b"message")
        machine.feed(memoryview(challenged(machine)))
    elif event == AUTHENTICATED:
        machine.respond(None)
    elif event == REAUTHENTICATE:
        machine.reauthenticate()
    elif event == REFUSED and machine.state == CHOOSING:
        with pytest.raises(UnsupportedSaslMechanism, match=r"sasl.mechanism=SCRAM-SHA-256; it takes PLAIN"):
            machine.feed(memoryview(chosen(machine, UnsupportedSaslMechanism.code)))
    elif event == REFUSED:
        machine.respond(b"message")
        with pytest.raises(SaslAuthenticationFailed, match="who are you"):
            machine.feed(memoryview(challenged(machine, SaslAuthenticationFailed.code, "who are you")))
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
    machine = ClientConnection("me", None if event == VERSIONS else "SCRAM-SHA-256")
    for earlier in WAYS.get(state, []):
        happen(machine, earlier)
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


def test_what_is_sent_while_a_client_authenticates_again_leaves_behind_it() -> None:
    machine = ClientConnection("me", "SCRAM-SHA-256")
    for event in WAYS[READY]:
        happen(machine, event)
    machine.output.clear()
    machine.reauthenticate()
    correlation_id = machine.send(HeartbeatRequest("group"))
    assert [struct.unpack_from(">h", bytes(part), 4)[0] for part in machine.output] == [SASL_HANDSHAKE]
    happen(machine, CHOSEN)
    assert machine.challenge == b""
    happen(machine, CHALLENGED)
    machine.respond(None)
    keys = [struct.unpack_from(">h", bytes(part), 4)[0] for part in machine.output]
    assert keys == [SASL_HANDSHAKE, SASL_AUTHENTICATE, HEARTBEAT]
    _, done = machine.feed(memoryview(struct.pack(">iix", 12, correlation_id) + bytes(7)))
    assert [number for number, _ in done] == [correlation_id]


def test_answers_to_earlier_requests_come_through_while_a_client_authenticates_again() -> None:
    machine = ClientConnection("me", "SCRAM-SHA-256")
    for event in WAYS[READY]:
        happen(machine, event)
    correlation_id = machine.send(HeartbeatRequest("group"))
    machine.reauthenticate()
    _, done = machine.feed(memoryview(struct.pack(">iix", 12, correlation_id) + bytes(7)))
    assert [number for number, _ in done] == [correlation_id]
    happen(machine, CHOSEN)
    assert machine.state == AUTHENTICATING


def test_a_session_tells_how_long_it_lasts() -> None:
    machine = ClientConnection("me", "SCRAM-SHA-256")
    happen(machine, VERSIONS_OF_SASL)
    happen(machine, CHOSEN)
    machine.respond(b"message")
    machine.feed(memoryview(challenged(machine, lifetime_ms=60_000)))
    assert (machine.challenge, machine.lifetime_ms) == (b"challenge", 60_000)
