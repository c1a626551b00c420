"""What measures stands in the way of requests only where there is something to measure."""

from __future__ import annotations

from typing import Any

import pytest

from logkernel.broker.quotas.enforcement import Enforcement
from logkernel.broker.runtime import Runtime
from logkernel.config.broker import BrokerConfig
from logkernel.contracts import MetadataChange
from logkernel.controller.image import ClusterImage, Entity, quota_key
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
