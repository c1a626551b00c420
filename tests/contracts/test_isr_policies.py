"""What every ISR policy promises, asked by way of the kernel, as a broker asks."""

from __future__ import annotations

from typing import Any

import pytest

from logkernel.config.broker import BrokerConfig
from logkernel.contracts import FollowerFacts, IsrPolicy
from logkernel.kernel import Kernel

LAG_MS = 30_000
LONG_AGO = 10**9


@pytest.fixture(params=["time", "messages"])
def policy(request: pytest.FixtureRequest) -> IsrPolicy:
    kernel = Kernel()
    config = BrokerConfig.load(None, (), kernel.declarations())
    return kernel.isr(request.param, config.topic_settings().plugin)


def facts(lag_records: int | None, age_ms: int, *, is_member: bool = True) -> FollowerFacts:
    return FollowerFacts(2, is_member, lag_records, age_ms, age_ms, LAG_MS)


def test_its_name_is_one_that_a_topic_may_choose() -> None:
    assert {"time", "messages"} <= set(Kernel().names("isr"))


@pytest.mark.parametrize(
    ("known", "in_sync"),
    [
        (facts(0, LONG_AGO), True),
        (facts(0, 0, is_member=False), True),
        (facts(1, LAG_MS), True),
        (facts(1, LONG_AGO), False),
        (facts(None, LAG_MS), True),
        (facts(None, LONG_AGO), False),
    ],
    ids=["idle", "joins", "a little behind", "dead", "not heard yet", "never heard"],
)
def test_it_keeps_who_keeps_up_and_drops_who_is_dead(policy: IsrPolicy, known: FollowerFacts, in_sync: bool) -> None:
    assert policy.is_in_sync(known) is in_sync
    assert policy.is_in_sync(known) is in_sync, "the same facts give the same answer"


def test_a_replica_that_stays_away_costs_no_liveness(policy: IsrPolicy) -> None:
    """Whatever a member lags by: once nothing came of it for long, it leaves, or acks=all would wait for ever."""
    ages: list[Any] = [policy.is_in_sync(facts(lag, LONG_AGO)) for lag in (1, 10, 10**6)]
    assert ages == [False, False, False]
