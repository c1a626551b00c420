"""Three brokers on one coordination: a controller commands them, and answers what they and clients ask of it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from logkernel.attrs_lite import evolve
from logkernel.broker.controller.controller_election import ControllerElection
from logkernel.broker.governance.cluster_member import ClusterMember
from logkernel.broker.governance.governance import Governance, Parts
from logkernel.broker.handlers.metadata import NO_METADATA_MS
from logkernel.cluster.store import SharedStore, StoreSession
from logkernel.contracts import MetadataChange, PeerTransport
from logkernel.controller.effects import Effects
from logkernel.controller.image import log_dirs_change
from logkernel.errors import (
    ClusterAuthorizationFailed,
    ElectionNotNeeded,
    FencedLeaderEpoch,
    FetchSessionIdNotFound,
    IneligibleReplica,
    LeaderNotAvailable,
    NetworkException,
    NotController,
    PreferredLeaderNotAvailable,
    StaleBrokerEpoch,
    StaleControllerEpoch,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from logkernel.requests.cluster import DescribeClusterRequest, MetadataRequest, MetadataRequestTopic
from logkernel.requests.data import FetchPartition, FetchRequest, FetchTopic
from logkernel.requests.placement import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from logkernel.requests.replication import (
    AllocateProducerIdsRequest,
    AlterPartitionPartition,
    AlterPartitionRequest,
    AlterPartitionTopic,
    BrokerState,
    ControlledShutdownRequest,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from logkernel.requests.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from logkernel.vocabulary import NO_ID, TopicPartition

from .conftest import CLIENT, KERNEL, PEER, Make, ask


class Commanded(ClusterMember):
    """The test carries its requests, and has it hear. It fetches nothing."""

    def __init__(self, parts: Parts, member: Member) -> None:
        self.member = member
        super().__init__(parts._replace(events=member), lambda: member.session, member)

    def forward(self, node: int, request: Any, done: Callable[[Any], None]) -> None:
        self.member.cluster.sent.append((self.member, node, request, done))

    def role_changed(self, name: TopicPartition) -> None: ...

    def on_watched(self, changes: Sequence[MetadataChange]) -> None: ...

    def on_decides(self, brokers: int, *, elected: bool) -> None: ...

    def on_session_lost(self) -> None: ...


class Member(PeerTransport):
    """A node, its session, and its part in the control of the cluster; the node's `Access`."""

    size = 1

    def __init__(self, cluster: Cluster, make: Make, node_id: int) -> None:
        self.cluster = cluster
        self.news: list[Effects] = []
        self.session: StoreSession = cluster.store.session()
        self.node = make(node_id, access=self)
        self.broker = self.node.broker
        self.join()

    def join(self) -> None:
        self.election.begin(self.session, lambda: self.cluster.rings.append(self))
        self.election.poll()
        self.election.announce({"listeners": {"P": ["h", self.node.node_id]}, "rack": None})

    def come_back(self) -> None:
        """With a new session."""
        self.session = self.cluster.store.session()
        self.join()

    def govern(self, parts: Parts) -> Governance:
        self.commanded = Commanded(parts, self)
        self.election = self.commanded.election
        return self.commanded

    def on_effects(self, effects: Effects) -> None:
        self.news.append(effects)

    def on_deletion(self, topic: str) -> None: ...

    def on_shard_role(self, name: TopicPartition) -> None: ...

    @property
    def roles(self) -> dict[tuple[str, int], str]:
        replicas = self.broker.replicas
        return dict.fromkeys(replicas.led, "led") | dict.fromkeys(replicas.followed, "followed")


