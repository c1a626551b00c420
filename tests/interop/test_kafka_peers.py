"""A broker of Apache Kafka 3.9.2 answers what a broker of ours asks of it, over our connections to peers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest
from attrs import frozen
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_with_zookeeper import Loop, member, register, success, until, zookeeper

from logkernel import errors as e
from logkernel.broker.peer_channels import PeerChannels
from logkernel.broker.peers import Place
from logkernel.broker.runtime import Runtime
from logkernel.broker.serve import new_event_loop
from logkernel.config.broker import BrokerConfig
from logkernel.kernel import Kernel
from logkernel.plugins.transport.tcp import registry
from logkernel.record.batch import batches
from logkernel.requests import data as d
from logkernel.requests import offsets as o
from logkernel.requests import replication as r
from logkernel.requests import transactions as t

pytestmark = pytest.mark.interop
STALE_TERM = 0
"""A controller epoch before that of the true controller: orders with it are refused, after they were read."""


class Kept:
    """What a controller ordered of broker 2."""

    def __init__(self) -> None:
        self.topics: dict[str, UUID] = {}

    def note(self, node: int, request: bytes, response: bytes) -> None:
        if request[1] == 4:  # LeaderAndIsr
            order = registry.load(4).request_decoder(7)(memoryview(request)[12:])
            self.topics.update({state.topic_name: state.topic_id for state in order.topic_states})


@frozen
class Cluster:
    port: int
    broker_epoch: int
    topic_id: UUID
    """Of topic t, which Kafka's broker leads and broker 2 follows."""
    led_id: UUID
    """Of a topic that broker 2 leads and Kafka's follows."""
    leaving_epoch: int
    """Of broker 3, which leads a topic that Kafka's follows, and may leave."""


