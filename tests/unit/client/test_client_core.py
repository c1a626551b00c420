"""What the core of every client does about its cluster."""

from __future__ import annotations

from random import Random

import pytest

from logkernel.client.cluster.calls import ANY, Call, ClientCore
from logkernel.client.settings.producer import load_producer
from logkernel.errors import NetworkException, RequestTimedOut
from logkernel.peer.network import Connect
from logkernel.requests.cluster import MetadataResponse, MetadataResponseBroker
from logkernel.requests.groups import Coordinator, FindCoordinatorResponse


def test_a_broker_that_cannot_be_reached_has_the_others_asked_who_leads() -> None:
    """KIP-899's cousin: a leader that is gone is replaced at once, and its clients must not wait for metadata's age."""
    core = ClientCore(load_producer({"bootstrap_servers": "h:1"}), [("h", 1)], Random(1))
    core.metadata.ask(0)
    brokers = [MetadataResponseBroker(1, "h", 1), MetadataResponseBroker(2, "h", 2)]
    core.metadata_answered(MetadataResponse(brokers), None, 0)
    core.step(0, 10)
    assert not core.metadata.update_wanted
    core.network.actions.clear()
    core.network.ready(1, 10)
    (connect,) = core.network.actions
    assert isinstance(connect, Connect)
    core.network.on_lost(connect.number, NetworkException("refused"), 11)
    core.step(0, 11)
    assert core.metadata.update_wanted


def test_a_coordinator_that_cannot_be_reached_is_looked_for_anew() -> None:
    core = ClientCore(load_producer({"bootstrap_servers": "h:1"}), [("h", 1)], Random(1))
    core.metadata.ask(0)
    brokers = [MetadataResponseBroker(1, "h", 1), MetadataResponseBroker(2, "h", 2)]
    core.metadata_answered(MetadataResponse(brokers), None, 0)
    key = ("transaction", "tx")
    assert core.coordinator(key, 10_000) is None
    (call,) = core.calls
    core.calls.clear()
    call.done(FindCoordinatorResponse(coordinators=[Coordinator(key="tx", node_id=2, host="h", port=2)]), None)
    core.step(0, 10)
    assert core.coordinator(key, 10_000) == 2
    core.network.actions.clear()
    core.network.ready(2, 10)
    (connect,) = core.network.actions
    assert isinstance(connect, Connect)
    core.network.on_lost(connect.number, NetworkException("refused"), 11)
    core.step(0, 11)
    assert core.coordinator(key, 10_000) is None
    assert len(core.calls) == 1


def test_a_call_that_ran_out_of_time_says_why_no_broker_was_reached() -> None:
    core = ClientCore(load_producer({"bootstrap_servers": "h:1"}), [("h", 1)], Random(1))
    ended: list[Exception | None] = []
    core.call(Call(ANY, "request", 1_000, lambda response, error: ended.append(error)))
    core.step(0, 0)
    (connect,) = core.network.actions
    core.network.on_lost(connect.number, NetworkException("connection to h:1: nobody is there"), 10)
    core.step(0, 20)
    assert ended == []
    core.step(0, 1_000)
    assert isinstance(ended[0], RequestTimedOut)
    assert "nobody is there" in str(ended[0])


def connected(core: ClientCore, at_ms: int) -> Connect:
    """The connection that the client makes at that time."""
    core.network.actions.clear()
    core.step(0, at_ms)
    (connect,) = core.network.actions
    assert isinstance(connect, Connect)
    core.network.on_connected(connect.number, {}, at_ms)
    core.network.send(connect.node, "request", _Nobody(), at_ms)
    return connect


def lost(core: ClientCore, error: Exception, at_ms: int) -> None:
    """A connection that is made then ends so."""
    core.network.on_lost(connected(core, at_ms).number, error, at_ms)
    core.step(0, at_ms)


class _Nobody:
    def complete(self, response: object, error: Exception | None, now_ms: int) -> None:
        pass


def test_a_client_that_no_broker_answers_says_so_once_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """A consumer that polls has no time-out whose text could tell it."""
    core = ClientCore(load_producer({"bootstrap_servers": "h:1"}), [("h", 1)], Random(1))
    lost(core, NetworkException("closed; set security.protocol"), 1_000)
    assert not caplog.records, "a broker that restarts does so, too"
    for at_ms in (5_000, 10_000, 15_000):
        lost(core, NetworkException("closed; set security.protocol"), at_ms)
    (said,) = (record.getMessage() for record in caplog.records)
    assert said == "no broker has answered, and the client goes on trying: closed; set security.protocol"


def test_why_no_broker_answers_is_known_until_one_does() -> None:
    """A listener with SASL takes a connection in plain text, and ends it at the first request."""
    core = ClientCore(load_producer({"bootstrap_servers": "h:1"}), [("h", 1)], Random(1))
    lost(core, NetworkException("closed"), 1_000)
    connect = connected(core, 5_000)
    assert str(core.network.last_loss) == "closed"
    core.network.on_response(connect.number, core.network.requests_sent - 1, "answer", 5_000)
    assert core.network.last_loss is None
