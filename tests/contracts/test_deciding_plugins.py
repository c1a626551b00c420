"""The built-in plugins that decide for a broker keep their contracts: elections, ISR policies, placements, cleanup."""

from __future__ import annotations

from typing import ClassVar

import pytest

from logkernel.config.broker import BrokerConfig
from logkernel.contracts import IsrPolicy
from logkernel.kernel import Kernel
from logkernel.testing.contracts import CleanupContract, ElectionContract, IsrContract, PlacementContract
from logkernel.testing.contracts.isr import LAG_MS, facts


class TestClean(ElectionContract):
    name = "clean"


class TestUnclean(ElectionContract):
    name = "unclean"


class TestTime(IsrContract):
    name = "time"


class TestMessages(IsrContract):
    name = "messages"


class TestFewMessages(IsrContract):
    name = "messages"
    settings: ClassVar = {"replica.lag.max.messages": "2"}
    effort = 0.5


class TestKafka(PlacementContract):
    name = "kafka"


class TestModulo(PlacementContract):
    name = "modulo"


class TestDelete(CleanupContract):
    name = "delete"


class TestCompact(CleanupContract):
    name = "compact"


class TestCompactByTime(CleanupContract):
    name = "compact"
    settings: ClassVar = {"compaction.strategy": "timestamp"}
    effort = 0.5


@pytest.fixture(params=["time", "messages"])
def policy(request: pytest.FixtureRequest) -> IsrPolicy:
    kernel = Kernel()
    config = BrokerConfig.load(None, (), kernel.declarations())
    return kernel.isr(request.param, config.topic_settings().plugin)


def test_a_follower_may_be_a_little_behind_or_not_heard_of_yet(policy: IsrPolicy) -> None:
    assert policy.is_in_sync(facts(1, LAG_MS))
    assert policy.is_in_sync(facts(None, LAG_MS))
