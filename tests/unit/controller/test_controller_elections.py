"""Brokers come and go."""

from __future__ import annotations

from uuid import UUID

import pytest

from logkernel.config.broker import BrokerConfig
from logkernel.contracts import ElectionStrategy
from logkernel.controller import election_rules
from logkernel.controller.controller import Controller
from logkernel.controller.effects import ControllerResult, LeaderChange
from logkernel.controller.image import BrokerRegistration, ClusterImage, Partition, Topic, registration_change
from logkernel.errors import PluginError
from logkernel.plugins.election.clean import Clean
from logkernel.plugins.election.unclean import Unclean

CONTROLLER = Controller(BrokerConfig.load(), 1, lambda: UUID(int=1))


def image(*rows: Partition) -> ClusterImage:
    nodes = [registration_change(BrokerRegistration(number, {"P": ("h", number)})) for number in (1, 2, 3)]
    return ClusterImage.of([*nodes, Topic("t", UUID(int=7), list(rows)).change()])


def row(isr: str, leader: int, leader_epoch: int, partition_epoch: int) -> Partition:
    return Partition((1, 2, 3), tuple(map(int, isr)), leader, leader_epoch, partition_epoch)


def after(before: ClusterImage, result: ControllerResult) -> list[Partition]:
    before.apply_all(result.changes)
    return before.topics["t"].partitions


@pytest.mark.parametrize(
    ("before", "strategy", "alive", "expected"),
    [
        (row("123", 1, 5, 9), Clean(), {2, 3}, row("23", 2, 6, 10)),
        (row("1", 1, 5, 9), Clean(), {2, 3}, row("1", -1, 6, 10)),
        (row("1", 1, 5, 9), Unclean(), {2, 3}, row("2", 2, 6, 10)),
        (row("123", 1, 5, 9), Clean(), {1, 2, 3}, row("123", 1, 5, 9)),
        (row("1", -1, 5, 9), Clean(), {2, 3}, row("1", -1, 5, 9)),
        (row("1", -1, 5, 9), Clean(), {1}, row("1", 1, 6, 10)),
    ],
)
def test_the_controller_elects_what_the_strategy_chose(
    before: Partition, strategy: ElectionStrategy, alive: set[int], expected: Partition
) -> None:
    cluster = image(before)
    result = CONTROLLER.elect(cluster, "t", strategy, alive)
    leaders = [] if before == expected else [LeaderChange("t", 0, expected.leader, 6, expected.isr)]
    assert result.effects.leaders == leaders
    assert after(cluster, result) == [expected]


def test_a_broker_goes() -> None:
    cluster = image(row("123", 1, 0, 0), row("12", 2, 3, 4), row("3", 3, 0, 0), row("1", 1, 0, 0), row("23", 3, 0, 0))
    result = CONTROLLER.broker_gone(cluster, 1, lambda topic: (Clean(), False), {1, 2, 3})
    assert [change.partition for change in result.effects.leaders] == [0, 1, 3]
    assert after(cluster, result) == [
        row("23", 2, 1, 1),
        row("2", 2, 4, 5),
        row("3", 3, 0, 0),
        row("1", -1, 1, 1),
        row("23", 3, 0, 0),
    ]


def test_the_last_of_an_isr_stays_in_it() -> None:
    cluster = image(row("1", 2, 0, 0))
    result = CONTROLLER.broker_gone(cluster, 1, lambda topic: (Clean(), False), {2, 3})
    assert after(cluster, result) == [row("1", 2, 0, 0)]


def test_a_new_incarnation_leads_in_a_new_epoch() -> None:
    cluster = image(row("1", 1, 4, 7), row("2", 2, 0, 0), row("13", -1, 2, 2))
    result = CONTROLLER.broker_started(cluster, 1, lambda topic: (Clean(), False), {2, 3})
    assert after(cluster, result) == [row("1", 1, 5, 8), row("2", 2, 0, 0), row("13", 1, 3, 3)]
    assert [(change.partition, change.leader_epoch) for change in result.effects.leaders] == [(0, 5), (2, 3)]


