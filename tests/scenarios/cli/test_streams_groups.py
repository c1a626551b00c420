"""`logkernel group describe` of a group of Kafka Streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from shells import Shell
from streams_members import NO_TASKS

import logkernel
from logkernel.contracts import MemberTasks, TaskAssignor, TaskFacts
from logkernel.hookspecs import hookimpl
from logkernel.requests.streams_groups import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)

TOPOLOGY = Topology(
    0,
    [
        Subtopology("0", ["in"], repartition_sink_topics=["app-repartition"]),
        Subtopology(
            "1",
            repartition_source_topics=[TopicInfo("app-repartition")],
            state_changelog_topics=[TopicInfo("app-changelog", 0, 1, [KeyValue("cleanup.policy", "compact")])],
        ),
    ],
)


def beat(shell: Shell, member: str, epoch: int, **more: Any) -> Any:
    if epoch == 0:
        endpoint = Endpoint(f"{member}.example", 8080)
        tags = [KeyValue("zone", "z1")]
        more = {"topology": TOPOLOGY, "process_id": f"p-{member}", "user_endpoint": endpoint, "client_tags": tags}
        more |= {"rebalance_timeout_ms": 60_000, **NO_TASKS}
    answer = shell.log.request(StreamsGroupHeartbeatRequest("app", member, epoch, **more))
    assert answer.error_code == 0, answer.error_message
    return answer


def settled(shell: Shell, *members: str) -> None:
    """Let members beat until both have what they are to have."""
    epochs = dict.fromkeys(members, 0)
    held: dict[str, Any] = {}
    for _ in range(10):
        for name in members:
            answer = beat(shell, name, epochs[name], **held.get(name, {}))
            epochs[name] = answer.member_epoch
            if answer.active_tasks is not None:
                held[name] = {role: getattr(answer, role) for role in ("active_tasks", "standby_tasks", "warmup_tasks")}


@pytest.fixture
def app(shell: Shell) -> Shell:
    shell("config set group app streams.initial.rebalance.delay.ms=0 streams.assignment.interval.ms=0")
    return shell


def test_what_keeps_a_group_from_running_is_told(app: Shell) -> None:
    beat(app, "m1", 0)
    assert app.table("group describe app --state -v")[0] == [
        "app", "1", "streams", "sticky", "NotReady", "1", "2", "2",
    ]  # fmt: skip
    assert app.table("group describe app --state")[-1] == ["app", "MISSING_SOURCE_TOPICS", "in"]
    app("topic create in --partitions 2")
    assert "MISSING_INTERNAL_TOPICS" in app("group describe app --state")
    (found,) = app.rows("group describe app")
    assert found["problems"] == [{"status": "MISSING_INTERNAL_TOPICS", "detail": "app-changelog, app-repartition"}]
    app("topic create app-repartition --partitions 2")
    app("topic create app-changelog --partitions 3")
    assert "INCORRECTLY_PARTITIONED_TOPICS" in app("group describe app --state")


def test_topology_and_tasks_are_described(app: Shell) -> None:
    app("topic create in --partitions 2")
    app("config set group app streams.num.standby.replicas=1")
    settled(app, "m1", "m2")
    assert app.table("group describe app --topology") == [
        ["app", "0", "0", "in", "-", "app-repartition", "-"],
        ["app", "0", "1", "-", "app-repartition", "-", "app-changelog"],
    ]
    assert app.table("group describe app --state") == [["app", "1", "streams", "sticky", "Stable", "2"]]
    lines = app("group describe app --members -v").splitlines()
    assert lines[0].split()[5:] == [
        "ACTIVE", "STANDBY", "WARM-UP", "TARGET-ASSIGNMENT-EPOCH", "TOPOLOGY-EPOCH", "MEMBER-EPOCH", "TARGET-ACTIVE",
        "TARGET-STANDBY", "TARGET-WARM-UP",
    ]  # fmt: skip
    assert [line.split()[:3] for line in lines[1:]] == [["app", "m1", "p-m1"], ["app", "m2", "p-m2"]]
    (found,) = app.rows("group describe app")
    assert found["problems"] == []
    second = found["topology"]["subtopologies"][1]
    assert second["changelogTopics"] == [
        {"name": "app-changelog", "partitions": 2, "replicationFactor": 1, "configs": {"cleanup.policy": "compact"}}
    ]
    assert found["members"][0]["endpoint"] == "m1.example:8080"
    assert found["members"][0]["clientTags"] == {"zone": "z1"}
    assert all(member["tasks"] == member["targetTasks"] for member in found["members"])
    active = sorted(name for member in found["members"] for name in member["tasks"]["active"])
    standby = sorted(name for member in found["members"] for name in member["tasks"]["standby"])
    assert (active, standby) == (["0_0", "0_1", "1_0", "1_1"], ["1_0", "1_1"])
    assert {member["memberEpoch"] for member in found["members"]} == {found["assignmentEpoch"]} == {found["epoch"]}


def test_tasks_on_their_way_are_told_beside_those_that_are_held(app: Shell) -> None:
    app("topic create in --partitions 2")
    settled(app, "m1")
    beat(app, "m2", 0)
    beat(app, "m1", 3, active_tasks=[TaskIds("0", [0, 1]), TaskIds("1", [0, 1])], standby_tasks=[], warmup_tasks=[])
    first, second = app.rows("group describe app")[0]["members"]
    assert second["tasks"]["active"] == []
    assert len(second["targetTasks"]["active"]) == 2
    assert first["tasks"] == first["targetTasks"]
    assert app.table("group describe app --members")[1][-3:] == ["-", "-", "-"]


def test_members_of_other_groups_stand_in_a_table_of_their_own(app: Shell) -> None:
    app("topic create in --partitions 2")
    settled(app, "m1")
    with app.log.consumer("in", group="plain", client_id="c") as consumer:
        while not consumer.assignment():
            consumer.poll(0.1)
        printed = app("group describe app plain --members -v")
    assert printed.index("WARM-UP") < printed.index("CONSUMER-ID")
    assert "in-0,in-1" in printed
    app("group describe app plain --topology", 1)
    assert app.error.strip() == (
        "logkernel: plain is a classic group, and only Streams groups have a topology; ask for its --members"
    )
    app("group describe app --members --topology", 2)
    assert "exclude one another" in app.error


class Last:
    """One member has all tasks."""

    name = "last"

    def assign(self, group: TaskFacts) -> Mapping[str, MemberTasks]:
        tasks = [(name, number) for name, count in group.tasks.items() for number in range(count)]
        return {max(group.members): MemberTasks(tasks)}


class Plugin:
    @hookimpl
    def logkernel_task_assignor(self, name: str) -> TaskAssignor | None:
        return Last() if name == "last" else None

    @hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        return [("task assignor", "last")]


def test_the_assignor_is_told_that_the_settings_choose(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was `sticky`, whichever assigned."""
    with logkernel.open(plugins=[Plugin()], group_streams_assignors="last,sticky") as log:
        address = log.listen()
        monkeypatch.setenv("LOGKERNEL_BOOTSTRAP", address)
        shell = Shell(log, address, capfdbinary, monkeypatch)
        beat(shell, "m1", 0)
        assert shell.table("group describe app --state")[0][3] == "last"
        shell("config set group app streams.assignor.name=sticky")
        assert shell.table("group describe app --state")[0][3] == "sticky"
        assert shell.rows("group describe app")[0]["assignor"] == "sticky"


