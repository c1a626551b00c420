"""Clients that a broker refuses, or that refuse the broker: each call ends with the reason, not with its time limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import logkernel
from logkernel import aio
from logkernel.errors import (
    ConfigError,
    IllegalSaslState,
    SaslAuthenticationFailed,
    SslAuthenticationException,
    UnsupportedSaslMechanism,
)
from logkernel.plugins.transport.tcp.transport import TcpTransport
from logkernel.table import open_source

REFUSALS = [
    SaslAuthenticationFailed("the broker says no; check user and password"),
    UnsupportedSaslMechanism("it knows PLAIN; set sasl.mechanism"),
    IllegalSaslState("it was asked twice; report it"),
    SslAuthenticationException("the certificate has expired; renew it"),
    ConfigError("ssl.truststore.location='gone.pem': there is no such file; check the path"),
]
SERVERS = "127.0.0.1:9,127.0.0.1:10"

pytestmark = pytest.mark.timeout(60)  # the time limits of the calls are twice as long, and more
LIMITS: dict[str, Any] = {"request_timeout_ms": 120_000}


class Door:
    """The transport's connections: refused as long as there is an `error`."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.raises = True
        """Whether a request that meets it raises, or is answered so."""

    def check(self, host: str, port: int) -> None:
        if self.error is not None:
            raise type(self.error)(str(self.error))


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Door:
    made = Door()
    connect, connect_async = TcpTransport.connect, TcpTransport.connect_async

    def blocking(self: Any, host: str, port: int, settings: Any) -> Any:
        made.check(host, port)
        return connect(self, host, port, settings)

    async def on_loop(self: Any, host: str, port: int, settings: Any) -> Any:
        made.check(host, port)
        return await connect_async(self, host, port, settings)

    monkeypatch.setattr(TcpTransport, "connect", blocking)
    monkeypatch.setattr(TcpTransport, "connect_async", on_loop)
    return made


@pytest.fixture(params=REFUSALS, ids=lambda error: type(error).__name__)
def refused(door: Door, request: pytest.FixtureRequest) -> Any:
    door.error = request.param
    return request.param


@pytest.fixture
def once(door: Door) -> Exception:
    door.error = REFUSALS[0]
    return REFUSALS[0]


def send(log: Any, **settings: Any) -> Any:
    with log.producer(max_block_ms=120_000, delivery_timeout_ms=300_000, **LIMITS, **settings) as producer:
        return producer.send("t", b"v").result(120)


def poll(log: Any, **settings: Any) -> Any:
    with log.consumer("t", default_api_timeout_ms=120_000, **LIMITS, **settings) as consumer:
        return consumer.poll(120)


def asked(log: Any, ask: Callable[[Any], Any], **settings: Any) -> Any:
    with log.consumer(default_api_timeout_ms=120_000, **LIMITS, **settings) as consumer:
        consumer.assign([("t", 0)])
        return ask(consumer)


def administer(log: Any) -> Any:
    with log.admin(default_api_timeout_ms=120_000, **LIMITS) as admin:
        return admin.list_topics()


CALLS: dict[str, Callable[[Any], Any]] = {
    "send": send,
    "send without idempotence": lambda log: send(log, enable_idempotence=False),
    "init_transactions": lambda log: log.producer(
        transactional_id="x", max_block_ms=120_000, delivery_timeout_ms=300_000, **LIMITS
    ).init_transactions(),
    "partitions_for of a producer": lambda log: log.producer(
        max_block_ms=120_000, delivery_timeout_ms=300_000, **LIMITS
    ).partitions_for("t"),
    "poll": poll,
    "poll in a group": lambda log: poll(log, group="g"),
    "poll in a KIP-848 group": lambda log: poll(log, group="g", group_protocol="consumer"),
    "position": lambda log: asked(log, lambda consumer: consumer.position(("t", 0))),
    "end_offsets": lambda log: asked(log, lambda consumer: consumer.end_offsets([("t", 0)])),
    "committed": lambda log: asked(log, lambda consumer: consumer.committed([("t", 0)]), group_id="g"),
    "commit": lambda log: asked(log, lambda consumer: consumer.commit({("t", 0): 5}), group_id="g"),
    "partitions_for of a consumer": lambda log: asked(log, lambda consumer: consumer.partitions_for("t")),
    "an operation of admin": administer,
    "topics of a log": lambda log: log.topics(),
    "table": lambda log: log.table("t").read_all(),
}


@pytest.mark.parametrize("call", CALLS)
def test_each_call_ends_with_the_reason(once: Exception, call: str) -> None:
    with logkernel.connect(SERVERS) as log, pytest.raises(type(once), match="check user and password"):
        CALLS[call](log)


@pytest.mark.parametrize("call", ["send", "poll", "an operation of admin", "topics of a log"])
def test_each_reason_ends_a_call(refused: Exception, call: str) -> None:
    with logkernel.connect(SERVERS) as log, pytest.raises(type(refused)) as raised:
        CALLS[call](log)
    assert str(refused) in str(raised.value)


@pytest.mark.parametrize("call", ["send", "poll", "poll in a group", "an operation of admin", "topics of a log"])
def test_the_text_names_the_broker(once: Exception, call: str) -> None:
    with logkernel.connect(SERVERS) as log, pytest.raises(type(once), match=r"^127\.0\.0\.1:(9|10): the broker says"):
        CALLS[call](log)


def test_a_source_of_tables_that_waits_for_brokers_does_not_wait_for_one_that_refuses(refused: Exception) -> None:
    source = open_source(bootstrap=SERVERS, patient=True)
    with pytest.raises(type(refused)):
        source.topics()
    source.close()


