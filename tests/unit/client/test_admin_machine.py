"""The admin client's machine and the plans' helpers, without a broker: each row of their tables."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from logkernel.client.admin import group_offsets, groups, topics
from logkernel.client.admin.machine import AdminMachine, Operation
from logkernel.client.admin.plans import PATIENCE, Ask, Pause, Plan, ask, at_brokers, values_or_raise
from logkernel.client.settings.admin import load_admin
from logkernel.errors import (
    GroupIdNotFound,
    InvalidRequest,
    KafkaError,
    LeaderNotAvailable,
    NetworkException,
    NotController,
    NotCoordinator,
    NotLeaderOrFollower,
    RequestTimedOut,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from logkernel.peer.network import Close, Connect, Transmit
from logkernel.requests.cluster import (
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from logkernel.requests.groups import (
    Coordinator,
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from logkernel.requests.offsets import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from logkernel.requests.topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from logkernel.vocabulary import TopicPartition

Handler = Callable[[int, Any], Any]
"""(node, request) → response, an exception (refused), or None (no answer)."""


class World:
    """Brokers 1 to 3, of which 2 is the controller; `handler` answers what this does not."""

    def __init__(self, handler: Handler, **settings: Any) -> None:
        self.machine = AdminMachine(load_admin({"bootstrap_servers": "h:1", **settings}), [("h", 1)], Random(3))
        self.handler = handler
        self.now_ms = 0
        self.asked: list[tuple[int, Any]] = []
        self.down: set[int] = set()
        self.leaders: dict[str, list[int]] = {}
        self.brokers = [1, 2, 3]
        self._nodes: dict[int, int] = {}

    def run(self, plan: Plan[Any], timeout_ms: int = 10_000) -> Operation:
        operation = self.machine.start(plan, self.now_ms + timeout_ms)
        for _ in range(10_000):
            next_ms = self.machine.step(0, self.now_ms)
            if operation.done:
                return operation
            actions, self.machine.core.network.actions = self.machine.core.network.actions, []
            for action in actions:
                self._perform(action)
            if not actions:
                assert next_ms is not None, "nothing to wait for"
                self.now_ms = max(self.now_ms + 1, next_ms)
        raise AssertionError("it goes on for ever")

    def result(self, plan: Plan[Any]) -> Any:
        operation = self.run(plan)
        if operation.error is not None:
            raise operation.error
        return operation.result

    def _perform(self, action: Any) -> None:
        network = self.machine.core.network
        if isinstance(action, Connect):
            self._nodes[action.number] = action.node
            if action.node in self.down:
                network.on_lost(action.number, NetworkException("refused"), self.now_ms)
            else:
                network.on_connected(action.number, {}, self.now_ms)
        elif isinstance(action, Transmit):
            node = self._nodes[action.number]
            answer = self._answer(node, action.request)
            if isinstance(answer, NetworkException):
                network.on_lost(action.number, answer, self.now_ms)
            elif isinstance(answer, Exception):
                network.on_refused(action.number, action.request_id, answer, self.now_ms)
            elif answer is not None:
                network.on_response(action.number, action.request_id, answer, self.now_ms)
        else:
            assert isinstance(action, Close)

    def _answer(self, node: int, request: Any) -> Any:
        if isinstance(request, MetadataRequest):
            brokers = [MetadataResponseBroker(index, "h", index) for index in self.brokers]
            return MetadataResponse(brokers, [self._topic(row.name) for row in request.topics or ()], 2, "id")
        self.asked.append((node, request))
        if isinstance(request, FindCoordinatorRequest):
            return FindCoordinatorResponse(coordinators=[Coordinator(request.key, 3, "h", 3)])
        return self.handler(node, request)

    def _topic(self, name: str | None) -> MetadataResponseTopic:
        leaders = self.leaders.get(str(name))
        if leaders is None:
            return MetadataResponseTopic(UnknownTopicOrPartition.code, name)
        parts = [MetadataResponsePartition(0, index, leader) for index, leader in enumerate(leaders)]
        return MetadataResponseTopic(0, name, parts)

    def nodes(self, kind: type) -> list[int]:
        return [node for node, request in self.asked if isinstance(request, kind)]


def created(*codes: int) -> Handler:
    """Answers CreateTopics by these codes, one an attempt."""
    left = list(codes)

    def handler(node: int, request: Any) -> Any:
        return CreateTopicsResponse(topics=[CreatableTopicResult(row.name, left.pop(0)) for row in request.topics])

    return handler


# ---------------------------------------------------------------- whom is asked


def test_the_controller_makes_topics() -> None:
    world = World(created(0))
    assert list(world.result(topics.create_topics("a"))) == ["a"]
    assert world.nodes(CreateTopicsRequest) == [2]


def test_who_is_no_controller_any_more_is_asked_again_after_new_metadata() -> None:
    world = World(created(NotController.code, 0))
    updates = world.machine.core.metadata.updates
    world.result(topics.create_topics("a"))
    assert world.machine.core.metadata.updates >= updates + 2
    assert world.now_ms >= 80, "after a back-off"


def test_a_group_is_asked_of_its_coordinator_which_is_looked_up_again() -> None:
    codes = [NotCoordinator.code, 0]

    def handler(node: int, request: Any) -> Any:
        return DeleteGroupsResponse(results=[DeletableGroupResult("g", codes.pop(0))])

    world = World(handler)
    world.result(groups.delete_groups("g"))
    assert world.nodes(DeleteGroupsRequest) == [3, 3]
    assert len(world.nodes(FindCoordinatorRequest)) == 2


def test_every_broker_is_asked_for_its_groups() -> None:
    world = World(lambda node, request: ListGroupsResponse(groups=[ListedGroup(f"g{node}", "", "Empty", "Classic")]))
    found = world.result(groups.list_groups())
    assert sorted(world.nodes(ListGroupsRequest)) == [1, 2, 3]
    assert {name: row.type for name, row in found.items()} == {"g1": "classic", "g2": "classic", "g3": "classic"}


# ---------------------------------------------------------------- leaders


def deleted(code_of: Callable[[int, str, int], int]) -> Handler:
    def handler(node: int, request: Any) -> Any:
        rows = [
            DeleteRecordsTopicResult(
                topic.name,
                [
                    DeleteRecordsPartitionResult(
                        part.partition_index, part.offset, code_of(node, topic.name, part.partition_index)
                    )
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return DeleteRecordsResponse(topics=rows)

    return handler


def test_partitions_are_asked_of_their_leaders() -> None:
    world = World(deleted(lambda node, topic, index: 0))
    world.leaders = {"a": [1, 2, 1]}
    assert world.result(topics.delete_records({("a", 0): 5, ("a", 1): 6, ("a", 2): 7})) == {
        ("a", 0): 5, ("a", 1): 6, ("a", 2): 7
    }  # fmt: skip
    assert sorted(world.nodes(DeleteRecordsRequest)) == [1, 2]


def test_a_leader_that_moved_is_looked_up_and_only_its_partitions_are_asked_again() -> None:
    def code(node: int, topic: str, index: int) -> int:
        if index == 0 and node == 1:
            world.leaders["a"] = [3, 2]
            return NotLeaderOrFollower.code
        return 0

    world = World(deleted(code))
    world.leaders = {"a": [1, 2]}
    assert world.result(topics.delete_records({("a", 0): 5, ("a", 1): 6})) == {("a", 0): 5, ("a", 1): 6}
    assert sorted(world.nodes(DeleteRecordsRequest)) == [1, 2, 3]


def test_a_leader_that_cannot_be_reached_is_looked_up_anew() -> None:
    world = World(deleted(lambda node, topic, index: 0))
    world.leaders, world.down = {"a": [1]}, {1}
    operation = world.machine.start(topics.delete_records({("a", 0): 5}), 60_000)
    for _ in range(300):
        world.machine.step(0, world.now_ms)
        for action in world.machine.core.network.actions:
            if isinstance(action, Connect) and action.node == 1:
                world.leaders["a"] = [2]
        actions, world.machine.core.network.actions = world.machine.core.network.actions, []
        for action in actions:
            world._perform(action)
        world.now_ms += 10
        if operation.done:
            break
    assert operation.result == {("a", 0): 5}
    assert world.nodes(DeleteRecordsRequest) == [2]
    assert world.now_ms < 5_000, "long before request.timeout.ms"


def test_a_leader_that_dies_while_it_is_asked_is_looked_up_anew() -> None:
    good = deleted(lambda node, topic, index: 0)

    def handler(node: int, request: Any) -> Any:
        if node == 1:
            world.leaders = {"a": [2]}
            return NetworkException("gone")
        return good(node, request)

    world = World(handler)
    world.leaders = {"a": [1]}
    assert world.result(topics.delete_records({("a", 0): 5})) == {("a", 0): 5}
    assert world.nodes(DeleteRecordsRequest) == [1, 2]


def test_a_partition_without_a_leader_is_waited_for_until_the_deadline() -> None:
    world = World(deleted(lambda node, topic, index: 0))
    world.leaders = {"a": [-1, 2]}
    with pytest.raises(RequestTimedOut, match="LeaderNotAvailable") as caught:
        world.result(topics.delete_records({("a", 0): 5, ("a", 1): 6}))
    assert 10_000 <= world.now_ms < 12_000
    assert caught.value.results is not None
    assert caught.value.results[TopicPartition("a", 1)].low_watermark == 6


def test_an_unknown_topic_is_asked_for_a_few_times() -> None:
    world = World(deleted(lambda node, topic, index: 0))
    with pytest.raises(UnknownTopicOrPartition):
        world.result(topics.delete_records({("a", 0): 5}))
    assert 100 < world.now_ms < 2_000
    world.leaders = {"a": [1]}
    with pytest.raises(UnknownTopicOrPartition, match="partition 7"):
        world.result(topics.delete_records({("a", 7): 5}))


def test_only_partitions_that_are_unknown_are_committed_again() -> None:
    """A topic made a moment ago, whose coordinator has not heard of it yet."""
    asked: list[list[str]] = []

    def handler(node: int, request: Any) -> Any:
        asked.append([topic.name for topic in request.topics])
        late = UnknownTopicOrPartition.code if len(asked) == 1 else 0
        return OffsetCommitResponse(
            [
                OffsetCommitResponseTopic(
                    topic.name, [OffsetCommitResponsePartition(0, late if topic.name == "new" else 0)]
                )
                for topic in request.topics
            ]
        )

    World(handler).result(group_offsets.alter_consumer_group_offsets("g", {("new", 0): 1, ("old", 0): 2}))
    assert asked == [["new", "old"], ["new"]]


# ---------------------------------------------------------------- errors and time


def test_an_error_that_does_not_pass_ends_it_at_once() -> None:
    world = World(created(InvalidRequest.code))
    with pytest.raises(InvalidRequest) as caught:
        world.result(topics.create_topics("a"))
    assert caught.value.results == {"a": caught.value}
    assert world.now_ms < 50


def test_a_version_that_is_missing_has_another_way_or_is_raised() -> None:
    def handler(node: int, request: Any) -> Any:
        return UnsupportedVersion("too old")

    world = World(handler)
    world.leaders = {"a": [1]}
    found = world.result(topics.describe_topics("a"))["a"]
    assert len(world.nodes(DescribeTopicPartitionsRequest)) == 1
    assert (found.partitions[0].leader, found.partitions[0].elr) == (1, None)
    with pytest.raises(UnsupportedVersion):
        world.result(groups.list_groups())


def test_a_broken_connection_is_made_anew_and_the_question_asked_again() -> None:
    answers: list[Any] = [NetworkException("gone"), DeleteGroupsResponse(results=[DeletableGroupResult("g", 0)])]
    world = World(lambda node, request: answers.pop(0))
    world.result(groups.delete_groups("g"))
    assert len(world.nodes(DeleteGroupsRequest)) == 2


def test_silence_ends_by_the_deadline() -> None:
    world = World(lambda node, request: None)
    with pytest.raises(RequestTimedOut, match="CreateTopicsRequest"):
        world.result(topics.create_topics("a"))
    assert 10_000 <= world.now_ms < 11_000


def test_no_broker_at_all_ends_by_the_deadline() -> None:
    world = World(lambda node, request: None)
    world.down = {-1}
    with pytest.raises(RequestTimedOut):
        world.result(topics.list_topics())
    assert world.now_ms < 11_000


def test_a_group_of_no_kind_is_not_found() -> None:
    world = World(lambda node, request: UnsupportedVersion("old"))
    with pytest.raises(GroupIdNotFound):
        world.result(groups.describe_groups(["g"]))


# ---------------------------------------------------------------- the machine itself


def test_a_plan_that_fails_before_it_asks_raises_at_once() -> None:
    def plan() -> Plan[None]:
        raise InvalidRequest("no")
        yield

    world = World(created())
    with pytest.raises(InvalidRequest):
        world.machine.start(plan(), 1000)
    assert world.machine.snapshot(0)["operations-failed-total"] == 1


def test_a_plan_without_questions_is_done_at_once() -> None:
    def plan() -> Plan[int]:
        return 7
        yield

    assert World(created()).machine.start(plan(), 1000).result == 7


def test_a_round_without_questions_goes_on() -> None:
    def plan() -> Plan[int]:
        found = yield []
        return len(found)

    assert World(created()).result(plan()) == 0


def test_pauses_grow_and_the_deadline_ends_them() -> None:
    waits: list[int] = []

    def plan() -> Plan[None]:
        yield []
        for failures in range(100):
            before = world.now_ms
            yield Pause(failures)
            waits.append(world.now_ms - before)

    world = World(created())
    with pytest.raises(RequestTimedOut):
        world.result(plan())
    assert waits[0] <= 120 < waits[3]
    assert max(waits) <= 1200


def test_operations_run_side_by_side_and_one_can_be_given_up() -> None:
    world = World(lambda node, request: None)
    closed: list[bool] = []

    def plan() -> Plan[None]:
        try:
            yield from ask(ListGroupsRequest())
        finally:
            closed.append(True)

    silent = world.machine.start(plan(), 5_000)
    answer = created(0)
    world.handler = lambda node, request: answer(node, request) if isinstance(request, CreateTopicsRequest) else None
    assert world.run(topics.create_topics("a")).error is None
    assert not silent.done
    world.machine.cancel(silent)
    assert closed == [True]
    world.machine.cancel(silent)


def test_what_is_under_way_at_the_end_fails() -> None:
    world = World(lambda node, request: None)
    plan = ask(ListGroupsRequest())
    operation = world.machine.start(plan, 5_000)
    world.machine.step(0, 0)
    world.machine.abandon(KafkaError("over"))
    assert operation.done
    with pytest.raises(StopIteration):
        next(plan)
    assert isinstance(operation.error, KafkaError)


def test_who_answered_is_told() -> None:
    asked = Ask(ListGroupsRequest(), 3)

    def plan() -> Plan[Any]:
        return (yield [asked])

    World(lambda node, request: ListGroupsResponse()).result(plan())
    assert asked.node == 3


def test_a_broker_that_is_not_known_yet_makes_the_metadata_new() -> None:
    world = World(lambda node, request: ListGroupsResponse())
    world.result(at_brokers(ListGroupsRequest()))
    world.brokers.append(9)
    world.asked.clear()
    assert set(world.result(at_brokers(ListGroupsRequest(), [9]))) == {9}
    assert world.nodes(ListGroupsRequest) == [9]


def test_results_are_told_with_the_first_error() -> None:
    assert values_or_raise({"a": 1}) == {"a": 1}
    first = InvalidRequest("first")
    with pytest.raises(InvalidRequest) as caught:
        values_or_raise({"a": 1, "b": first, "c": LeaderNotAvailable("second")})
    assert caught.value is first
    assert first.results is not None
    assert first.results["a"] == 1
    with pytest.raises(ValueError):
        values_or_raise({"a": ValueError()})
    assert PATIENCE == 3