@pytest.fixture(scope="module")
def cluster(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Kafka's broker 1, the controller, and brokers 2 and 3, which are nobody but sockets."""
    folder, kept, loop = tmp_path_factory.mktemp("kafka"), Kept(), Loop()
    with zookeeper(folder) as (keeper, client):
        kafka = member(folder, 1, keeper, transaction_state_log_replication_factor="1")
        kafka.start()
        try:
            epoch, leaving_epoch = (register(client, node, loop.listen(success(kept.note, node), 0)) for node in (2, 3))
            admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
            until(lambda: len(admin.list_topics(timeout=120).brokers) == 3, "brokers 2 and 3")
            placed = {"t": [1, 2], "led": [2, 1], "left": [3, 1]}
            new = [NewTopic(name, 1, replica_assignment=[nodes]) for name, nodes in placed.items()]
            for future in admin.create_topics(new).values():
                future.result(180)
            producer = Producer({"bootstrap.servers": kafka.bootstrap, "acks": "1", "linger.ms": 0})
            for value in (b"a", b"b", b"c"):
                producer.produce("t", value, partition=0)
                assert producer.flush(180) == 0
            until(lambda: {"t", "led"} <= kept.topics.keys(), "an order")
            yield Cluster(kafka.port, epoch, kept.topics["t"], kept.topics["led"], leaving_epoch)
        finally:
            kafka.stop()


@pytest.fixture
def ask(cluster: Cluster) -> Callable[[Any], Any]:
    """Sends to Kafka's broker as broker 2; the response."""
    runtime = Runtime(BrokerConfig.load(None, {"node.id": 2}), Kernel(allow=()))

    async def asked(request: Any) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        place = Place("127.0.0.1", cluster.port, "PLAINTEXT")
        peers = PeerChannels(runtime, "tcp", lambda node, _: place, None, lambda listener: {})  # type: ignore[arg-type]
        peers.send(1, request, answer.set_result, answer.set_exception, 120_000)
        try:
            return await asyncio.wait_for(answer, 120)
        finally:
            peers.close()
            with contextlib.suppress(RuntimeError):
                await asyncio.sleep(0)

    def ask(request: Any) -> Any:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(asked(request))

    return ask


Ask = Callable[[Any], Any]


def test_a_follower_fetches_whole_batches(ask: Ask, cluster: Cluster) -> None:
    part = d.FetchPartition(0, 0, 1 << 20, log_start_offset=0, current_leader_epoch=0, last_fetched_epoch=-1)
    topics = [d.FetchTopic("", [part], cluster.topic_id)]
    state = d.ReplicaState(2, cluster.broker_epoch)
    got = ask(d.FetchRequest(2, 500, 1, 1 << 20, topics=topics, session_id=0, session_epoch=0, replica_state=state))
    assert got.error_code == 0
    assert got.session_id > 0
    (row,) = got.responses[0].partitions
    assert (row.error_code, row.log_start_offset) == (0, 0)
    assert [batch.base_offset for batch in batches(row.records)] == [0, 1, 2]
    assert row.high_watermark < 3, "broker 2 is in sync, and has nothing"


def test_a_follower_whose_log_diverges_is_told(ask: Ask, cluster: Cluster) -> None:
    part = d.FetchPartition(0, 100, 1 << 20, log_start_offset=0, current_leader_epoch=0, last_fetched_epoch=0)
    topics = [d.FetchTopic("", [part], cluster.topic_id)]
    state = d.ReplicaState(2, cluster.broker_epoch)
    got = ask(d.FetchRequest(2, 0, 0, 1 << 20, topics=topics, session_id=0, session_epoch=-1, replica_state=state))
    (row,) = got.responses[0].partitions
    assert (row.error_code, row.diverging_epoch) == (0, d.EpochEndOffset(0, 3))


def test_a_follower_asks_for_offsets_and_epochs(ask: Ask) -> None:
    listed = ask(o.ListOffsetsRequest(2, [o.ListOffsetsTopic("t", [o.ListOffsetsPartition(0, -1, 0)])]))
    assert listed.topics[0].partitions[0].offset == 3, "the log end, not the watermark"
    asked = o.OffsetForLeaderTopic("t", [o.OffsetForLeaderPartition(0, 0, 0)])
    ended = ask(o.OffsetForLeaderEpochRequest([asked], 2))
    assert ended.topics[0].partitions[0].end_offset == 3


def test_the_controller_gives_producer_ids(ask: Ask, cluster: Cluster) -> None:
    got = ask(r.AllocateProducerIdsRequest(2, cluster.broker_epoch))
    assert (got.error_code, got.producer_id_len) == (0, 1000)
    assert ask(r.AllocateProducerIdsRequest(2, 1)).error_code == e.StaleBrokerEpoch.code


def test_the_controller_judges_proposals(ask: Ask, cluster: Cluster) -> None:
    members = [r.BrokerState(2), r.BrokerState(1)]

    def judged(row: r.AlterPartitionPartition) -> r.AlterPartitionPartitionResponse:
        topics = [r.AlterPartitionTopic(cluster.led_id, [row])]
        got = ask(r.AlterPartitionRequest(2, cluster.broker_epoch, topics))
        assert got.error_code == 0
        (answer,) = got.topics[0].partitions
        assert isinstance(answer, r.AlterPartitionPartitionResponse)
        return answer

    known = judged(r.AlterPartitionPartition(0, 0, members))
    assert (known.error_code, known.leader_id, known.isr) == (0, 2, [2, 1])
    later = r.AlterPartitionPartition(0, 0, members[:1], partition_epoch=known.partition_epoch + 9)
    assert judged(later).error_code == e.NotController.code, "the controller is behind, the leader is not fenced"
    assert judged(r.AlterPartitionPartition(7, 0, members)).error_code == e.UnknownTopicOrPartition.code
    shrunk = judged(r.AlterPartitionPartition(0, 0, members[:1], partition_epoch=known.partition_epoch))
    assert (shrunk.error_code, shrunk.isr, shrunk.partition_epoch) == (0, [2], known.partition_epoch + 1)
    wrong = [r.BrokerState(2, 12345), r.BrokerState(1, 1)]
    grown = judged(r.AlterPartitionPartition(0, 0, wrong, partition_epoch=shrunk.partition_epoch))
    assert (grown.error_code, grown.isr) == (0, [2, 1]), "with ZooKeeper, the epochs of members are not looked at"


@pytest.mark.parametrize("order", [r.LeaderAndIsrRequest, r.StopReplicaRequest, r.UpdateMetadataRequest])
def test_orders_are_read(ask: Ask, order: Any) -> None:
    assert ask(order(2, STALE_TERM, 1 << 40)).error_code == e.StaleControllerEpoch.code


def test_markers_and_verifications_are_answered(ask: Ask) -> None:
    marker = t.WritableTxnMarker(999, 0, True, [t.WritableTxnMarkerTopic("t", [7])], coordinator_epoch=0)
    written = ask(t.WriteTxnMarkersRequest([marker]))
    (topic,) = written.markers[0].topics
    assert topic.partitions[0].error_code == e.UnknownTopicOrPartition.code
    asked = t.AddPartitionsToTxnTransaction("x", 5, 0, True, [t.AddPartitionsToTxnTopic("t", [0])])
    (result,) = ask(t.AddPartitionsToTxnRequest([asked])).results_by_transaction
    assert result.transactional_id == "x"
    assert result.topic_results[0].results_by_partition[0].partition_error_code != 0


def test_a_broker_that_stops_says_so(ask: Ask, cluster: Cluster) -> None:
    """As broker 3, which no other test needs."""
    got = ask(r.ControlledShutdownRequest(3, cluster.leaving_epoch))
    assert (got.error_code, got.remaining_partitions) == (0, [])
