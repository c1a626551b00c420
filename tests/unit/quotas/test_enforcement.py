"""What measures stands in the way of requests only where there is something to measure."""

from __future__ import annotations

from typing import Any

import pytest
from tests.hand_clock import HandClock

from logkernel.broker.quotas.enforcement import Enforcement
from logkernel.broker.runtime import Runtime
from logkernel.config.broker import BrokerConfig
from logkernel.contracts import ADMITTED, Admission, MetadataChange
from logkernel.controller.image import ClusterImage, Entity, quota_key
from logkernel.errors import ConfigError
from logkernel.kernel import Kernel

USER: Entity = (("user", "ann"),)


def route(request: Any, context: Any, answer: Any) -> None:
    """The router."""


@pytest.fixture
def image() -> ClusterImage:
    return ClusterImage()


@pytest.fixture
def enforcement(image: ClusterImage) -> Enforcement:
    return Enforcement(Runtime(BrokerConfig.load(), Kernel()), image)


def change(image: ClusterImage, **values: float) -> None:
    image.apply(MetadataChange("quota", quota_key(USER), values or None))


def test_without_quotas_requests_go_straight_to_the_router(enforcement: Enforcement, image: ClusterImage) -> None:
    assert enforcement.way(route) is route
    change(image, request_percentage=1.0)
    assert enforcement.way(route) is not route
    change(image)
    assert enforcement.way(route) is route


def test_quotas_of_mutations_alone_measure_no_request(enforcement: Enforcement, image: ClusterImage) -> None:
    change(image, controller_mutation_rate=1.0)
    assert enforcement.way(route) is route


# ---------------------------------------------------------------- connections

RATE = "max.connection.creation.rate"


def admitted(image: ClusterImage, settings: dict[str, str], times: int, *, of_brokers: bool = False) -> Admission:
    """What is done with the last of so many connections to the listener INSIDE."""
    enforcement = Enforcement(Runtime(BrokerConfig.load(None, settings), Kernel(), clock=HandClock()), image)
    enforcement.way(route)
    return [enforcement.admit("INSIDE", "10.0.0.1", of_brokers=of_brokers) for _ in range(times)][-1]


def test_without_rates_nobody_waits(image: ClusterImage) -> None:
    assert admitted(image, {}, 1_000) is ADMITTED


def test_the_brokers_rate_is_not_for_a_listener_of_brokers(image: ClusterImage) -> None:
    assert admitted(image, {RATE: "1"}, 10) == ADMITTED
    assert admitted(image, {RATE: "1"}, 11) == Admission(1_000)
    assert admitted(image, {RATE: "1"}, 11, of_brokers=True) == ADMITTED


def test_a_listeners_own_rate_is_for_it_alone(image: ClusterImage) -> None:
    assert admitted(image, {f"listener.name.inside.{RATE}": "1"}, 11, of_brokers=True) == Admission(1_000)
    assert admitted(image, {f"listener.name.outside.{RATE}": "1"}, 11) == ADMITTED


def test_a_listeners_own_rate_is_checked_when_it_is_given() -> None:
    with pytest.raises(ConfigError, match=f"listener.name.inside.{RATE}"):
        BrokerConfig.load(None, {f"listener.name.inside.{RATE}": "many"})


def test_an_address_has_its_own_rate(image: ClusterImage) -> None:
    image.apply(MetadataChange("quota", quota_key((("ip", "10.0.0.1"),)), {"connection_creation_rate": 1.0}))
    assert admitted(image, {}, 11) == Admission(0, 1_000)
    assert admitted(image, {"quota.window.num": "3", "quota.window.size.seconds": "2"}, 5) == Admission(0, 1_000)
