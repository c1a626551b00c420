"""What `cluster check` finds, of facts made by hand: one thing is wrong in each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from attrs import evolve

from logkernel.cli.cluster_findings import ERROR, NOTE, WARNING, Facts, Finding, View, find, lasting
from logkernel.cli.partition_health import OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED
from logkernel.client.admin.topics import PartitionDescription, TopicDescription
from logkernel.vocabulary import TopicPartition

ROOT = Path(__file__).resolve().parents[3]
ADDRESSES = {1: ("h1:9092",), 2: ("h2:9092",), 3: ("h3:9092",)}
ORDERS = TopicPartition("orders", 0)
MAX_LAG = 100


def row(index: int = 0, leader: int = 1, epoch: int = 5, **parts: Any) -> PartitionDescription:
    replicas = parts.get("replicas", (1, 2, 3))
    return PartitionDescription(index, leader, epoch, replicas, parts.get("isr", replicas))


def topics(*rows: PartitionDescription, number: int = 7) -> dict[str, TopicDescription]:
    return {"orders": TopicDescription("orders", UUID(int=number), False, rows or (row(),))}


def view(
    told: Mapping[str, TopicDescription] | None = None,
    *,
    controller: int = 1,
    brokers: Mapping[int, tuple[str, ...]] = ADDRESSES,
    cluster: str = "c",
) -> View:
    return View(cluster, controller, brokers, topics() if told is None else told)


def facts(kept: View | None = None, second: View | None = None, **parts: Any) -> Facts:
    """Three brokers that agree, but for the second one, if given."""
    same = view() if kept is None else kept
    views = {1: same, 2: second or same, 3: same}
    return Facts(**{"views": views, "kept": same, **parts})


def found(given: Facts) -> list[tuple[str, str, str]]:
    return [(each.severity, each.kind, each.about) for each in find(given, MAX_LAG)]


def only(given: Facts) -> Finding:
    (finding,) = find(given, MAX_LAG)
    assert finding.remedy
    return finding


def test_a_cluster_that_is_whole_has_no_findings() -> None:
    assert found(facts(min_isr={"orders": 2}, ends={(node, ORDERS): 9 for node in (1, 2, 3)})) == []


def test_nobody_is_there() -> None:
    assert found(Facts({})) == [(ERROR, "no-brokers", "cluster")]


def test_a_broker_that_is_registered_and_does_not_answer() -> None:
    given = facts(views={1: view(), 3: view()}, silent={2: "RequestTimedOut"})
    assert found(given) == [(ERROR, "broker-unreachable", "broker 2")]
    assert "RequestTimedOut" in only(given).what


def test_a_broker_that_is_not_registered_and_holds_replicas() -> None:
    alive = view(brokers={1: ("h1:9092",), 2: ("h2:9092",)})
    assert found(Facts({1: alive, 2: alive}, kept=alive)) == [(ERROR, "broker-down", "broker 3")]


def test_a_broker_of_another_cluster() -> None:
    assert found(facts(second=view(cluster="other"))) == [(ERROR, "cluster-id", "broker 2")]


def test_there_is_no_controller() -> None:
    assert found(facts(view(controller=-1))) == [(ERROR, "no-controller", "cluster")]


@pytest.mark.parametrize("named", [3, -1])
def test_a_broker_that_names_another_controller_or_none(named: int) -> None:
    assert found(facts(second=view(controller=named))) == [(ERROR, "controller-differs", "broker 2")]


def test_a_broker_that_does_not_know_another() -> None:
    given = facts(second=view(brokers={1: ("h1:9092",), 2: ("h2:9092",)}))
    assert found(given) == [(WARNING, "broker-unknown", "broker 2")]
    assert "broker 3" in only(given).what


def test_a_broker_that_takes_a_dead_one_for_alive() -> None:
    assert found(facts(second=view(brokers={**ADDRESSES, 4: ("h4:1",)}))) == [(WARNING, "broker-gone", "broker 2")]


def test_a_broker_that_has_another_address_for_one() -> None:
    given = facts(second=view(brokers={**ADDRESSES, 3: ("elsewhere:1",)}))
    assert found(given) == [(WARNING, "endpoint-differs", "broker 2")]


def test_a_broker_names_one_of_several_registered_addresses() -> None:
    kept = view(brokers={**ADDRESSES, 3: ("h3:9092", "h3:9093")})
    inner = view(brokers={**ADDRESSES, 3: ("h3:9093",)})
    assert found(Facts({1: inner, 2: inner, 3: inner}, kept=kept)) == []


def test_a_topic_that_a_broker_does_not_know() -> None:
    assert found(facts(second=view({}))) == [(WARNING, "topic-unknown", "broker 2")]


def test_a_topic_that_only_a_broker_knows() -> None:
    given = facts(second=view({**topics(), "gone": TopicDescription("gone", UUID(int=1), False, (row(),))}))
    assert found(given) == [(WARNING, "topic-gone", "broker 2")]


def test_a_topic_that_has_another_id_on_a_broker() -> None:
    assert found(facts(second=view(topics(number=8)))) == [(ERROR, "topic-id", "broker 2")]


@pytest.mark.parametrize(
    "older",
    [row(epoch=4), row(leader=-1), row(isr=(1, 2)), row(replicas=(1, 2, 4), isr=(1, 2, 3))],
    ids=["epoch", "leader", "in sync", "replicas"],
)
def test_a_broker_whose_metadata_is_behind(older: PartitionDescription) -> None:
    assert found(facts(second=view(topics(older)))) == [(WARNING, "metadata-behind", "broker 2")]


def test_a_finding_names_a_few_of_many() -> None:
    given = facts(view(topics(*map(row, range(9)))), view(topics(*(row(index, epoch=4) for index in range(9)))))
    assert "orders-2 (leader epoch 4, and it is 5) and 6 more" in only(given).what


def test_a_broker_that_is_ahead_of_the_coordination() -> None:
    assert found(facts(second=view(topics(row(epoch=6))))) == [(ERROR, "metadata-ahead", "broker 2")]


def test_two_leaders_in_one_epoch() -> None:
    assert found(facts(second=view(topics(row(leader=3))))) == [(ERROR, "leader-differs", "broker 2")]


def test_a_partition_that_never_had_a_leader_is_not_compared() -> None:
    kept = view(topics(row(leader=-1, epoch=-1)))
    told = view(topics(row(leader=-1, epoch=0)))
    assert found(Facts({1: told}, kept=kept)) == [(ERROR, "offline", "orders-0")]


def test_a_log_directory_that_is_offline() -> None:
    given = facts(failed_directories={2: {"/srv/a": "KafkaStorageError"}})
    assert found(given) == [(ERROR, "log-directory", "broker 2")]
    assert "/srv/a" in only(given).what


def test_a_partition_without_a_leader() -> None:
    given = facts(view(topics(row(leader=-1, isr=(2,)))))
    assert found(given) == [(ERROR, "offline", "orders-0")]
    assert "--election unclean" in only(given).remedy


def test_a_partition_under_min_isr() -> None:
    given = facts(view(topics(row(isr=(1,)))), min_isr={"orders": 2}, ends={(1, ORDERS): 9, (2, ORDERS): 4})
    assert found(given) == [(ERROR, "under-min-isr", "orders-0")]
    assert "broker 2 (5 records behind), broker 3 (lag not known)" in only(given).what


def test_an_under_replicated_partition_tells_who_is_down() -> None:
    alive = view(topics(row(isr=(1, 2))), brokers={1: ("h1:9092",), 2: ("h2:9092",)})
    down, partition = find(Facts({1: alive, 2: alive}, kept=alive), MAX_LAG)
    assert (down.kind, partition.kind, partition.severity) == ("broker-down", "under-replicated", WARNING)
    assert partition.what == "lacks broker 3 (down)"


def test_a_follower_in_sync_that_is_far_behind() -> None:
    ends = {(1, ORDERS): 500, (2, ORDERS): 400, (3, ORDERS): 399}
    assert found(facts(ends=ends)) == [(WARNING, "follower-lag", "orders-0 on broker 3")]


def test_what_is_under_way_is_noted() -> None:
    given = facts(deleting=("old",), moving={ORDERS: ((4,), (1,))})
    assert found(given) == [(NOTE, "deleting", "old"), (NOTE, "reassigning", "orders-0")]


def test_the_worst_comes_first() -> None:
    given = facts(view(topics(row(leader=-1))), deleting=("old",), views={1: view(topics(row(leader=-1)))})
    assert [each.severity for each in find(given, MAX_LAG)] == [ERROR, NOTE]


def test_the_page_names_every_kind() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").partition("names the kind of each finding")[2]
    table = page.partition("\n## ")[0]
    named = {
        name for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`([\w-]+)`", row)
    }
    source = (ROOT / "core" / "logkernel" / "cli" / "cluster_findings.py").read_text(encoding="utf-8")
    written = set(re.findall(r'"([a-z]+(?:-[a-z]+)+|deleting|reassigning)"', source))
    assert named == written | {OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED}


# ---------------------------------------------------------------- without a coordination


def test_without_a_coordination_the_largest_leader_epoch_counts() -> None:
    """The controller itself may be the one that is behind."""
    given = Facts({1: view(topics(row(epoch=4))), 2: view(), 3: view()})
    assert found(given) == [(WARNING, "metadata-behind", "broker 1")]


def test_without_a_coordination_most_brokers_say_who_is_the_controller() -> None:
    given = Facts({1: view(), 2: view(controller=2), 3: view()})
    assert found(given) == [(ERROR, "controller-differs", "broker 2")]


# ---------------------------------------------------------------- seen twice


def test_what_may_pass_counts_if_it_was_seen_before() -> None:
    behind = find(facts(second=view(topics(row(epoch=4)))), MAX_LAG)
    disk = find(facts(failed_directories={2: {"/srv/a": "KafkaStorageError"}}), MAX_LAG)
    assert lasting([], behind + disk) == disk
    assert lasting(behind, behind) == behind
    other = [evolve(behind[0], about="broker 3")]
    assert lasting(other, behind) == []


def ahead(*partitions: int) -> list[Finding]:
    """What is found where broker 2 has these partitions in a newer epoch."""
    mine = topics(*(row(index, epoch=6 if index in partitions else 5) for index in range(3)))
    return find(facts(view(topics(*map(row, range(3)))), view(mine)), MAX_LAG)


def test_another_partition_ahead_in_each_look_is_a_rolling_restart() -> None:
    """It was told as a coordination that was restored from an old copy."""
    assert lasting(lasting(ahead(0), ahead(1)), ahead(2)) == []
    (stays,) = lasting(lasting(ahead(0, 1), ahead(1)), ahead(1, 2))
    assert "keeps of orders-1 (leader epoch 6, and it is 5)" in stays.what
    assert "orders-2" not in stays.what


def test_another_broker_that_is_not_known_in_each_look_may_pass() -> None:
    def unknown(node: int) -> list[Finding]:
        return find(facts(second=view(brokers={each: at for each, at in ADDRESSES.items() if each != node})), MAX_LAG)

    assert lasting(unknown(1), unknown(3)) == []
    assert lasting(unknown(3), unknown(3)) == unknown(3)
