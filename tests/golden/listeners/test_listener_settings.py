"""A broker starts with the settings of listeners with which Apache Kafka starts, and refuses what Kafka refuses.

`kafka-3.9.2.tsv` and `kafka-4.3.1.tsv` have what a Kafka said (`record.py`); OTHERWISE is where we differ, and why.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from logkernel.config.broker import BrokerConfig
from logkernel.config.inter_broker import MECHANISM, check_mechanism
from logkernel.errors import ConfigError

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from listener_cases import BASE, CASES  # noqa: E402

OLDER, NEWER = "3.9.2", "4.3.1"
STARTS = "starts"
OTHERWISE: Final = {
    "an address without a name": "it is called PLAINTEXT here",
    "every interface of IPv4": "clients are told the name of this machine, as where no host is given",
    "a port above 65535": "Kafka refuses it when it binds the port",
    "a port below 0": "Kafka refuses it when it binds the port",
    "one port of two hosts": "these are two addresses of a machine",
    "advertised without the brokers' listener": "a listener that is not advertised is told as it listens",
    "advertised as nothing": "it counts as not set, so that an override can say so",
    "an empty map": "a listener that is called like a protocol speaks that one",
    "a map without the listener": "a listener that is called like a protocol speaks that one",
    "a name with two protocols": "Kafka takes the last one: it may be the wrong one",
    "brokers by a protocol in lower case": "protocols are words, in either case",
    "brokers by a protocol whose name speaks another": "brokers of Kafka do not reach one another so",
    "brokers by a mechanism in lower case": "mechanisms are words, in either case",
    "early in lower case": "the setting has no effect here, which is warned of",
    "early by a name that nobody has": "the setting has no effect here, which is warned of",
}
ALONE: Final = {
    "brokers by nothing, and no listener is called PLAINTEXT": "a broker that stands alone needs no listener for others"
}
"""The same, of a broker that stands alone."""
BY_ONE: Final = {
    "a comma at the end": NEWER,
    "a name with two protocols, in two cases": NEWER,
    "orders by the brokers' listener": OLDER,
    "orders by a name that nobody has": OLDER,
    "orders by an empty name": OLDER,
    "orders by a listener that is not advertised": NEWER,
}
"""Where two versions differ, the one that we follow. 4.3 knows no `control.plane.listener.name` any more."""
OF_KRAFT: Final = "Controller listener with name CONTROLLER"
"""4.3 asks for the protocol of the controllers' listener as soon as another one speaks anything but PLAINTEXT."""


def answers(version: str) -> dict[str, str]:
    rows = (line.split("\t") for line in (HERE / f"kafka-{version}.tsv").read_text().splitlines())
    return {name: answer for name, answer in rows if not answer.startswith(OF_KRAFT)}


KAFKAS: Final = {version: answers(version) for version in (OLDER, NEWER)}


def kafka_starts(name: str) -> bool:
    """By both versions, or by the one that we follow."""
    if name in BY_ONE:
        return KAFKAS[BY_ONE[name]][name] == STARTS
    (starts,) = {found[name] == STARTS for found in KAFKAS.values() if name in found}
    return starts


def alone(settings: dict[str, str]) -> None:
    BrokerConfig.load(None, BASE | settings)


def in_a_cluster(settings: dict[str, str]) -> None:
    """As `ClusterMember` asks the settings when it is made."""
    config = BrokerConfig.load(None, BASE | settings)
    for listener in config.inter_broker_listeners:
        if config.security_protocol(listener).startswith("SASL"):
            enabled = config.security_settings(listener)["sasl.enabled.mechanisms"]
            check_mechanism(listener, enabled, config.get(MECHANISM))


def starts(judged: Callable[[dict[str, str]], None], name: str) -> bool:
    try:
        judged(CASES[name])
    except ConfigError as error:
        told = str(error)
    else:
        return True
    assert "; " in told or " must " in told, f"{told}: no remedy"
    return False


def test_kafka_was_asked_all_of_it() -> None:
    assert KAFKAS[OLDER].keys() == CASES.keys()
    assert KAFKAS[NEWER].keys() <= CASES.keys()
    assert OTHERWISE.keys() | ALONE.keys() | BY_ONE.keys() <= CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_broker_of_a_cluster_starts_where_kafka_does(name: str) -> None:
    assert starts(in_a_cluster, name) is (kafka_starts(name) ^ (name in OTHERWISE))


@pytest.mark.parametrize("name", CASES)
def test_a_broker_that_stands_alone_starts_where_kafka_does(name: str) -> None:
    """`inter.broker.listener.name=NONE` was found wrong only when the broker came into a cluster."""
    assert starts(alone, name) is (kafka_starts(name) ^ (name in OTHERWISE or name in ALONE))


@pytest.mark.parametrize("name", sorted(BY_ONE))
def test_where_versions_of_kafka_differ(name: str) -> None:
    assert len({found[name] == STARTS for found in KAFKAS.values()}) == 2


@pytest.mark.parametrize("name", ["advertised at one address"])
def test_one_address_of_a_proxy_for_two_listeners_is_told(name: str) -> None:
    config = BrokerConfig.load(None, BASE | CASES[name])
    assert [str(one) for one in config.advertised({}, "me")] == ["IN://a.example:1", "OUT://a.example:1"]
