"""Our connection tells clients that authenticate out of turn what Apache Kafka 4.3.1 tells them: each case beside what
`tests/golden/sasl/record.py` recorded. No socket and no clock: delays and sessions end when a case says so."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from hashlib import pbkdf2_hmac
from pathlib import Path
from typing import Any

import pytest
from golden.recorded import by_case
from golden.sasl.sasl_cases import FAILURE_DELAY_MS, MECHANISMS, SESSION_MS, USERS, cases, table

from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.contracts import RequestContext
from logkernel.plugins.transport.tcp.connection import OPEN, ServerConnection
from logkernel.requests import access

GOLDEN = Path(__file__).parents[2] / "golden" / "sasl" / "kafka-4.3.1.txt"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class Timer:
    def __init__(self, due_ms: float, work: Callable[[], None]) -> None:
        self.due_ms, self.work, self.cancelled = due_ms, work, False

    def cancel(self) -> None:
        self.cancelled = True


class OurPeer:
    """A client of a `ServerConnection`, which is alone with its time."""

    def __init__(self, broker: Broker, listener: str) -> None:
        self._now_ms = 1_000.0
        self._timers: list[Timer] = []
        self._left = b""
        self._answers = b""
        self._machine = ServerConnection(
            broker, {}, connection_id=1, peer="127.0.0.1:5", client_host="127.0.0.1", listener=listener,
            max_request_bytes=1 << 20, wake=lambda: None, mute=lambda for_ms: None,
            defer=lambda action, *facts: action(*facts), security=broker.security(listener), pause=self._pause,
            offload=self._offload, mono_ns=lambda: int(self._now_ms * 1_000_000),
        )  # fmt: skip

    def _pause(self, wait_ms: float, work: Callable[[], None]) -> Timer:
        self._timers.append(Timer(self._now_ms + wait_ms, work))
        return self._timers[-1]

    def _offload(self, work: Callable[[], bytes], done: Any, limit_ms: int) -> None:
        raise AssertionError("no mechanism here blocks")

    def send(self, frames: bytes) -> None:
        self._left += frames
        self._go()

    def _go(self) -> None:
        while self._left and self._machine.state == OPEN:
            used = self._machine.feed(memoryview(bytearray(self._left)))
            self._left = self._left[used:]
            if not used:
                break
        while self._machine.output:
            part = self._machine.output.popleft()
            self._machine.sent(part)
            assert not hasattr(part, "fd")
            self._answers += bytes(part)  # type: ignore[arg-type]

    def receive(self) -> tuple[bytes, bool] | None:
        late = not self._answers and self._machine.state == OPEN
        if late:
            self.passes(FAILURE_DELAY_MS)
        if not self._answers:
            assert self._machine.state != OPEN, "neither answered nor ended"
            return None
        (size,) = struct.unpack_from(">i", self._answers)
        answer, self._answers = self._answers[4 : 4 + size], self._answers[4 + size :]
        return answer, late

    def passes(self, ms: int) -> None:
        self._now_ms += ms
        due = [timer for timer in self._timers if timer.due_ms <= self._now_ms and not timer.cancelled]
        self._timers = [timer for timer in self._timers if timer not in due]
        for timer in due:
            timer.work()
        self._go()

    def is_open(self) -> bool:
        return self._machine.state == OPEN


@pytest.fixture(scope="module")
def ours() -> Iterator[dict[str, list[str]]]:
    users = " ".join(f'user_{user}="{password}"' for user, password in USERS.items())
    settings = [
        "listeners=ONCE://127.0.0.1:0,AGAIN://127.0.0.1:0",
        "listener.security.protocol.map=ONCE:SASL_PLAINTEXT,AGAIN:SASL_PLAINTEXT",
        f"sasl.enabled.mechanisms={','.join(MECHANISMS)}",
        f"connection.failed.authentication.delay.ms={FAILURE_DELAY_MS}",
        *(f"listener.name.{name}.plain.sasl.jaas.config={PLAIN} {users};" for name in ("once", "again")),
        f"listener.name.again.connections.max.reauth.ms={SESSION_MS}",
    ]
    broker = build(None, settings, in_memory=True)
    broker.start()
    upsertion = access.ScramCredentialUpsertion(
        "ann", 1, 4096, b"salt", pbkdf2_hmac("sha256", b"wonder", b"salt", 4096)
    )
    answers: list[Any] = []
    broker.submit(access.AlterUserScramCredentialsRequest([], [upsertion]), RequestContext(), answers.append)
    assert [row.error_code for row in answers[0].results] == [0]
    yield by_case(list(table(lambda listener: OurPeer(broker, listener.upper()))))
    broker.close()


KAFKA = by_case(GOLDEN.read_text().splitlines())


def test_every_case_was_recorded() -> None:
    assert list(KAFKA) == [name for name, _, _ in cases()]


@pytest.mark.parametrize("case", KAFKA)
def test_a_client_is_told_what_kafka_tells_it(case: str, ours: dict[str, list[str]]) -> None:
    assert ours[case] == KAFKA[case]
