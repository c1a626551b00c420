"""What the settings of connections and of metadata do."""

from __future__ import annotations

import socket
from random import Random
from typing import Any

import pytest
from modelled import TOPIC, Faults
from producing import CALM, gaps, values, world

from logkernel.client.cluster.bootstrap import bootstrap_addresses
from logkernel.client.cluster.metadata import Metadata
from logkernel.client.drivers.thread_driver import ThreadDriver
from logkernel.client.producer.base import make_sender
from logkernel.client.settings.producer import load_producer
from logkernel.errors import ConfigError, NetworkException
from logkernel.kernel import Kernel
from logkernel.peer.network import Close, Connect
from logkernel.requests.cluster import MetadataRequest, MetadataResponse, MetadataResponseBroker
from logkernel.requests.data import ProduceRequest

# ---------------------------------------------------------------- connections


@pytest.mark.setting("bootstrap.servers")
def test_the_first_connection_goes_to_a_bootstrap_server() -> None:
    made = world()
    made.turn(1)
    assert [(action.host, action.port) for _, action in made.actions(Connect)] == [("host", 1)]
    assert bootstrap_addresses(load_producer({"bootstrap_servers": "a:1,b:2,[::1]:3,d"})) == [
        ("a", 1),
        ("b", 2),
        ("::1", 3),
        ("d", 9092),
    ]
    for bad in ("", "a:x", ":1", "a:0", "a:70000", ("127.0.0.1", 41035)):
        with pytest.raises(ConfigError):
            bootstrap_addresses(load_producer({"bootstrap_servers": bad}))


@pytest.mark.setting("client.dns.lookup")
def test_bootstrap_names_are_resolved_to_full_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *a, **k: [(0, 0, 0, "", ("1.1.1.1", 5)), (0, 0, 0, "", ("2.2.2.2", 5))]
    )
    monkeypatch.setattr(socket, "getnameinfo", lambda address, flags: (f"full-{address[0]}", "5"))
    lookup = "resolve_canonical_bootstrap_servers_only"
    assert bootstrap_addresses(values(bootstrap_servers="x:5")) == [("x", 5)]
    assert bootstrap_addresses(values(bootstrap_servers="x:5", client_dns_lookup=lookup)) == [
        ("full-1.1.1.1", 5),
        ("full-2.2.2.2", 5),
    ]


@pytest.mark.setting("connections.max.idle.ms")
def test_an_idle_connection_is_closed() -> None:
    for idle_ms, closed in ((2000, True), (-1, False)):
        made = world(connections_max_idle_ms=idle_ms, metadata_max_age_ms=10**9)
        made.send(0, b"v")
        made.settle()
        made.run(10_000)
        assert bool(made.actions(Close)) is closed


@pytest.mark.setting("reconnect.backoff.ms", "reconnect.backoff.max.ms")
def test_connections_that_fail_are_tried_ever_more_rarely() -> None:
    made = world(
        Faults(connect_fails=1.0, longest_ms=0),
        reconnect_backoff_ms=100,
        reconnect_backoff_max_ms=800,
        metadata_recovery_strategy="none",
        retry_backoff_ms=1,
        retry_backoff_max_ms=1,
    )
    made.run(5000)
    waits = gaps([at for at, _ in made.actions(Connect)])
    assert 75 <= waits[0] <= 130
    assert 150 <= waits[1] <= 250
    assert all(600 <= wait <= 1000 for wait in waits[4:])


@pytest.mark.setting("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms")
def test_a_connection_that_is_never_made_is_given_up() -> None:
    made = world(
        Faults(deaf=True),
        socket_connection_setup_timeout_ms=1000,
        socket_connection_setup_timeout_max_ms=3000,
        reconnect_backoff_ms=0,
        reconnect_backoff_max_ms=0,
    )
    made.run(20_000)
    limits = [action.timeout_ms for _, action in made.actions(Connect)]
    assert 800 <= limits[0] <= 1200
    assert 1600 <= limits[1] <= 2400
    assert max(limits) <= 3600
    assert abs(made.actions(Close)[0][0] - limits[0]) <= 5


