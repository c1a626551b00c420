"""The gate of a connection that asks who a client is: its table, and what stands behind it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from drawn import drawn

from logkernel.errors import IllegalSaslState, SaslAuthenticationFailed, UnsupportedSaslMechanism
from logkernel.plugins.transport.tcp import registry, sasl_server
from logkernel.plugins.transport.tcp import sasl_gate as module
from logkernel.plugins.transport.tcp.connection import DRAINING, MAX_STRAY_BYTES, OPEN, ServerConnection
from logkernel.plugins.transport.tcp.muting import QUOTA
from logkernel.plugins.transport.tcp.sasl_gate import AGAIN_MS, TRANSITIONS, Event, OutOfTurn, SaslGate, State
from logkernel.requests.access import SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest
from logkernel.requests.api_versions import ApiVersionsRequest
from logkernel.requests.data import ProduceRequest
from logkernel.requests.groups import HeartbeatRequest, HeartbeatResponse
from logkernel.vocabulary import Principal


class Mechanism:
    """Asks for the name of a user, then for "please"; "no" fails."""

    name = "ASK"

    def __init__(self, blocks: bool) -> None:
        self.blocks = blocks
        self.principal: Principal | None = None
        self.expires_ms: int | None = None
        self._user = ""

    def evaluate(self, message: bytes) -> bytes:
        if message == b"no":
            raise SaslAuthenticationFailed("no such user")
        if message == b"broken":
            raise OSError("disk")
        if message != b"please":
            self._user = message.decode()
            return b"say please"
        self.principal = Principal("User", self._user)
        return b"thanks"


class Security:
    """Of a listener with the mechanism ASK."""

    mechanisms = ("ASK", "OTHER")
    max_receive_bytes = 100
    failure_delay_ms = 7
    timeout_ms = 1000
    check_timeout_ms = 500

    def __init__(self) -> None:
        self.blocks = False
        self.lifetime = 0
        self.failures: list[str] = []

    def tls(self) -> None:
        return None

    def mechanism(self, name: str, peer: str) -> Mechanism:
        return Mechanism(self.blocks)

    def principal_of(self, certificate: bytes | None) -> Principal:
        raise AssertionError("SASL says who the client is")

    def lifetime_ms(self, expires_ms: int | None) -> int:
        return self.lifetime

    def rejected(self, peer: str, mechanism: str, error: BaseException) -> None:
        self.failures.append(f"{peer} {mechanism}: {error}")


class Threads:
    """Holds the work of a mechanism that blocks until a test has it done."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def offload(
        self, work: Callable[[], bytes], done: Callable[[bytes, BaseException | None], None], limit_ms: int
    ) -> None:
        def go() -> None:
            try:
                challenge = work()
            except Exception as error:
                done(b"", error)
            else:
                done(challenge, None)

        self.waiting.append(go)

    def run(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()


@pytest.fixture
def security() -> Security:
    return Security()


@pytest.fixture
def threads() -> Threads:
    return Threads()


@pytest.fixture
def gate(security: Security, threads: Threads) -> SaslGate:
    return SaslGate(security, "peer", threads.offload)


def say(gate: SaslGate, message: bytes) -> SaslAuthenticateResponse:
    answers: list[SaslAuthenticateResponse] = []
    gate.on_message(message, answers.append)
    return answers[0]


def authenticate(gate: SaslGate, user: bytes = b"alice") -> SaslAuthenticateResponse:
    assert gate.on_handshake("ASK", 0).error_code == 0
    assert say(gate, user).auth_bytes == b"say please"
    return say(gate, b"please")


def bring_to(gate: SaslGate, security: Security, state: State) -> None:
    security.lifetime = 1000
    if state is State.EXCHANGING:
        gate.on_handshake("ASK", 0)
        say(gate, b"alice")
    elif state is State.FAILED:
        gate.on_handshake("NONE", 0)
    elif state is State.CHOOSING:
        gate.told_versions()
    elif state is not State.WAITING:
        authenticate(gate)
        if state is State.EXPIRED:
            gate.expire()
    assert gate.state is state


def happen(gate: SaslGate, event: Event) -> None:
    if event is Event.CHOSEN:
        gate.on_handshake("ASK", 0)
    elif event is Event.UNKNOWN:
        gate.on_handshake("OTHER" if gate.named else "NONE", 0)
    elif event is Event.EXPIRED:
        gate.expire()
    elif event is Event.TOLD:
        gate.on_versions()
        gate.told_versions()
    elif event is Event.STRAYED:
        gate.on_other("Metadata")
    else:
        say(gate, {Event.CONTINUED: b"alice", Event.PROVED: b"please", Event.REJECTED: b"no"}[event])


def test_the_table_that_is_drawn_is_the_table_that_runs() -> None:
    rows = {
        (State(state), Event(event.split(":")[0])): State(after)
        for state, event, after in drawn(module.__doc__, "state", "event", "next")
    }
    assert rows == dict(TRANSITIONS)


@pytest.mark.parametrize(("state", "event"), list(product(State, Event)))
def test_each_event_in_each_state_leads_where_the_table_says(
    gate: SaslGate, security: Security, state: State, event: Event
) -> None:
    bring_to(gate, security, state)
    after = TRANSITIONS.get((state, event))
    if after is not None:
        happen(gate, event)
    elif event is Event.EXPIRED or (state, event) == (State.PASSED, Event.TOLD):
        happen(gate, event)
        after = state
    else:
        with pytest.raises(OutOfTurn):
            happen(gate, event)
        after = state
    assert gate.state is after


def test_a_mechanism_that_is_not_served_is_answered_with_those_that_are(gate: SaslGate) -> None:
    response = gate.on_handshake("GSSAPI", 0)
    assert (response.error_code, response.mechanisms) == (UnsupportedSaslMechanism.code, ["ASK", "OTHER"])
    assert gate.state is State.FAILED


def test_the_principal_is_known_when_it_is_proved(gate: SaslGate) -> None:
    gate.on_handshake("ASK", 0)
    say(gate, b"alice")
    assert gate.principal is None
    assert say(gate, b"please").auth_bytes == b"thanks"
    assert gate.principal == Principal("User", "alice")


def test_a_client_stays_who_it_was_when_it_authenticates_again(gate: SaslGate, security: Security) -> None:
    security.lifetime = 1000
    assert authenticate(gate).session_lifetime_ms == 1000
    assert authenticate(gate, b"alice").error_code == 0
    response = authenticate(gate, b"mallory")
    assert response.error_code == SaslAuthenticationFailed.code
    assert "from User:alice to User:mallory" in str(response.error_message)
    assert gate.state is State.FAILED


def test_a_client_keeps_its_mechanism_when_it_authenticates_again(gate: SaslGate, security: Security) -> None:
    security.lifetime = 1000
    authenticate(gate)
    assert gate.on_handshake("OTHER", 0).error_code == 0, "Kafka tells it only by the end of the connection"
    with pytest.raises(OutOfTurn):
        say(gate, b"alice")


def test_a_client_that_is_in_and_names_no_mechanism_is_told_nothing(gate: SaslGate, security: Security) -> None:
    security.lifetime = 1000
    authenticate(gate)
    with pytest.raises(OutOfTurn, match="a session that began with ASK"):
        gate.on_handshake("NONE", 0)
    assert gate.state is State.FAILED


def test_a_client_does_not_authenticate_again_at_once(gate: SaslGate, security: Security) -> None:
    """Kafka lets a second pass after the last time, but not after the first login."""
    assert gate.takes_handshake(5)
    security.lifetime = 60_000
    authenticate(gate)
    assert gate.takes_handshake(5)
    authenticate(gate)
    assert not gate.takes_handshake(AGAIN_MS - 1)
    assert gate.takes_handshake(AGAIN_MS)


def test_a_session_of_less_than_a_second_can_be_renewed(gate: SaslGate, security: Security) -> None:
    security.lifetime = 300
    authenticate(gate)
    authenticate(gate)
    assert not gate.takes_handshake(149)
    assert gate.takes_handshake(150)


def test_what_a_mechanism_breaks_with_is_not_told_to_the_client(gate: SaslGate, security: Security) -> None:
    gate.on_handshake("ASK", 0)
    response = say(gate, b"broken")
    assert response.error_code == SaslAuthenticationFailed.code
    assert "disk" not in str(response.error_message)
    assert security.failures == ["peer ASK: disk"]


def test_nothing_else_is_taken_while_a_mechanism_blocks(gate: SaslGate, security: Security, threads: Threads) -> None:
    security.blocks = True
    gate.on_handshake("ASK", 0)
    answers: list[SaslAuthenticateResponse] = []
    gate.on_message(b"alice", answers.append)
    assert (answers, gate.is_open) == ([], False)
    with pytest.raises(OutOfTurn, match="busy"):
        gate.on_message(b"please", answers.append)
    threads.run()
    assert [answer.auth_bytes for answer in answers] == [b"say please"]


def test_a_proof_that_comes_after_the_client_strayed_lets_nobody_in(
    gate: SaslGate, security: Security, threads: Threads
) -> None:
    """It raised in the loop, as the gate's table has no such row."""
    security.blocks = True
    gate.on_handshake("ASK", 0)
    answers: list[SaslAuthenticateResponse] = []
    gate.on_message(b"alice", answers.append)
    threads.run()
    gate.on_message(b"please", answers.append)
    gate.on_other("Heartbeat")
    threads.run()
    assert (len(answers), gate.state, gate.principal) == (1, State.FAILED, None)


# ---------------------------------------------------------------- the connection behind it


class Timers:
    """`pause` of a connection."""

    def __init__(self) -> None:
        self.set: list[tuple[float, Callable[[], None]]] = []
        self.cancelled = 0
        self.now_ns = 0

    def pause(self, wait_ms: float, work: Callable[[], None]) -> Timers:
        self.set.append((wait_ms, work))
        return self

    def cancel(self) -> None:
        self.cancelled += 1

    def ring(self) -> None:
        for _, work in self.set:
            work()
        self.set.clear()


@pytest.fixture
def timers() -> Timers:
    return Timers()


@pytest.fixture
def wakes() -> list[str]:
    """Grows when the connection has its driver send, or close."""
    return []


@pytest.fixture
def machine(door: Any, security: Security, threads: Threads, timers: Timers, wakes: list[str]) -> ServerConnection:
    door.replies["HeartbeatRequest"] = lambda request: HeartbeatResponse()
    return ServerConnection(
        door, {}, connection_id=1, peer="peer", client_host="127.0.0.1", listener="SASL", max_request_bytes=1 << 20,
        wake=lambda: wakes.append("wake"), mute=lambda for_ms: None, defer=lambda action, *facts: action(*facts),
        security=security,
        pause=timers.pause, offload=threads.offload, mono_ns=lambda: timers.now_ns,
    )  # fmt: skip


def frame(request: Any, version: int) -> bytes:
    row = registry.BY_REQUEST[type(request).__name__]
    body = b"".join(map(bytes, registry.load(row.key).encode_request_parts(version)(request)))
    tags = b"\0" if version >= row.flexible_from else b""
    head = struct.pack(">hhih", row.key, version, 5, -1) + tags
    return struct.pack(">i", len(head) + len(body)) + head + body


def ask(machine: ServerConnection, request: Any, version: int) -> Any:
    """The answer to a request, decoded; None where there is none yet."""
    machine.feed(memoryview(frame(request, version)))
    return answer(machine, request, version)


def answer(machine: ServerConnection, request: Any, version: int) -> Any:
    parts = [bytes(part) for part in machine.output]  # type: ignore[arg-type]
    machine.output.clear()
    if not parts:
        return None
    row = registry.BY_REQUEST[type(request).__name__]
    start = 9 if version >= row.flexible_from else 8
    return registry.load(row.key).decode_response(version)(memoryview(b"".join(parts)[start:]))


def pass_through(machine: ServerConnection) -> None:
    assert ask(machine, SaslHandshakeRequest("ASK"), 1).error_code == 0
    assert ask(machine, SaslAuthenticateRequest(b"alice"), 2).auth_bytes == b"say please"
    assert ask(machine, SaslAuthenticateRequest(b"please"), 2).auth_bytes == b"thanks"


def test_a_request_before_authentication_ends_the_connection(
    machine: ServerConnection, wire: Any, door: Any, caplog: pytest.LogCaptureFixture
) -> None:
    machine.feed(memoryview(wire.heartbeat(1)))
    assert (machine.state, door.seen) == (DRAINING, [])
    assert "before it authenticated; set security.protocol and sasl.mechanism" in caplog.text


def test_a_request_before_authentication_is_refused_unread(
    machine: ServerConnection, wire: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """It was decoded first: half a second of the broker's time for 512 KB, whoever sent them."""
    machine.feed(memoryview(wire.frame("Heartbeat", 4, 1, b"no body")))
    assert machine.state == DRAINING
    assert "Heartbeat before it authenticated" in caplog.text


def test_no_request_is_answered_before_authentication(machine: ServerConnection, wire: Any) -> None:
    """A Produce of a version that is too old was refused with an answer, whoever sent it."""
    machine.feed(memoryview(wire.frame("Produce", 2, 1, struct.pack(">hii", 1, 1, 0))))
    assert (machine.state, list(machine.output)) == (DRAINING, [])


def test_no_old_request_is_answered_in_the_midst_of_authentication(
    machine: ServerConnection, wire: Any, security: Security
) -> None:
    ask(machine, SaslHandshakeRequest("ASK"), 1)
    machine.feed(memoryview(wire.frame("Produce", 2, 1, struct.pack(">hii", 1, 1, 0))))
    assert not machine.output
    assert security.failures[0].startswith("peer ASK: Produce amid the authentication")


def test_a_large_request_in_the_midst_of_authentication_is_refused_unread(
    machine: ServerConnection, timers: Timers, security: Security
) -> None:
    ask(machine, SaslHandshakeRequest("ASK"), 1)
    machine.limit_requests(1 << 20)
    assert ask(machine, HeartbeatRequest("app", 1, "m" * MAX_STRAY_BYTES), 4) is None
    assert (machine.state, timers.set) == (DRAINING, [])
    assert security.failures == [
        "peer ASK: Heartbeat amid the authentication; send SaslAuthenticate until that has ended"
    ]


def test_a_request_in_the_midst_of_authentication_is_refused_and_ends_the_connection(
    machine: ServerConnection, timers: Timers, security: Security, door: Any
) -> None:
    """It was ended without an answer, where Kafka has one."""
    ask(machine, SaslHandshakeRequest("ASK"), 1)
    ask(machine, SaslAuthenticateRequest(b"alice"), 1)
    request = HeartbeatRequest("app", 1, "me")
    assert ask(machine, request, 4) is None, "who fails is told later"
    assert [wait_ms for wait_ms, _ in timers.set] == [7]
    timers.ring()
    assert answer(machine, request, 4).error_code == IllegalSaslState.code
    assert (machine.state, door.seen) == (DRAINING, [])
    assert security.failures == [
        "peer ASK: Heartbeat amid the authentication; send SaslAuthenticate until that has ended"
    ]


def test_a_produce_without_an_answer_in_the_midst_of_authentication_ends_the_connection(
    machine: ServerConnection, timers: Timers
) -> None:
    ask(machine, SaslHandshakeRequest("ASK"), 1)
    assert ask(machine, ProduceRequest(acks=0, timeout_ms=1), 9) is None
    assert (machine.state, timers.set) == (DRAINING, [])


def test_versions_are_told_once_before_the_handshake(machine: ServerConnection) -> None:
    for name, state in (("?", OPEN), ("me", OPEN), ("me", DRAINING)):
        machine.feed(memoryview(frame(ApiVersionsRequest(name, "1"), 4)))
        assert machine.state == state, name


def test_what_is_sent_behind_a_message_waits_while_a_mechanism_blocks(
    machine: ServerConnection, security: Security, threads: Threads, wire: Any, door: Any, wakes: list[str]
) -> None:
    """It ended the connection; Kafka reads it when the mechanism is done."""
    security.blocks = True
    ask(machine, SaslHandshakeRequest("ASK"), 1)
    requests = frame(SaslAuthenticateRequest(b"alice"), 2) + frame(SaslAuthenticateRequest(b"please"), 2)
    sent = requests + bytes(wire.heartbeat(1))
    while sent:
        used = machine.feed(memoryview(sent))
        sent = sent[used:]
        assert used or threads.waiting
        assert machine.wants_data is not bool(threads.waiting)
        threads.run()
    assert (machine.state, len(door.seen), len(wakes)) == (OPEN, 1, 2)
    assert door.seen[0][1].principal == Principal("User", "alice")


def test_a_rejected_token_without_headers_ends_the_connection_after_the_delay(
    machine: ServerConnection, timers: Timers, wakes: list[str]
) -> None:
    """Passwords could be tried without the delay, and a connection that was refused from a thread was left open."""
    ask(machine, SaslHandshakeRequest("ASK"), 0)
    machine.feed(memoryview(struct.pack(">i", 2) + b"no"))
    assert (machine.state, machine.wants_data) == (OPEN, False)
    timers.ring()
    assert (machine.state, wakes) == (DRAINING, ["wake"])


def test_authentication_that_skips_the_handshake_ends_the_connection(machine: ServerConnection) -> None:
    assert ask(machine, SaslAuthenticateRequest(b"please"), 2) is None
    assert machine.state == DRAINING


def test_requests_behind_authentication_are_the_clients(machine: ServerConnection, wire: Any, door: Any) -> None:
    pass_through(machine)
    machine.feed(memoryview(wire.heartbeat(1)))
    _, context = door.seen[0]
    assert context.principal == Principal("User", "alice")


@pytest.mark.parametrize("version", [0, 1])
def test_a_frame_is_small_before_authentication(
    machine: ServerConnection, caplog: pytest.LogCaptureFixture, version: int
) -> None:
    """The setting that was named is that of requests, and of 0 bytes where tokens have no headers."""
    ask(machine, SaslHandshakeRequest("ASK"), version)
    machine.feed(memoryview(struct.pack(">i", 101)))
    assert machine.state == DRAINING
    assert "a frame of 101 bytes, more than sasl.server.max.receive.size=100" in caplog.text


def test_a_client_that_fails_is_told_after_the_delay_and_nothing_is_read_meanwhile(
    machine: ServerConnection, timers: Timers, wire: Any, door: Any
) -> None:
    ask(machine, SaslHandshakeRequest("ASK"), 1)
    request = SaslAuthenticateRequest(b"no")
    assert ask(machine, request, 2) is None
    assert [wait_ms for wait_ms, _ in timers.set] == [7]
    assert not machine.wants_data
    machine.feed(memoryview(wire.heartbeat(1)))
    assert (machine.state, door.seen) == (OPEN, [])
    timers.ring()
    told = answer(machine, request, 2)
    assert (told.error_code, told.error_message) == (SaslAuthenticationFailed.code, "no such user")
    assert machine.state == DRAINING


@pytest.mark.parametrize("quota_ends_first", [True, False])
def test_a_client_is_read_again_when_neither_its_quota_nor_its_login_holds_it_back(
    machine: ServerConnection, security: Security, threads: Threads, quota_ends_first: bool
) -> None:
    """The end of a quota's time ended the wait for the mechanism, too, which then got a message amid another."""
    security.blocks = True
    ask(machine, SaslHandshakeRequest("ASK"), 1)
    assert ask(machine, SaslAuthenticateRequest(b"alice"), 2) is None
    machine.hold_back(5)
    for end in (lambda: machine.unmute(QUOTA), threads.run)[:: 1 if quota_ends_first else -1]:
        assert not machine.wants_data
        end()
    assert machine.wants_data


def test_the_end_of_a_quotas_time_ends_no_delay_of_a_client_that_failed(
    machine: ServerConnection, timers: Timers
) -> None:
    """It could try the next password at once."""
    ask(machine, SaslHandshakeRequest("ASK"), 1)
    assert ask(machine, SaslAuthenticateRequest(b"no"), 2) is None
    machine.hold_back(5)
    machine.unmute(QUOTA)
    assert not machine.wants_data
    timers.ring()
    assert machine.state == DRAINING


def test_a_mechanism_that_is_refused_ends_the_connection_after_its_answer(
    machine: ServerConnection, timers: Timers
) -> None:
    request = SaslHandshakeRequest("NTLM")
    assert ask(machine, request, 1) is None
    timers.ring()
    assert answer(machine, request, 1).mechanisms == ["ASK", "OTHER"]
    assert machine.state == DRAINING


def test_a_session_that_expired_takes_no_request_until_the_client_authenticates_again(
    machine: ServerConnection, security: Security, timers: Timers, wire: Any, door: Any
) -> None:
    security.lifetime = 60_000
    pass_through(machine)
    assert [wait_ms for wait_ms, _ in timers.set] == [60_000]
    timers.ring()
    timers.now_ns = 60_000_000_000
    pass_through(machine)
    machine.feed(memoryview(wire.heartbeat(1)))
    assert len(door.seen) == 1
    timers.ring()
    machine.feed(memoryview(wire.heartbeat(1)))
    assert (machine.state, len(door.seen)) == (DRAINING, 1)


def test_without_a_lifetime_the_broker_answers_later_sasl(machine: ServerConnection, door: Any) -> None:
    pass_through(machine)
    machine.feed(memoryview(frame(SaslHandshakeRequest("ASK"), 1)))
    assert [type(request).__name__ for request, _ in door.seen] == ["SaslHandshakeRequest"]


def test_tokens_without_headers_follow_an_old_handshake(machine: ServerConnection, wire: Any, door: Any) -> None:
    assert ask(machine, SaslHandshakeRequest("ASK"), 0).error_code == 0
    for token, expected in ((b"alice", b"say please"), (b"please", b"thanks")):
        machine.feed(memoryview(struct.pack(">i", len(token)) + token))
        assert b"".join(map(bytes, machine.output)) == struct.pack(">i", len(expected)) + expected  # type: ignore[arg-type]
        machine.output.clear()
    machine.feed(memoryview(wire.heartbeat(1)))
    assert door.seen[0][1].principal == Principal("User", "alice")


def test_reading_goes_on_behind_a_last_token_that_has_no_answer(
    machine: ServerConnection, security: Security, threads: Threads, wakes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As GSSAPI's is, whose mechanism blocks: what its client sends behind it was not read."""
    security.blocks = True
    monkeypatch.setattr(sasl_server, "SILENT", "ASK")
    monkeypatch.setattr(Mechanism, "evaluate", proved_without_a_word)
    ask(machine, SaslHandshakeRequest("ASK"), 0)
    machine.feed(memoryview(b"\0\0\0\x05alice"))
    wakes.clear()
    assert not machine.wants_data
    threads.run()
    assert (machine.wants_data, list(machine.output), wakes) == (True, [], ["wake"])
    assert ask(machine, ApiVersionsRequest(), 0).error_code == 0


def proved_without_a_word(mechanism: Mechanism, message: bytes) -> bytes:
    mechanism.principal = Principal("User", message.decode())
    return b""


@pytest.mark.parametrize("size", [-1, 101])
def test_a_token_without_headers_has_a_bound(machine: ServerConnection, size: int) -> None:
    ask(machine, SaslHandshakeRequest("ASK"), 0)
    machine.feed(memoryview(struct.pack(">i", size)))
    assert machine.state == DRAINING


def test_a_lost_connection_has_no_timer_left(machine: ServerConnection, security: Security, timers: Timers) -> None:
    security.lifetime = 60_000
    pass_through(machine)
    machine.lost()
    assert timers.cancelled == 1
