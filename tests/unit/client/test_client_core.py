"""What the core of every client does about its cluster."""

from __future__ import annotations

from random import Random

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