def test_a_broker_that_is_leaving_leads_on_while_others_come_and_settings_change() -> None:
    """It was taken for dead: a partition that only it could lead had no leader as soon as any broker started."""
    cluster = image(row("1", 1, 4, 7), row("13", -1, 2, 2))
    started = CONTROLLER.broker_started(cluster, 2, lambda topic: (Clean(), False), {3}, leaving={1})
    elected = CONTROLLER.elect(cluster, "t", Clean(), {2, 3}, leaving={1})
    for result in (started, elected):
        assert [(change.partition, change.leader) for change in result.effects.leaders] == [(1, 3)]


def test_few_changes_are_kept_one_by_one_and_many_as_one() -> None:
    few = image(row("12", 1, 0, 0), *(row("23", 2, 0, 0) for _ in range(9)))
    result = CONTROLLER.elect(few, "t", Clean(), {2, 3})
    assert [(change.kind, change.key) for change in result.changes] == [("partition", "t:0")]
    many = image(*(row("12", 1, 0, 0) for _ in range(10)))
    result = CONTROLLER.elect(many, "t", Clean(), {2, 3})
    assert [(change.kind, change.key) for change in result.changes] == [("topic", "t")]
    assert {part.leader for part in after(many, result)} == {2}


def test_an_election_without_change_keeps_nothing() -> None:
    assert CONTROLLER.elect(image(row("1", -1, 0, 0)), "t", Clean(), {2}).changes == []
    assert CONTROLLER.elect(image(row("1", 1, 0, 0)), "t", Clean(), {1}).changes == []


def test_a_broker_that_is_about_to_stop_leads_nothing_that_another_in_sync_can_lead() -> None:
    cluster = image(row("123", 1, 0, 0), row("12", 2, 3, 4), row("1", 1, 0, 0), row("23", 3, 0, 0), row("13", 1, 0, 0))
    result = election_rules.broker_leaves(cluster, 1, {2, 3}, lambda topic, index: {3} if index == 4 else ())
    assert result.response == [("t", 2), ("t", 4)]
    assert after(cluster, result) == [
        row("23", 2, 1, 1),
        row("2", 2, 4, 5),
        row("1", 1, 0, 0),
        row("23", 3, 0, 0),
        row("13", 1, 0, 0),
    ]


def test_a_partition_with_one_replica_does_not_hold_a_stop_up() -> None:
    cluster = image(Partition((1,), (1,), 1))
    assert election_rules.broker_leaves(cluster, 1, {2, 3}).response == []


def test_the_first_replica_leads_again_where_it_is_in_sync() -> None:
    cluster = image(row("123", 2, 1, 1), row("23", 2, 1, 1), row("123", 1, 0, 0), row("123", 3, 0, 0))
    names = [("t", index) for index in range(5)] + [("gone", 0)]
    result = election_rules.prefer(cluster, names, {1, 2, 3}, lambda topic, index: {1} if index == 3 else ())
    assert result.response == [("t", 1), ("t", 3)]
    assert after(cluster, result) == [row("123", 1, 2, 2), row("23", 2, 1, 1), row("123", 1, 0, 0), row("123", 3, 0, 0)]


def test_an_offline_replica_is_no_candidate_and_leaves_the_set() -> None:
    cluster = image(row("123", 1, 0, 0), row("123", 2, 0, 0), row("1", 1, 0, 0))
    offline = {0: {1}, 1: {1}, 2: {1}}
    result = election_rules.replicas_offline(
        cluster, 1, [("t", 0), ("t", 1), ("t", 2)], lambda topic: (Clean(), False), {1, 2, 3},
        lambda topic, index: offline[index],
    )  # fmt: skip
    assert after(cluster, result) == [row("23", 2, 1, 1), row("23", 2, 1, 1), row("1", -1, 1, 1)]


def test_a_strategy_that_fails_has_elected_nobody() -> None:
    class Broken:
        def elect(self, candidates: object) -> None:
            raise PluginError("it is broken; mend it")

    cluster = image(row("123", 1, 0, 0), row("23", 2, 0, 0))
    result = CONTROLLER.broker_gone(cluster, 1, lambda topic: (Broken(), False), {2, 3})
    assert after(cluster, result) == [row("123", -1, 1, 1), row("23", 2, 0, 0)]