class Cluster:
    def __init__(self, make: Make) -> None:
        self.store = SharedStore(KERNEL.coordination("memory", lambda: None))  # type: ignore[arg-type,return-value]
        self.rings: list[Member] = []
        self.sent: list[tuple[Member, int, Any, Callable[[Any], None]]] = []
        self.members = {number: Member(self, make, number) for number in (1, 2, 3)}
        self.run()

    def run(self) -> None:
        """Until nothing is left to do now."""
        busy = True
        while busy:
            busy = bool(self.rings or self.sent)
            rings, self.rings = self.rings, []
            for member in dict.fromkeys(rings):
                member.election.poll()
            if self.sent:
                source, target, request, done = self.sent.pop(0)
                if target in self.members:
                    answers = ask(self.members[target].node, request)
                    done(answers[0] if answers else None)
                else:
                    done(None)
                source.broker.turn.end()
            for member in self.members.values():
                busy = busy or bool(member.broker.turn.soon)
                member.broker.turn.end()

    def ask(self, number: int, request: Any, *, commands: bool = False) -> Any:
        answers = ask(self.members[number].node, request, PEER if commands else CLIENT)
        self.run()
        (answer,) = answers
        return answer

    def create(self, name: str, *rows: str, at: int = 1) -> int:
        assignments = [CreatableReplicaAssignment(index, [*map(int, row)]) for index, row in enumerate(rows)]
        request = CreateTopicsRequest(topics=[CreatableTopic(name, -1, -1, assignments)])
        code: int = self.ask(at, request).topics[0].error_code
        return code

    def kill(self, number: int) -> None:
        self.members.pop(number).session.close()
        self.run()

    @property
    def election(self) -> ControllerElection:
        return next(member.election for member in self.members.values() if member.election.is_active)


@pytest.fixture
def cluster(make: Make) -> Cluster:
    return Cluster(make)


def row_of(cluster: Cluster, name: str, index: int = 0) -> tuple[int, str, int]:
    row = cluster.election.active.image.topics[name].partitions[index]
    return row.leader, "".join(map(str, row.isr)), row.leader_epoch


def test_a_topic_is_led_and_followed_where_it_was_placed_and_known_everywhere(cluster: Cluster) -> None:
    assert cluster.create("t", "12", "23") == 0
    assert [member.roles for member in cluster.members.values()] == [
        {("t", 0): "led"},
        {("t", 0): "followed", ("t", 1): "led"},
        {("t", 1): "followed"},
    ]
    for number, member in cluster.members.items():
        response = cluster.ask(number, MetadataRequest(topics=[MetadataRequestTopic(name="t")]))
        assert response.controller_id == 1
        assert [broker.node_id for broker in response.brokers] == [1, 2, 3]
        rows = response.topics[0].partitions
        assert [(row.leader_id, row.replica_nodes, row.isr_nodes) for row in rows] == [
            (1, [1, 2], [1, 2]),
            (2, [2, 3], [2, 3]),
        ]
        assert [news.created for news in member.news if news.created] == [["t"]]
        assert cluster.ask(number, DescribeClusterRequest()).controller_id == 1


def test_a_client_that_asks_before_the_broker_is_told_of_the_cluster_waits_for_that(
    cluster: Cluster, make: Make
) -> None:
    """librdkafka's admin client, which was told of no broker, did not ask again for five minutes."""
    member = cluster.members[4] = Member(cluster, make, 4)
    answers = ask(member.node, MetadataRequest(topics=[]), CLIENT)
    assert answers == []
    cluster.run()
    member.broker.step()
    (answer,) = answers
    assert {broker.node_id for broker in answer.brokers} == {1, 2, 3, 4}
    assert answer.controller_id == cluster.election.view.controller_id


def test_a_client_of_a_broker_that_nobody_tells_of_the_cluster_is_answered_in_the_end(
    cluster: Cluster, make: Make
) -> None:
    member = Member(cluster, make, 4)
    answers = ask(member.node, MetadataRequest(topics=[]), CLIENT)
    member.node.clock.now_ms += NO_METADATA_MS - 1
    member.broker.step()
    assert answers == []
    member.node.clock.now_ms += 1
    member.broker.step()
    assert [answer.brokers for answer in answers] == [[]]


def test_a_broker_that_is_not_the_controller_refuses_each_topic(cluster: Cluster) -> None:
    assert cluster.create("t", "12", at=2) == NotController.code
    assert cluster.create("t", "12") == 0
    refused = cluster.ask(3, DeleteTopicsRequest(topic_names=["t"]))
    assert [row.error_code for row in refused.responses] == [NotController.code]