def test_offsets_of_a_group_with_members_are_not_reset_and_the_remedy_is_told(app: Shell) -> None:
    """It said that the group has no such member."""
    app("topic create in --partitions 2")
    settled(app, "m1")
    app("group reset-offsets app -t in --to-earliest --execute", 1)
    assert app.error == "logkernel: NonEmptyGroup: app: the group has members; stop them first\n"
    app("group remove-members app --all", 2)
    assert app.error == "logkernel: app is a Streams group, whose members can't be removed; stop its instances\n"


def test_a_reset_says_what_it_leaves(app: Shell) -> None:
    app("topic create in --partitions 2")
    settled(app, "m1")
    assert app.log.request(StreamsGroupHeartbeatRequest("app", "m1", -1)).error_code == 0
    app("group reset-offsets app -t in --to-earliest --execute")
    assert app.error.startswith("Internal topics and state stores stay as they are;")


def test_a_group_that_is_not_ready_says_where_to_look(app: Shell) -> None:
    beat(app, "m1", 0)
    app("group describe app")
    assert app.error == "Group app is NotReady and has no offsets; --state tells what stops it.\n"


def test_an_application_that_comes_to_a_group_of_consumers_is_told_what_to_do(app: Shell) -> None:
    app("topic create in")
    with app.log.consumer("in", group="plain") as consumer:
        while not consumer.assignment():
            consumer.poll(0.1)
        first: dict[str, Any] = {"topology": TOPOLOGY, "process_id": "p", "rebalance_timeout_ms": 60_000, **NO_TASKS}
        answer = app.log.request(StreamsGroupHeartbeatRequest("plain", "m", 0, **first))
    assert answer.error_message.startswith("Group plain is not a streams group. Stop all of its members and wait until")


def test_a_plan_for_a_group_with_members_says_that_they_stop_first(app: Shell) -> None:
    app("topic create in --partitions 2")
    settled(app, "m1")
    app("group reset-offsets app -t in --to-earliest")
    assert app.error == "Nothing was changed; stop the group's members, then pass --execute to reset the offsets.\n"
    app("group reset-offsets new -t in --to-earliest")
    assert app.error == "Nothing was changed; pass --execute to reset the offsets.\n"


def test_a_setting_that_no_group_has_is_refused_with_the_command_that_lists_them(app: Shell) -> None:
    app("config set group app streams.num.warmup.replicas=1", 1)
    assert app.error.rstrip().endswith("; `logkernel config list group NAME --all` lists all names")
    assert len(app.table("config list group app --all")) > 10


def test_a_setting_without_its_prefix_is_refused_with_all_that_it_may_be(app: Shell) -> None:
    """`session.timeout.ms` was taken for that of share groups."""
    app("config set group app session.timeout.ms=50000", 1)
    assert (
        "did you mean consumer.session.timeout.ms, share.session.timeout.ms or streams.session.timeout.ms?" in app.error
    )
