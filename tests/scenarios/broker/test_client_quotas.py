"""Client quotas of Kafka: who takes too much is answered, told so, and held back (KIP-13, 55, 124, 219, 599)."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.hand_clock import HandClock

import logkernel
from logkernel.broker.build import build
from logkernel.client.admin.access import entity
from logkernel.contracts import RequestContext
from logkernel.embed import EmbeddedLog
from logkernel.errors import ThrottlingQuotaExceeded
from logkernel.record.encode import encode_batch
from logkernel.requests import access as a
from logkernel.requests import topics as t
from logkernel.requests.cluster import MetadataRequest, MetadataRequestTopic
from logkernel.requests.data import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from logkernel.requests.groups import FindCoordinatorRequest
from logkernel.requests.transactions import WriteTxnMarkersRequest
from logkernel.testing import Kafka
from logkernel.vocabulary import Principal, Record

TOPIC = "t"
BATCH = encode_batch([Record(value=bytes(1_000), timestamp_ms=5)])
SIZE = len(BATCH)


class Ticking(HandClock):
    """Each look at it takes `look_ns`."""

    look_ns = 0
    now_ns = 0

    def mono_ns(self) -> int:
        self.now_ns += self.look_ns
        return self.now_ns


class Client:
    """Asks a broker, and keeps for how long its connection was muted."""

    def __init__(self, log: EmbeddedLog, client_id: str | None = "shop", user: str = "ann", **context: Any) -> None:
        self.log = log
        self.muted: list[int] = []
        self.context = RequestContext(
            client_id=client_id, mute=self.muted.append, principal=Principal("User", user), **context
        )

    def ask(self, request: Any) -> Any:
        found: list[Any] = []
        self.log.broker.submit(request, self.context, found.append)
        self.log.broker.step()
        (response,) = found
        return response

    def produce(self, times: int = 1, acks: int = -1, topic: str = TOPIC) -> Any:
        rows = [TopicProduceData(topic, [PartitionProduceData(0, bytearray(BATCH * times))])]
        return self.ask(ProduceRequest(None, acks, 1_000, rows))

    def fetch(self, **given: Any) -> Any:
        rows = [FetchTopic(TOPIC, [FetchPartition(0, 0, 1 << 20)])]
        return self.ask(FetchRequest(topics=rows, **given))


@pytest.fixture
def clock() -> Ticking:
    return Ticking(1_000)


@pytest.fixture
def log(clock: Ticking) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(build(None, (), in_memory=True, clock=clock)) as found:
        found.create_topic(TOPIC)
        yield found


def set_quota(log: Any, whose: dict[str, str | None], **values: float | None) -> None:
    """None takes a quota back."""
    parts = [
        a.AlterClientQuotasRequestEntryDataEntityData(kind.replace("_", "-"), name) for kind, name in whose.items()
    ]
    ops = [a.OpData(key, value or 0.0, remove=value is None) for key, value in values.items()]
    (row,) = log.request(a.AlterClientQuotasRequest([a.AlterClientQuotasRequestEntryData(parts, ops)])).entries
    assert row.error_code == 0, row.error_message


def test_a_writer_is_held_back_until_its_rate_is_back_at_its_quota(log: EmbeddedLog, clock: Ticking) -> None:
    set_quota(log, {"client_id": "shop"}, producer_byte_rate=SIZE)
    client, other = Client(log), Client(log, "till")
    assert [client.produce().throttle_time_ms for _ in range(12)] == [0] * 10 + [1_000, 2_000]
    assert client.muted == [1_000, 2_000]
    assert other.produce(50).throttle_time_ms == 0
    clock.now_ms += 11_000
    assert client.produce().throttle_time_ms == 0


def test_a_writer_without_acknowledgements_is_held_back_too(log: EmbeddedLog) -> None:
    set_quota(log, {"client_id": "shop"}, producer_byte_rate=SIZE)
    client = Client(log)
    client.produce(11, acks=0)
    assert client.muted == [1_000]


def test_what_fails_counts_as_well(log: EmbeddedLog) -> None:
    set_quota(log, {"client_id": "shop"}, producer_byte_rate=SIZE)
    client = Client(log)
    assert client.produce(11, topic="missing").throttle_time_ms == 1_000


def test_a_reader_is_answered_and_held_back(log: EmbeddedLog) -> None:
    for _ in range(4):
        Client(log, "loader").produce()
    set_quota(log, {"user": "ann"}, consumer_byte_rate=SIZE)
    client = Client(log)
    assert client.fetch().throttle_time_ms == client.fetch().throttle_time_ms == 0
    response = client.fetch()
    assert response.responses[0].partitions[0].records.size == 4 * SIZE
    assert (response.throttle_time_ms, client.muted) == (2_000, [2_000])


def test_a_fetch_brings_no_more_than_the_window_allows(log: EmbeddedLog) -> None:
    loader = Client(log, "loader")
    for _ in range(25):
        loader.produce()
    set_quota(log, {"user": "ann"}, consumer_byte_rate=SIZE)
    client = Client(log)
    response = client.fetch()
    assert response.responses[0].partitions[0].records.size == 10 * SIZE
    assert client.muted == []


def test_a_parked_fetch_is_measured_when_it_is_answered(log: EmbeddedLog, clock: Ticking) -> None:
    quota = SIZE // 100
    set_quota(log, {"user": "ann"}, consumer_byte_rate=quota)
    client, found = Client(log), []
    rows = [FetchTopic(TOPIC, [FetchPartition(0, 0, 1 << 20)])]
    log.broker.submit(FetchRequest(topics=rows, max_wait_ms=5_000, min_bytes=1), client.context, found.append)
    assert (found, client.muted) == ([], [])
    clock.now_ms += 3_000
    Client(log, "loader").produce()
    assert client.muted == [found[0].throttle_time_ms] == [(SIZE - 10 * quota) * 1000 // quota]


def test_all_clients_of_a_user_share_its_quota_and_a_client_has_its_own(log: EmbeddedLog) -> None:
    set_quota(log, {"user": None}, producer_byte_rate=SIZE)
    set_quota(log, {"user": "ann", "client_id": "bulk"}, producer_byte_rate=100 * SIZE)
    Client(log, "shop").produce(10)
    assert Client(log, "till").produce().throttle_time_ms == 1_000
    assert Client(log, "till", user="bob").produce(10).throttle_time_ms == 0
    assert Client(log, "bulk").produce(500).throttle_time_ms == 0


def test_changes_count_at_once_and_what_was_used_stays(log: EmbeddedLog) -> None:
    client = Client(log)
    set_quota(log, {"user": "ann"}, producer_byte_rate=SIZE)
    client.produce(10)
    set_quota(log, {"user": "ann"}, producer_byte_rate=SIZE // 2)
    assert client.produce().throttle_time_ms == 12_000
    set_quota(log, {"user": "ann"}, producer_byte_rate=None)
    assert client.produce().throttle_time_ms == 0


def test_quotas_that_are_kept_count_after_a_start(clock: Ticking, tmp_path: Any) -> None:
    for _ in range(2):
        with EmbeddedLog(build(None, {"log.dirs": str(tmp_path)}, clock=clock)) as log:
            if TOPIC not in log.broker.metadata.image.topics:
                log.create_topic(TOPIC)
                set_quota(log, {"user": "ann"}, producer_byte_rate=SIZE)
            else:
                assert Client(log).produce(11).throttle_time_ms == 1_000


def test_the_longest_time_is_told(log: EmbeddedLog, clock: Ticking) -> None:
    log.create_topic("slow", config={"quotas": "rate", "produce.quota.bytes.per.second": str(SIZE // 4)})
    set_quota(log, {"user": "ann"}, producer_byte_rate=SIZE)
    client = Client(log)
    assert client.produce(topic="slow").throttle_time_ms > 2_900
    assert client.produce(topic="slow").throttle_time_ms == max(client.muted)


def test_brokers_and_the_broker_itself_are_not_measured(log: EmbeddedLog) -> None:
    set_quota(log, {"user": None}, producer_byte_rate=1, consumer_byte_rate=1, request_percentage=0.001)
    internal = Client(log, internal=True)
    assert internal.produce(10).throttle_time_ms == internal.fetch().throttle_time_ms == 0
    follower = Client(log, "broker-2", commands=True)
    assert follower.fetch(replica_id=2).throttle_time_ms == 0
    assert internal.muted == follower.muted == []
    liar = Client(log)
    liar.fetch(replica_id=2)  # over a listener that is not the brokers'
    Client(log).produce()
    assert Client(log).fetch().throttle_time_ms > 0


def test_who_sends_what_brokers_send_is_measured_unless_it_may(clock: Ticking) -> None:
    """A client that is refused such requests could send as many as it liked."""
    settings = ["authorizer.class.name=standard", "super.users=User:broker;User:ANONYMOUS"]
    with EmbeddedLog(build(None, settings, in_memory=True, clock=clock)) as log:
        set_quota(log, {"user": None}, request_percentage=1.0)
        clock.look_ns = 400_000_000
        for request in (WriteTxnMarkersRequest(), FetchRequest(replica_id=2)):
            for user, muted in (("ann", [1_000]), ("broker", [])):
                client = Client(log, user=user, commands=True)
                client.ask(request)
                assert client.muted == muted, (request, user)


# ---------------------------------------------------------------- request_percentage


def test_time_on_the_thread_counts_before_and_after_the_answer(log: EmbeddedLog, clock: Ticking) -> None:
    set_quota(log, {"user": "ann"}, request_percentage=10.0)
    clock.look_ns = 400_000_000  # of the handler, of the answer, and of what is left after it
    client = Client(log)
    first, second = (client.ask(FindCoordinatorRequest("g")) for _ in range(2))
    assert first.throttle_time_ms == 0, "40 % s are within what ten seconds allow"
    assert second.throttle_time_ms == 1_000, "160 % s are not, and one sample is the longest time"
    assert client.muted == [1_000]


def test_the_time_in_which_a_request_was_read_counts(log: EmbeddedLog, clock: Ticking) -> None:
    set_quota(log, {"user": "ann"}, request_percentage=10.0)
    client = Client(log, reading_ns=lambda: 1_100_000_000)
    assert client.ask(FindCoordinatorRequest("g")).throttle_time_ms == 1_000, "110 % s are more than ten seconds allow"
    assert clock.now_ns == 0


def test_a_client_without_a_quota_is_not_timed(log: EmbeddedLog, clock: Ticking) -> None:
    set_quota(log, {"user": "bob"}, request_percentage=0.001)
    clock.look_ns = 400_000_000
    client = Client(log)
    assert client.ask(FindCoordinatorRequest("g")).throttle_time_ms == 0
    assert clock.now_ns == 0


def test_requests_that_the_broker_refuses_are_timed(log: EmbeddedLog, clock: Ticking) -> None:
    set_quota(log, {"user": "ann"}, request_percentage=1.0)
    clock.look_ns = 400_000_000
    client = Client(log)
    client.ask(t.CreateTopicsRequest([t.CreatableTopic("t", 1, 1)]))
    assert client.muted == [1_000]


# ---------------------------------------------------------------- controller_mutation_rate

STRICT = {"capabilities": frozenset({"throttling_quota", "topic_ids"})}


def creation(*sizes: int, first: int = 0) -> t.CreateTopicsRequest:
    topics = [t.CreatableTopic(f"new-{first + number}", size, 1) for number, size in enumerate(sizes)]
    return t.CreateTopicsRequest(topics, timeout_ms=1_000)


def test_a_client_that_knows_the_error_is_refused_topics_that_overdraw(log: EmbeddedLog, clock: Ticking) -> None:
    set_quota(log, {"client_id": "shop"}, controller_mutation_rate=1.0)
    client = Client(log, **STRICT)
    response = client.ask(creation(8, 5, 1, 1))
    code = ThrottlingQuotaExceeded.code
    assert [row.error_code for row in response.topics] == [0, 0, code, code]
    assert response.topics[2].error_message == "The throttling quota has been exceeded."
    assert response.throttle_time_ms == client.muted[0] == 2_000
    assert "new-2" not in log.broker.metadata.image.topics
    clock.now_ms += 2_000
    again = client.ask(creation(1, first=2))
    assert (again.topics[0].error_code, again.throttle_time_ms) == (0, 0)


def test_an_older_client_is_obeyed_and_held_back(log: EmbeddedLog) -> None:
    set_quota(log, {"client_id": "shop"}, controller_mutation_rate=1.0)
    client = Client(log)
    response = client.ask(creation(8, 5, 1))
    assert [row.error_code for row in response.topics] == [0, 0, 0]
    assert (response.throttle_time_ms, client.muted) == (3_000, [3_000])


def test_topics_that_metadata_creates_count(log: EmbeddedLog, clock: Ticking) -> None:
    """They cost nothing: a client could create as many as it liked by asking for them."""
    set_quota(log, {"client_id": "shop"}, controller_mutation_rate=1.0)
    client = Client(log)
    asked = MetadataRequest([MetadataRequestTopic(f"new-{number}") for number in range(14)])
    response = client.ask(asked)
    assert {row.error_code for row in response.topics} == {0}
    assert (response.throttle_time_ms, client.muted) == (3_000, [3_000])
    clock.now_ms += 3_000
    assert client.ask(asked).throttle_time_ms == 0, "they are there already"


def test_partitions_that_are_deleted_and_added_count(log: EmbeddedLog) -> None:
    set_quota(log, {"client_id": "shop"}, controller_mutation_rate=1.0)
    log.create_topic("big", 20)
    client = Client(log, **STRICT)
    assert client.ask(t.DeleteTopicsRequest(topics=[t.DeleteTopicState("big")])).responses[0].error_code == 0
    (row,) = client.ask(t.CreatePartitionsRequest([t.CreatePartitionsTopic(TOPIC, 3)], 1_000)).results
    assert row.error_code == ThrottlingQuotaExceeded.code
    assert client.muted == [9_000]


def test_a_topic_that_is_refused_anyway_costs_nothing(log: EmbeddedLog) -> None:
    set_quota(log, {"client_id": "shop"}, controller_mutation_rate=1.0)
    client = Client(log, **STRICT)
    for _ in range(3):
        client.ask(t.CreateTopicsRequest([t.CreatableTopic(TOPIC, 11, 1)]))
    assert client.ask(creation(11, 1)).topics[1].error_code == 0


# ---------------------------------------------------------------- over sockets, in clusters


def test_a_producer_of_librdkafka_is_told_its_time() -> None:
    from confluent_kafka import Producer

    told: list[Any] = []
    with Kafka(topics=[TOPIC]) as kafka:
        set_quota(kafka.log, {"client_id": "shop"}, producer_byte_rate=10_000)
        settings = {"bootstrap.servers": kafka.bootstrap_servers, "client.id": "shop", "throttle_cb": told.append}
        producer = Producer(settings)
        producer.produce(TOPIC, bytes(101_000))
        producer.flush(30)
        producer.poll(0)
        times = [event.throttle_time for event in told if event.throttle_time]
        assert len(times) == 1
        assert 0.1 <= times[0] < 0.2
        kafka.clock.advance(seconds=11)
        producer.produce(TOPIC, bytes(50_000))
        producer.flush(30)
        producer.poll(0)
        assert [event.throttle_time for event in told][-1] == 0
        del producer


def test_an_address_that_connects_too_often_is_not_served() -> None:
    from confluent_kafka.admin import AdminClient

    with Kafka(settings={"quota.window.num": 2}) as kafka:
        set_quota(kafka.log, {"ip": "127.0.0.1"}, connection_creation_rate=1)
        host, _, port = kafka.bootstrap_servers.rpartition(":")
        crowd = [socket.create_connection((host, int(port))) for _ in range(10)]
        refused, _, _ = select.select(crowd, [], [], 60)  # which of them, tells where the machine stalled
        assert [each.recv(1) for each in refused[:1]] == [b""], "ten are more than one a second allows"
        kafka.clock.advance(seconds=5)
        client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        assert client.list_topics(timeout=120).brokers
        for each in crowd:
            each.close()
        del client


def test_every_broker_of_a_cluster_takes_a_quota_into_force(eventually: Callable[..., None]) -> None:
    client = RequestContext(client_id="shop")
    with logkernel.open_cluster(brokers=3) as cluster, cluster.admin() as admin:

        def bound() -> list[bool]:
            return cluster.run(
                lambda: [broker.quotas.mutations(client) is not None for broker in cluster.inspector.running()]
            )

        assert bound() == [False] * 3
        admin.alter_client_quotas({entity({"user": None}): {"controller_mutation_rate": 1.0}})
        eventually(lambda: bound() == [True] * 3)
        admin.alter_client_quotas({entity({"user": None}): {"controller_mutation_rate": None}})
        eventually(lambda: bound() == [False] * 3)