def test_a_deleted_topic_leaves_no_log_and_may_be_made_again(cluster: Cluster) -> None:
    cluster.create("t", "12")
    first = cluster.election.active.image.topics["t"].id
    cluster.ask(1, DeleteTopicsRequest(topic_names=["t"]))
    for member in cluster.members.values():
        assert member.roles == {}
        assert member.broker.logs.topic_ids() == {}
    assert cluster.election.active.image.gone == {}
    assert cluster.create("t", "23") == 0
    again = cluster.election.active.image.topics["t"].id
    assert again != first
    assert list(cluster.members[3].broker.logs.topic_ids().values()) == [again]


def test_the_leader_s_broker_dies_and_another_replica_leads(cluster: Cluster) -> None:
    cluster.create("t", "32")
    cluster.create("u", "3")
    cluster.kill(3)
    assert cluster.members[2].roles == {("t", 0): "led"}
    response = cluster.ask(2, MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in ("t", "u")]))
    first, second = (topic.partitions[0] for topic in response.topics)
    assert (first.leader_id, first.error_code, first.offline_replicas) == (2, 0, [3])
    assert (second.leader_id, second.error_code) == (-1, LeaderNotAvailable.code)


def test_the_controller_s_broker_dies_and_the_next_one_commands(cluster: Cluster) -> None:
    cluster.create("t", "12")
    cluster.kill(1)
    assert (cluster.election.term, row_of(cluster, "t")) == (2, (2, "2", 1))
    assert cluster.members[2].roles == {("t", 0): "led"}
    assert cluster.create("u", "32", at=cluster.election.view.controller_id) == 0


def test_the_leader_s_disk_dies_and_another_replica_leads(cluster: Cluster) -> None:
    """A broker lives on without that disk, so the controller has to be told."""
    cluster.create("t", "32")
    cluster.create("u", "12")
    member = cluster.members[3]
    member.broker.logs.fail_directory_of(TopicPartition("t", 0), OSError(errno.EIO, "the disk"))
    cluster.run()
    assert row_of(cluster, "t") == (3, "32", 0)
    member.session.commit([log_dirs_change(3)])
    cluster.run()
    assert row_of(cluster, "t") == (2, "2", 1)
    assert cluster.members[2].roles["t", 0] == "led"
    assert row_of(cluster, "u") == (1, "12", 0)
    response = cluster.ask(2, MetadataRequest(topics=[MetadataRequestTopic(name="t")]))
    assert response.topics[0].partitions[0].offline_replicas == [3]


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
def test_a_controller_whose_commit_has_no_answer_decides_nothing_until_it_has_loaded_anew(
    cluster: Cluster, stored: bool
) -> None:
    cluster.create("t", "12")
    member = cluster.members[1]
    member.session.lose_answer(stored=stored)
    assert cluster.create("u", "12") != 0
    assert not member.election.is_active
    assert cluster.create("v", "12") == NotController.code
    member.session.make_sure()
    cluster.run()
    assert member.election.is_active
    assert ("u" in member.election.active.image.topics) == stored
    assert cluster.create("u", "12") == (TopicAlreadyExists.code if stored else 0)
    assert member.roles["u", 0] == "led"


def propose(
    cluster: Cluster, members: str, *, sender: int = 1, leader_epoch: int = 0, epoch: int = 0, connection: int = 0
) -> Any:
    states = [BrokerState(int(node), -1) for node in members]
    row = AlterPartitionPartition(0, leader_epoch, states, 0, epoch)
    request = AlterPartitionRequest(
        sender,
        cluster.members[sender].election.view.broker_epoch,
        [AlterPartitionTopic(cluster.election.active.image.topics["t"].id, [row])],
    )
    answers = ask(cluster.members[1].node, request, evolve(PEER, connection_id=connection))
    cluster.run()
    return answers[0]


def proposal(cluster: Cluster, members: str, **more: Any) -> Any:
    response = propose(cluster, members, **more)
    assert response.error_code == 0
    return response.topics[0].partitions[0]