async def send_async(log: Any) -> Any:
    async with log.producer(max_block_ms=120_000, delivery_timeout_ms=300_000) as producer:
        return await (await producer.send("t", b"v"))


async def poll_async(log: Any) -> Any:
    async with log.consumer("t") as consumer:
        return await consumer.poll(120)


async def administer_async(log: Any) -> Any:
    async with log.admin(default_api_timeout_ms=120_000) as admin:
        return await admin.list_topics()


@pytest.mark.parametrize("call", [send_async, poll_async, administer_async, lambda log: log.topics()])
def test_calls_of_asyncio_end_with_the_reason(refused: Exception, call: Callable[[Any], Any]) -> None:
    async def run() -> None:
        async with aio.connect(SERVERS) as log:
            await call(log)

    with pytest.raises(type(refused)) as raised:
        asyncio.run(run())
    assert str(refused) in str(raised.value)


@pytest.fixture
def served() -> Iterator[str]:
    with logkernel.open() as log:
        log.create_topic("t")
        yield log.listen()


@pytest.mark.parametrize("settings", [{}, {"group": "g"}, {"group": "g", "group_protocol": "consumer"}])
def test_a_consumer_goes_on_once_it_is_let_in(door: Door, served: str, settings: dict[str, Any]) -> None:
    with logkernel.connect(served) as log:
        send(log)
        door.error = REFUSALS[0]
        with log.consumer("t", auto_offset_reset="earliest", **settings) as consumer:
            with pytest.raises(SaslAuthenticationFailed):
                consumer.poll(60)
            door.error = None
            rows: list[Any] = []
            while not rows:
                try:
                    rows = consumer.poll(60)
                except SaslAuthenticationFailed:
                    continue  # of an attempt before
            assert [row.value for row in rows] == [b"v"]


def test_an_admin_client_goes_on_once_it_is_let_in(door: Door, served: str) -> None:
    door.error = REFUSALS[0]
    with logkernel.connect(served) as log, log.admin() as admin:
        with pytest.raises(SaslAuthenticationFailed):
            admin.list_topics()
        door.error = None
        while True:
            try:
                assert "t" in admin.list_topics()
                break
            except SaslAuthenticationFailed:
                continue


def test_records_that_were_sent_before_fail_when_their_leader_refuses(door: Door, served: str) -> None:
    """The connection breaks, and the next one is refused: the records in the line are told so."""
    with logkernel.connect(served) as log:
        settings = {"max_block_ms": 120_000, "delivery_timeout_ms": 300_000, "connections_max_idle_ms": 100}
        with log.producer(enable_idempotence=False, **settings, **LIMITS) as producer:
            producer.send("t", b"first").result(120)
            door.error = REFUSALS[0]
            while producer.metrics()["connection-count"]:  # until it was idle for long enough
                time.sleep(0.01)
            assert isinstance(producer.send("t", b"next").exception(120), SaslAuthenticationFailed)


class Ended:
    """The answer to a request whose channel was closed with this error."""

    correlation_id = None

    def __init__(self, error: Exception) -> None:
        self._error = error

    def result(self) -> Any:
        raise self._error


class Tired:
    """A channel that stood, and is refused when it authenticates again, with the request that it was to send."""

    def __init__(self, channel: Any, door: Door) -> None:
        self._channel = channel
        self._door = door
        self.failure: Exception | None = None

    def send(self, *args: Any, **how: Any) -> Any:
        if self._door.error is not None:
            self._channel.close()
            self.failure = type(self._door.error)(str(self._door.error))
            if self._door.raises:
                raise self.failure
            return Ended(self.failure)
        return self._channel.send(*args, **how)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)


@pytest.fixture
def tiring(monkeypatch: pytest.MonkeyPatch) -> Door:
    """What channels that stand are refused with."""
    made = Door()
    connect, connect_async = TcpTransport.connect, TcpTransport.connect_async

    async def on_loop(self: Any, host: str, port: int, settings: Any) -> Any:
        return Tired(await connect_async(self, host, port, settings), made)

    monkeypatch.setattr(TcpTransport, "connect", lambda *args: Tired(connect(*args), made))
    monkeypatch.setattr(TcpTransport, "connect_async", on_loop)
    return made


@pytest.mark.parametrize("raises", [True, False])
def test_a_producer_outlives_an_authentication_that_fails_on_a_connection_that_stood(
    tiring: Door, served: str, raises: bool
) -> None:
    tiring.raises = raises
    with logkernel.connect(served) as log, log.producer(enable_idempotence=False) as producer:
        producer.send("t", b"first").result(120)
        tiring.error = REFUSALS[0]
        assert isinstance(producer.send("t", b"next").exception(60), SaslAuthenticationFailed)
        tiring.error = None
        sent = producer.send("t", b"last")
        while isinstance(sent.exception(60), SaslAuthenticationFailed):  # of an attempt before
            sent = producer.send("t", b"last")
        assert sent.result().offset == 1


def test_a_producer_of_asyncio_outlives_it_too(tiring: Door, served: str) -> None:
    async def run() -> None:
        async with aio.connect(served) as log, log.producer(enable_idempotence=False) as producer:
            await (await producer.send("t", b"first"))
            tiring.error = REFUSALS[0]
            with pytest.raises(SaslAuthenticationFailed):
                await (await producer.send("t", b"next"))
            tiring.error = None
            while True:
                try:
                    assert (await (await producer.send("t", b"last"))).offset == 1
                    return
                except SaslAuthenticationFailed:
                    continue  # of an attempt before

    asyncio.run(run())
