"""The table of `client.network`: each state and event."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from logkernel.client.settings.producer import load_producer
from logkernel.errors import NetworkException, SaslAuthenticationFailed, UnsupportedVersion
from logkernel.peer.backoff import Backoff
from logkernel.peer.network import CONNECTING, DOWN, UP, Close, Connect, Network, Transmit
from logkernel.requests.data import ProduceResponse


class Heard:
    def __init__(self) -> None:
        self.told: list[tuple[Any, Exception | None]] = []

    def complete(self, response: Any, error: Exception | None, now_ms: int) -> None:
        self.told.append((response, error))


@pytest.fixture
def network() -> Network:
    made = Network(load_producer({"bootstrap_servers": "h:1"}), Random(1))
    made.learn({1: ("h", 1), 2: ("h", 2)}, 0)
    return made


def up(network: Network, node: int = 1, now_ms: int = 0) -> int:
    network.ready(node, now_ms)
    number = network.nodes[node].number
    network.on_connected(number, {"transaction.version": 2}, now_ms)
    network.actions.clear()
    return number


def test_a_connection_is_made_when_it_is_needed(network: Network) -> None:
    assert not network.ready(1, 0)
    assert not network.ready(1, 0)
    assert [type(action) for action in network.actions] == [Connect]
    assert network.nodes[1].state == CONNECTING
    network.on_connected(network.nodes[1].number, {}, 5)
    assert network.ready(1, 5)
    assert not network.ready(9, 0), "a node that nobody knows"


def test_a_request_and_its_response(network: Network) -> None:
    number, heard = up(network), Heard()
    network.send(1, "request", heard, 10)
    (sent,) = network.actions
    assert isinstance(sent, Transmit)
    assert network.in_flight(1) == 1
    network.on_response(number, sent.request_id, "answer", 20)
    network.on_response(number, sent.request_id, "again", 21)
    assert heard.told == [("answer", None)]
    assert network.in_flight(1) == 0


def test_a_lost_connection_tells_all_who_wait(network: Network) -> None:
    number, heard = up(network), Heard()
    network.send(1, "a", heard, 10)
    network.send(1, "b", heard, 10)
    network.on_lost(number, NetworkException("gone"), 30)
    assert [type(error) for _, error in heard.told] == [NetworkException] * 2
    assert network.nodes[1].state == DOWN
    assert not network.ready(1, 31), "back-off"
    assert network.nodes[1].state == DOWN
    network.on_response(number, 0, "late", 40)
    assert len(heard.told) == 2
    network.actions.clear()
    network.on_connected(number, {}, 50)
    assert network.actions == [Close(number)], "a connection that was given up"


def test_refusals_are_kept_once_a_node() -> None:
    """Brokers among themselves take none of them."""
    made = Network(load_producer({"bootstrap_servers": "h:1"}), Random(1))
    made.learn({1: ("h", 1), 2: ("h", 2)}, 0)
    for attempt in range(3):
        for node in (1, 2):
            made.ready(node, attempt * 10_000)
            made.on_lost(made.nodes[node].number, SaslAuthenticationFailed(f"no {attempt}"), attempt * 10_000)
    assert {node: str(error) for node, error in made.refusals.items()} == {1: "h:1: no 2", 2: "h:2: no 2"}


def test_a_request_that_cannot_be_sent_leaves_the_connection(network: Network) -> None:
    number, heard = up(network), Heard()
    network.send(1, "a", heard, 10)
    network.on_refused(number, 0, UnsupportedVersion("no"), 10)
    assert isinstance(heard.told[0][1], UnsupportedVersion)
    assert network.nodes[1].state == UP


def test_a_broker_that_throttles_is_left_alone(network: Network) -> None:
    number, heard = up(network), Heard()
    network.send(1, "a", heard, 10)
    network.on_response(number, 0, ProduceResponse(throttle_time_ms=500), 20)
    assert not network.ready(1, 519)
    assert network.ready(1, 520)


def test_what_waits_for_a_broker_that_throttles_is_sent_when_the_time_is_over(network: Network) -> None:
    """Nothing else may happen meanwhile: the records of a producer waited for their delivery timeout."""
    number, heard = up(network), Heard()
    network.send(1, "a", heard, 10)
    network.on_response(number, 0, ProduceResponse(throttle_time_ms=500), 20)
    assert network.tick(20) == 520
    assert network.tick(519) == 520
    assert network.tick(520) != 520


def test_a_node_that_never_answers_hides_no_other(network: Network) -> None:
    """It accepts connections, so that it looks as good as one that was never asked."""
    for asked, other in ((1, 2), (2, 1)):
        now_ms = asked * 100_000
        assert network.least_loaded(now_ms) == asked
        number = up(network, asked, now_ms)
        network.send(asked, "metadata", Heard(), now_ms)
        network.on_lost(number, NetworkException("no answer"), now_ms + 30_000)
        assert network.least_loaded(now_ms + 90_000) == other


def test_the_least_loaded(network: Network) -> None:
    assert network.least_loaded(0) == 1
    up(network, 2)
    assert network.least_loaded(0) == 2, "one that is up"
    up(network, 1)
    network.send(1, "a", Heard(), 0)
    assert network.least_loaded(0) == 2
    for node in (1, 2):
        network.on_lost(network.nodes[node].number, NetworkException(), 0)
    assert network.least_loaded(1) is None
    assert network.least_loaded(100) == 1


def test_brokers_that_move_and_go(network: Network) -> None:
    up(network)
    network.learn({1: ("h", 7), 3: ("h", 3)}, 5)
    assert [type(action) for action in network.actions] == [Close]
    assert (network.nodes[1].state, network.nodes[1].port) == (DOWN, 7)
    assert set(network.nodes) == {1, 3}
    assert network.ready(1, 5) is False
    assert network.nodes[1].state == CONNECTING, "a new address is tried at once"


def test_it_says_when_to_come_again(network: Network) -> None:
    assert network.tick(0) is None
    up(network)
    assert network.tick(0) == 540_000
    network.send(1, "a", Heard(), 100)
    assert network.tick(100) == 30_100
    network.send(1, "b", Heard(), 100, timeout_ms=50)
    assert network.tick(100) == 150


@pytest.mark.parametrize(
    ("failures", "low", "high"), [(0, 80, 120), (1, 160, 240), (3, 640, 960), (4, 800, 1200), (99, 800, 1200)]
)
def test_waits_double_up_to_their_bound(failures: int, low: int, high: int) -> None:
    waits = [Backoff(100, 1000, Random(seed)).delay_ms(failures) for seed in range(100)]
    assert low <= min(waits) < max(waits) <= high


def test_no_wait_where_none_is_asked_for() -> None:
    assert Backoff(0, 0, Random(1)).delay_ms(5) == 0


def test_a_connection_is_made_anew_where_it_stood_long_enough_and_nothing_is_asked(network: Network) -> None:
    number, heard = up(network, now_ms=100), Heard()
    network.renew(1, 1_000, 1_099)
    network.send(1, "request", heard, 1_100)
    (sent,) = network.actions
    network.renew(1, 1_000, 1_101)
    assert network.nodes[1].state == UP
    assert isinstance(sent, Transmit)
    network.on_response(number, sent.request_id, "answer", 1_102)
    network.renew(1, 1_000, 1_103)
    network.renew(1, 1_000, 1_104)
    assert network.actions[1:] == [Close(number)]
    assert heard.told == [("answer", None)]
    assert network.broken == network.nodes[1].failures == 0
    assert not network.ready(1, 9_999)
    assert network.nodes[1].state == CONNECTING


def test_a_connection_that_breaks_or_cannot_be_made_is_counted_and_an_idle_one_is_not(network: Network) -> None:
    network.on_lost(up(network), NetworkException("gone"), 10)
    assert network.broken == 0
    number = up(network, now_ms=2000)
    network.send(1, "request", Heard(), 2000)
    network.on_lost(number, NetworkException("gone"), 2001)
    assert network.broken == 1
    network.ready(2, 3000)
    network.on_lost(network.nodes[2].number, NetworkException("refused"), 3001)
    assert network.broken == 2