def test_a_proposal_that_overtakes_a_later_one_is_not_written(cluster: Cluster) -> None:
    """Its leader was told that the later attempt was refused, and waits for that follower no more."""
    cluster.create("t", "123")
    assert proposal(cluster, "12", connection=8).isr == [1, 2]
    assert propose(cluster, "123", epoch=1, connection=7).error_code == NetworkException.code
    assert row_of(cluster, "t")[1] == "12"
    assert proposal(cluster, "123", epoch=1, connection=8).isr == [1, 2, 3]


def test_a_leader_s_proposals_are_written_down_and_told(cluster: Cluster) -> None:
    cluster.create("t", "123")
    answered = proposal(cluster, "12")
    assert (answered.error_code, answered.isr, answered.partition_epoch) == (0, [1, 2], 1)
    assert cluster.members[3].broker.metadata.image.topics["t"].partitions[0].isr == (1, 2)
    assert proposal(cluster, "12").partition_epoch == 1, "asked again"
    assert proposal(cluster, "123", epoch=1).partition_epoch == 2
    assert (cluster.election.counters.isr_shrinks, cluster.election.counters.isr_expansions) == (1, 1)
    assert proposal(cluster, "23", sender=2, epoch=2).error_code == FencedLeaderEpoch.code
    cluster.election.active.leave(3)
    assert row_of(cluster, "t") == (1, "12", 1)
    assert proposal(cluster, "123", leader_epoch=1, epoch=3).error_code == IneligibleReplica.code


def test_a_proposal_of_an_unknown_topic_or_partition_or_of_an_earlier_life_is_refused(cluster: Cluster) -> None:
    cluster.create("t", "12")
    epoch, topic_id = cluster.members[1].election.view.broker_epoch, cluster.election.active.image.topics["t"].id
    row = AlterPartitionPartition(9)
    topics = [AlterPartitionTopic(NO_ID, [row]), AlterPartitionTopic(topic_id, [row])]
    response = cluster.ask(1, AlterPartitionRequest(1, epoch, topics), commands=True)
    codes = [topic.partitions[0].error_code for topic in response.topics]
    assert codes == [UnknownTopicId.code, UnknownTopicOrPartition.code]
    stale = AlterPartitionRequest(1, epoch + 100, topics)
    assert cluster.ask(1, stale, commands=True).error_code == StaleBrokerEpoch.code
    assert cluster.ask(2, stale, commands=True).error_code == NotController.code
    assert cluster.ask(1, stale).error_code == ClusterAuthorizationFailed.code


def test_brokers_get_blocks_of_producer_ids_that_nobody_else_has(cluster: Cluster) -> None:
    blocks = []
    for number, member in cluster.members.items():
        request = AllocateProducerIdsRequest(number, member.election.view.broker_epoch)
        response = cluster.ask(1, request, commands=True)
        blocks.append((response.producer_id_start, response.producer_id_len))
        assert cluster.ask(2, request, commands=True).error_code == NotController.code
    assert blocks == [(0, 1000), (1000, 1000), (2000, 1000)]


def test_a_broker_that_is_about_to_stop_is_answered_when_others_lead(cluster: Cluster) -> None:
    cluster.create("t", "21", "32")
    cluster.create("u", "2")
    request = ControlledShutdownRequest(2, cluster.members[2].election.view.broker_epoch)
    response = cluster.ask(1, request, commands=True)
    assert (response.error_code, response.remaining_partitions) == (0, [])
    assert cluster.members[2].roles == {("t", 0): "followed", ("t", 1): "followed", ("u", 0): "led"}
    assert (row_of(cluster, "t"), row_of(cluster, "t", 1)) == ((1, "1", 1), (3, "3", 1))


@pytest.mark.parametrize("kind", [UpdateMetadataRequest, LeaderAndIsrRequest, StopReplicaRequest])
def test_orders_are_obeyed_from_a_controller_alone_and_in_this_life_alone(cluster: Cluster, kind: Any) -> None:
    epoch = cluster.members[2].election.view.broker_epoch
    assert cluster.ask(2, kind(1, 1, epoch)).error_code == ClusterAuthorizationFailed.code
    assert cluster.ask(2, kind(1, 1, epoch - 1), commands=True).error_code == StaleBrokerEpoch.code
    assert cluster.ask(2, kind(1, 0, epoch), commands=True).error_code == StaleControllerEpoch.code