@pytest.mark.setting("request.timeout.ms")
def test_no_answer_closes_the_connection() -> None:
    made = world(request_timeout_ms=700, linger_ms=0)
    made.send(0, b"v")
    made.settle()
    made.faults.silent = True
    made.send(0, b"w")
    made.run(200)
    sent_ms = made.requests(ProduceRequest)[-1][0]
    assert made.requests(ProduceRequest)[-1][1].timeout_ms == 700
    made.run(2000)
    assert made.actions(Close)[0][0] - sent_ms == 700
    CALM.silent = False


class Remembering:
    """A transport whose channels are only asked for."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}

    def connect(self, host: str, port: int, settings: Any) -> Any:
        self.settings = dict(settings)
        raise NetworkException("not here")


@pytest.mark.setting("client.id", "send.buffer.bytes", "receive.buffer.bytes")
def test_what_a_channel_is_told(monkeypatch: pytest.MonkeyPatch, eventually: Any) -> None:
    kernel, transport = Kernel(), Remembering()
    monkeypatch.setattr(kernel, "transport", lambda name: transport)
    given = values(client_id="me", send_buffer_bytes=5000, receive_buffer_bytes=6000)
    driver = ThreadDriver(make_sender(given, [("host", 1)], kernel), given, kernel, "tcp")
    driver.start()
    eventually(lambda: bool(transport.settings))
    driver.end(0)
    assert transport.settings["client.id"] == "me"
    assert transport.settings["send.buffer.bytes"] == 5000
    assert transport.settings["receive.buffer.bytes"] == 6000


# ---------------------------------------------------------------- metadata


@pytest.mark.setting("metadata.max.age.ms")
def test_metadata_is_asked_for_again_when_it_is_old() -> None:
    made = world(metadata_max_age_ms=1000, connections_max_idle_ms=-1)
    made.run(10_500)
    assert 9 <= len(made.requests(MetadataRequest)) <= 12


@pytest.mark.setting("metadata.max.idle.ms")
def test_a_topic_without_records_is_forgotten() -> None:
    made = world(metadata_max_idle_ms=5000)
    made.send(0, b"v")
    made.settle()
    made.run(4000)
    assert TOPIC in made.sender.core.metadata.topics
    made.run(60_000)
    assert TOPIC not in made.sender.core.metadata.topics


@pytest.mark.parametrize("strategy", ["rebootstrap", "none"])
@pytest.mark.setting("metadata.recovery.strategy")
def test_where_all_known_brokers_are_gone(strategy: str) -> None:
    made = world(metadata_recovery_strategy=strategy, metadata_max_age_ms=1000)
    made.run(100)
    made.faults = Faults(connect_fails=1.0, lose_request=1.0, longest_ms=0)
    made.run(60_000)
    late = [action.port for at, action in made.actions(Connect) if at > 10_000]
    assert late
    assert ({action.node for at, action in made.actions(Connect) if at > 10_000} >= {-1}) is (strategy == "rebootstrap")


@pytest.mark.setting("metadata.recovery.rebootstrap.trigger.ms")
def test_metadata_that_cannot_be_had_for_long_is_dropped() -> None:
    for trigger_ms, dropped in ((3000, True), (30_000, False)):
        metadata = Metadata(values(metadata_recovery_rebootstrap_trigger_ms=trigger_ms), [("host", 1)], Random(1))
        metadata.ask(0)
        metadata.on_response(MetadataResponse([MetadataResponseBroker(7, "far", 9)]), 0)
        for now_ms in range(1000, 6000, 1000):
            metadata.request_update()
            metadata.ask(now_ms)
            metadata.on_failure(now_ms)
        assert (metadata.brokers == {-1: ("host", 1)}) is dropped
