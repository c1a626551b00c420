"""The tables of both ISR policies' docstrings, and that each is the kernel's under its name."""

from __future__ import annotations

from typing import Any

import pytest

from logkernel.config.broker import BrokerConfig
from logkernel.contracts import FollowerFacts, IsrPolicy
from logkernel.errors import InvalidConfig, PluginError
from logkernel.kernel import Kernel
from logkernel.plugins.isr import lag_messages, lag_time

LAG_MS = 30_000
LATER = LAG_MS + 1
LAST = 4_000
MORE = LAST + 1
TIME, MESSAGES = lag_time.LagTime(), lag_messages.LagMessages(LAST)


def facts(**known: Any) -> FollowerFacts:
    usual = {"node": 2, "is_member": True, "lag_records": 0, "caught_up_ms": 0, "fetched_ms": 0}
    return FollowerFacts(**{**usual, **known}, lag_time_max_ms=LAG_MS)


@pytest.mark.parametrize(
    ("policy", "known", "in_sync"),
    [
        (TIME, {"lag_records": 0, "caught_up_ms": 10**9}, True),
        (TIME, {"lag_records": 10**9, "caught_up_ms": LAG_MS}, True),
        (TIME, {"lag_records": 1, "caught_up_ms": LATER}, False),
        (TIME, {"lag_records": None, "caught_up_ms": LATER}, False),
        (TIME, {"is_member": False, "lag_records": 10**9, "caught_up_ms": 10**9}, True),
        (MESSAGES, {"lag_records": 0, "fetched_ms": 10**9}, True),
        (MESSAGES, {"lag_records": LAST, "fetched_ms": LAG_MS, "caught_up_ms": 10**9}, True),
        (MESSAGES, {"lag_records": 1, "fetched_ms": LATER}, False),
        (MESSAGES, {"lag_records": MORE}, False),
        (MESSAGES, {"lag_records": MORE, "is_member": False}, False),
        (MESSAGES, {"lag_records": None, "fetched_ms": LAG_MS}, True),
        (MESSAGES, {"lag_records": None, "fetched_ms": LATER}, False),
    ],
)
def test_a_policy_judges_as_its_table_says(policy: IsrPolicy, known: dict[str, Any], in_sync: bool) -> None:
    assert isinstance(policy, IsrPolicy)
    assert policy.is_in_sync(facts(**known)) is in_sync


def test_a_topic_names_its_policy_and_how_many_records_it_may_lag() -> None:
    kernel = Kernel()
    config = BrokerConfig.load(None, {"replica.lag.max.messages": "70"}, kernel.declarations())
    assert config.topic_settings().isr == "time"
    for own, lag in ({}, 70), ({"replica.lag.max.messages": "7"}, 7):
        settings = config.topic_settings({"isr": "messages", **own})
        policy = kernel.isr(settings.isr, settings.plugin)
        assert policy.is_in_sync(facts(lag_records=lag))
        assert not policy.is_in_sync(facts(lag_records=lag + 1))
    with pytest.raises(InvalidConfig, match="time"):
        config.validate_topic({"isr": "none such"})
    with pytest.raises(InvalidConfig):
        config.validate_topic({"replica.lag.max.messages": "-1"})
    with pytest.raises(PluginError, match="messages, time"):
        kernel.isr("none such", {})