def test_a_broker_that_stands_alone_takes_no_orders(make: Make) -> None:
    for request in (UpdateMetadataRequest(1, 1, 1), AlterPartitionRequest(1, 1)):
        (response,) = ask(make(7), request)
        assert response.error_code == ClusterAuthorizationFailed.code


def test_a_topic_that_a_client_asks_for_first_is_made_by_the_controller(cluster: Cluster) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="auto")], allow_auto_topic_creation=True)
    assert cluster.ask(3, request).topics[0].error_code == LeaderNotAvailable.code
    assert cluster.ask(3, request).topics[0].error_code == 0


def test_an_administrator_has_preferred_leaders_elected(cluster: Cluster) -> None:
    cluster.create("t", "21", "12", "32")
    request = ElectLeadersRequest(0, [TopicPartitions("t", [0, 1, 2, 9])])
    assert cluster.ask(2, request).error_code == NotController.code
    cluster.ask(1, ControlledShutdownRequest(2, cluster.members[2].election.view.broker_epoch), commands=True)
    cluster.kill(3)
    response = cluster.ask(1, request)
    assert [row.error_code for row in response.replica_election_results[0].partition_result] == [
        PreferredLeaderNotAvailable.code, ElectionNotNeeded.code, PreferredLeaderNotAvailable.code,
        UnknownTopicOrPartition.code,
    ]  # fmt: skip


def test_a_partition_moves_when_its_new_replicas_are_in_sync(cluster: Cluster) -> None:
    cluster.create("t", "12")
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", [ReassignablePartition(0, [2, 3])])])
    assert cluster.ask(2, request).error_code == NotController.code
    assert cluster.ask(1, request).responses[0].partitions[0].error_code == 0
    assert [member.roles for member in cluster.members.values()] == [
        {("t", 0): "led"}, {("t", 0): "followed"}, {("t", 0): "followed"}
    ]  # fmt: skip
    (listed,) = cluster.ask(1, ListPartitionReassignmentsRequest()).topics
    assert (listed.partitions[0].adding_replicas, listed.partitions[0].removing_replicas) == ([3], [1])
    assert cluster.ask(3, ListPartitionReassignmentsRequest()).error_code == NotController.code
    assert proposal(cluster, "123", leader_epoch=1, epoch=1).error_code == 0
    assert row_of(cluster, "t") == (2, "23", 2)
    assert [member.roles for member in cluster.members.values()] == [
        {}, {("t", 0): "led"}, {("t", 0): "followed"}
    ]  # fmt: skip
    assert cluster.members[1].broker.logs.topic_ids() == {}
    assert cluster.ask(1, ListPartitionReassignmentsRequest()).topics == []


def test_a_broker_that_came_back_says_how_far_it_is_also_where_nothing_is_written(cluster: Cluster) -> None:
    """The leader forgets a broker that goes. In a fetch session that went on it never heard of an idle partition again,
    so that a follower that was not in sync did not join before the next append."""
    cluster.create("t", "123")
    assert proposal(cluster, "12").isr == [1, 2]
    leader = cluster.members[1].node

    def fetch(session_id: int, epoch: int, *partitions: FetchPartition) -> Any:
        topics = [FetchTopic("t", list(partitions))] if partitions else []
        (answer,) = ask(leader, FetchRequest(3, session_id=session_id, session_epoch=epoch, topics=topics))
        return answer

    found = fetch(0, 0, FetchPartition(0, 0, 1 << 20, 0, 0, -1))
    assert fetch(found.session_id, 1).error_code == 0
    again = cluster.members[3]
    cluster.kill(3)
    again.come_back()
    cluster.members[3] = again
    cluster.run()
    assert fetch(found.session_id, 2).error_code == FetchSessionIdNotFound.code, "it is to name every partition"
    fetch(0, 0, FetchPartition(0, 0, 1 << 20, 0, 0, -1))
    assert leader.led.leader.sync.followers[3].log_end == 0
