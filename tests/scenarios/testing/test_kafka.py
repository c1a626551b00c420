"""`logkernel.testing.Kafka` as a test uses it, with unmodified outside clients."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import confluent_kafka
import kafka as kafka_python
import pytest

from logkernel.errors import (
    ConfigError,
    InvalidConfig,
    LogkernelError,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from logkernel.hookspecs import hookimpl
from logkernel.testing import Kafka, containing
from logkernel.testing.kafka.namespace import KafkaNamespace
from logkernel.testing.kafka.requests import MOST_KEPT

NUMBERS = count(1)
"""Of namespaces: each test has names of its own."""


@pytest.fixture(scope="module", params=[False, True], ids=["here", "process"])
def shared(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    with Kafka(process=request.param) as kafka:
        yield kafka


@pytest.fixture
def own(shared: Kafka) -> Iterator[KafkaNamespace]:
    with KafkaNamespace(shared, next(NUMBERS)) as namespace:
        yield namespace


def made(own: KafkaNamespace) -> set[str]:
    """The topics of this test. A client of an earlier one may have asked late for a topic, which made it again."""
    return {name for name in own.topics if own.topic(name) == name}


def produced(bootstrap: str, topic: str, *records: dict[str, Any], **settings: Any) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "client.id": "shop", **settings})
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(10) == 0


class Consumer:
    """A consumer of confluent-kafka in a group, closed behind the test."""

    def __init__(self, bootstrap: str, group: str, *topics: str, **settings: Any) -> None:
        conf = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", **settings}
        self.client = confluent_kafka.Consumer(conf)
        self.client.subscribe(list(topics))

    def __enter__(self) -> confluent_kafka.Consumer:
        return self.client

    def __exit__(self, *exc: object) -> None:
        self.client.close()


# ---------------------------------------------------------------- records


def test_what_a_client_produces_is_found(own: KafkaNamespace) -> None:
    topic = own.topic("orders")
    produced(own.bootstrap_servers, topic, {"value": b'{"id": 7, "who": "ann"}', "key": b"ann", "headers": {"h": b"1"}})

    found = own.assert_produced("orders", key="ann", value=containing(id=7), headers={"h": "1"})

    assert found.json == {"id": 7, "who": "ann"}
    assert found.text == '{"id": 7, "who": "ann"}'
    assert own.records("orders") == own.records(topic, 0) == [found]


def test_a_record_is_waited_for(own: KafkaNamespace) -> None:
    topic = own.topic("late")
    later = threading.Timer(0.05, produced, (own.bootstrap_servers, topic, {"value": b"here"}))
    later.start()
    assert own.assert_produced("late", value="here", within=10).offset == 0
    later.join()


def test_a_record_that_is_missing_is_told_with_what_there_is(own: KafkaNamespace) -> None:
    own.produce("orders", {"id": 8}, key="ann")
    with pytest.raises(AssertionError) as failed:
        own.assert_produced("orders", key="ann", value={"id": 7})
    assert "value.id: expected 7, found 8" in str(failed.value)
    assert re.search(r"closest +orders\S*-0@0", str(failed.value))

    with pytest.raises(AssertionError, match="there is no topic 'ordres'; did you mean 'orders'"):
        own.assert_produced("ordres")


def test_records_that_were_seen_are_not_read_again(own: KafkaNamespace) -> None:
    own.create_topic("orders", 2)
    for number in range(5):
        own.produce("orders", number, partition=number % 2)
    with pytest.raises(AssertionError) as failed:
        own.assert_produced("orders", value=9, within=0.05)
    assert str(failed.value).count("value='3'") == 1


def test_a_test_produces_for_clients(own: KafkaNamespace) -> None:
    own.create_topic("orders", partitions=2)
    own.produce("orders", "hello", key="ann", headers={"h": "1"}, partition=1, timestamp_ms=5)
    with Consumer(own.bootstrap_servers, own.group("g"), own.topic("orders")) as consumer:
        message = consumer.poll(10)
        assert message is not None
        assert (message.key(), message.value(), message.partition()) == (b"ann", b"hello", 1)
        assert (message.headers(), message.timestamp()[1]) == ([("h", b"1")], 5)


def test_aborted_records_are_seen_only_if_asked_for(own: KafkaNamespace) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": own.bootstrap_servers, "transactional.id": own.group("t")}
    )
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(own.topic("orders"), b"open")
    producer.flush(10)
    own.assert_produced("orders", value="open", isolation="read_uncommitted", within=10)
    with pytest.raises(AssertionError, match="nothing"):
        own.assert_produced("orders", value="open")
    producer.abort_transaction(10)
    assert own.records("orders") == []


# ---------------------------------------------------------------- topics and settings


def test_topics_have_the_settings_that_are_asked_for() -> None:
    topics = {"plain": 1, "three": 3, "short": {"partitions": 2, "retention_ms": 1000, "cleanup.policy": "compact"}}
    with Kafka(topics=topics, settings={"num_partitions": 4, "auto.create.topics.enable": False}) as kafka:
        kafka.create_topics(["more"])
        assert kafka.topics == {"plain": 1, "three": 3, "short": 2, "more": 4}
        with kafka.admin() as admin:
            config = admin.describe_configs(("topic", "short"))
        assert "compact" in str(config)
        with pytest.raises(TopicAlreadyExists):
            kafka.create_topic("more")
        with pytest.raises(UnknownTopicOrPartition):
            kafka.delete_topic("none")


def test_no_group_waits_for_more_members() -> None:
    """Where a test does not ask for it."""
    names = ["group.initial.rebalance.delay.ms", "group.streams.initial.rebalance.delay.ms"]
    with Kafka(sockets=False) as kafka, kafka.admin() as admin:
        ((_, found),) = admin.describe_configs(("broker", "1"), names=names).items()
    assert {name: entry.value for name, entry in found.items()} == dict.fromkeys(names, "0")


def test_bad_settings_and_topics_leave_nothing_open(eventually: Callable[..., None]) -> None:
    before = set(threading.enumerate())
    with pytest.raises(ConfigError, match=r"no\.such"):
        Kafka(settings={"no.such.setting": 1})
    with pytest.raises(LogkernelError):
        Kafka(topics={"bad name": 1})
    eventually(lambda: set(threading.enumerate()) <= before, what="no thread more than before")


def test_a_plugin_is_the_tests_own() -> None:
    class Told:
        def __init__(self) -> None:
            self.topics: list[str] = []

        @hookimpl
        def logkernel_topic_created(self, topic: str) -> None:
            self.topics.append(topic)

    told = Told()
    with Kafka(plugins=[told], topics=["orders"]):
        assert told.topics == ["orders"]


def test_without_sockets_our_own_clients_reach_it() -> None:
    with Kafka(sockets=False) as kafka:
        with kafka.producer() as producer:
            producer.send("orders", b"1").result(60)
        kafka.assert_produced("orders", value="1")
        with kafka.consumer("orders", group="g", auto_offset_reset="earliest") as consumer:
            assert [record.value for record in consumer.poll(10)] == [b"1"]
        with pytest.raises(LogkernelError, match="no sockets"):
            _ = kafka.bootstrap_servers


def test_a_broker_in_a_folder_is_found_again(tmp_path: Any) -> None:
    with Kafka(path=tmp_path, topics=["orders"]) as kafka:
        kafka.produce("orders", "kept")
    with Kafka(path=tmp_path) as kafka:
        assert [record.text for record in kafka.records("orders")] == ["kept"]


# ---------------------------------------------------------------- what clients asked


def test_requests_are_seen_decoded(own: KafkaNamespace) -> None:
    topic = own.topic("orders")
    produced(own.bootstrap_servers, topic, {"value": b"1"}, acks="all")
    asked = own.requests.of("Produce", client_id="shop")
    assert len(asked) == 1
    request = asked[0]
    assert request.version >= 7
    assert request.fields["acks"] == -1
    assert request.fields["topic_data"][0]["name"] == topic
    assert b"1" in request.fields["topic_data"][0]["partition_data"][0]["records"]
    assert request.software.startswith("confluent-kafka-python")
    assert own.requests.of("ApiVersions")[0].request.client_software_name == "confluent-kafka-python"
    assert abs(request.at_ms - time.time() * 1000) < 60_000
    assert "Produce v" in str(request)

    own.requests.clear()
    assert own.requests.of("Produce") == ()


def test_an_api_that_does_not_exist_is_refused(own: KafkaNamespace) -> None:
    """A misspelt name found no request, so that a test that expects none passed."""
    with pytest.raises(ConfigError, match=r"^there is no API 'Prodcue'; did you mean 'Produce'\?"):
        own.requests.of("Prodcue")
    assert own.requests.of("AlterPartition") == ()


def test_records_of_a_request_are_those_that_came(own: KafkaNamespace) -> None:
    """They lie in a buffer that the connection uses again."""
    topic = own.topic("orders")
    producer = kafka_python.KafkaProducer(bootstrap_servers=own.bootstrap_servers, client_id="py")
    for number in range(20):
        producer.send(topic, b"value-%d" % number).get(10)
    producer.close()
    sent = [
        row["records"]
        for request in own.requests.of("Produce", client_id="py")
        for part in request.fields["topic_data"]
        for row in part["partition_data"]
    ]
    assert all(b"value-%d" % number in data for number, data in enumerate(sent))
    assert len(sent) == 20


def test_the_newest_requests_are_kept() -> None:
    from logkernel.requests.topics import DeleteTopicsRequest
    from logkernel.testing.kafka.requests import ClientRequest, RequestLog

    log = RequestLog()
    for number in range(MOST_KEPT + 5):
        log.add(ClientRequest("DeleteTopics", 6, None, "", 1, number, 0, DeleteTopicsRequest()), 0)
    kept = list(log)
    assert (len(kept), kept[0].correlation_id) == (MOST_KEPT, 5)


# ---------------------------------------------------------------- groups and offsets


def test_a_group_and_its_commits_are_waited_for(own: KafkaNamespace) -> None:
    own.create_topic("orders", 2)
    own.produce("orders", "1", partition=0)
    group, topic = own.group("billing"), own.topic("orders")
    with Consumer(own.bootstrap_servers, group, topic) as one:
        assert one.poll(10) is not None
        assert own.wait_for_group("billing", members=1, state="Stable").id == group
        one.commit(asynchronous=False)
        own.wait_for_commit("billing", "orders", 0, offset=1)
        with pytest.raises(AssertionError, match=r"group billing is Stable with 1 members, not 2 members"):
            own.wait_for_group("billing", members=2, within=0.05)
        with pytest.raises(AssertionError, match="has committed 1 of orders-0, not 2"):
            own.wait_for_commit("billing", "orders", 0, offset=2, within=0.05)
    own.wait_for_group("billing", members=0, state="Empty")
    with pytest.raises(AssertionError, match="does not exist"):
        own.wait_for_group("nobody", within=0.05)


def test_an_end_offset_is_waited_for(own: KafkaNamespace) -> None:
    later = threading.Timer(0.05, own.produce, ("orders", "1"))
    later.start()
    own.wait_for_offset("orders", offset=1)
    later.join()
    with pytest.raises(AssertionError, match="orders-0 ends at 1, not at 2"):
        own.wait_for_offset("orders", offset=2, within=0.05)


# ---------------------------------------------------------------- namespaces


def test_a_namespace_leaves_nothing_behind(shared: Kafka) -> None:
    before = set(shared.topics)
    with KafkaNamespace(shared, 1, "test_one[a b]") as one:
        one.produce("orders", "1")
        shared.create_topic("stray")
        assert re.fullmatch(r"orders\.1-test_one-a-b", one.topic("orders"))
        assert one.topic(one.topic("orders")) == one.topic("orders")
        produced(one.bootstrap_servers, one.topic("orders"), {"value": b"2"})
        assert one.requests
    with KafkaNamespace(shared, 2) as other:
        assert set(other.topics) <= before
        assert other.requests == ()
        assert len(KafkaNamespace(shared, 3, "x" * 300).topic("orders")) == 249


# ---------------------------------------------------------------- what goes wrong in a test is told


def test_a_wait_for_what_does_not_exist_says_so(own: KafkaNamespace) -> None:
    """It said that the topic ends at -1."""
    own.create_topic("orders", 2)
    with pytest.raises(AssertionError, match=r"there is no topic 'order'; did you mean 'orders'\?"):
        own.wait_for_offset("order", offset=1, within=0)
    with pytest.raises(AssertionError, match="there is no topic 'nothing'; create it, or have a client write to it"):
        own.wait_for_commit("billing", "nothing", offset=1, within=0)
    with pytest.raises(AssertionError, match=r"orders has no partition 2 \(it has 2 partitions\)"):
        own.wait_for_offset("orders", 2, offset=1, within=0)
    with pytest.raises(AssertionError, match="has committed nothing of orders-1, not 1"):
        own.wait_for_commit("billing", "orders", 1, offset=1, within=0)


def test_a_wait_for_a_commit_tells_of_the_other_partitions(own: KafkaNamespace) -> None:
    """A record without a key may be in any partition, and partition 0 is meant where none is given."""
    own.create_topic("orders", 3)
    own.produce("orders", "1", partition=2)
    with own.consumer("orders", group="billing", auto_offset_reset="earliest") as consumer:
        while not consumer.poll(1):
            pass
        consumer.commit()
    with pytest.raises(AssertionError, match=r"of orders-0, not 1; but 1 of orders-2$"):
        own.wait_for_commit("billing", "orders", offset=1, within=0)


def test_records_of_a_topic_that_does_not_exist_are_refused(own: KafkaNamespace) -> None:
    """A misspelt name had no records, so that a test that expects none passed."""
    own.create_topic("orders", 1)
    with pytest.raises(UnknownTopicOrPartition, match=r"^there is no topic 'ordres'; did you mean 'orders'\?$"):
        own.records("ordres")
    with pytest.raises(
        UnknownTopicOrPartition, match=r"^there is no topic 'x'; create it, or have a client write to it"
    ):
        own.iterate("x")
    with pytest.raises(UnknownTopicOrPartition):
        own.records("x", 0)
    for clean in (own.compact, own.apply_retention):
        with pytest.raises(UnknownTopicOrPartition, match=r"^there is no topic 'ordres'; did you mean 'orders'\?$"):
            clean("ordres")
    assert own.records("orders") == []


def test_headers_are_a_mapping(own: KafkaNamespace) -> None:
    """It was an AttributeError."""
    wrong: Any = [("h", "1")]
    for call in (own.produce, own.assert_produced):
        with pytest.raises(TypeError, match=r"^headers=\[\('h', '1'\)\] are no mapping; pass names and values, e.g. "):
            call("orders", headers=wrong)
    assert made(own) == set()


def test_a_state_that_no_group_is_in_is_refused(own: KafkaNamespace) -> None:
    """It was waited for until the time was up."""
    for given, meant in (("stabel", "Stable"), ("EMPTY", "Empty"), ("completing-rebalance", "CompletingRebalance")):
        with pytest.raises(ConfigError, match=f"^there is no state '{given}' of groups; did you mean '{meant}'"):
            own.wait_for_group("billing", state=given)
    with pytest.raises(ConfigError, match=r"^there is no state 'xyz' of groups; there are PreparingRebalance, "):
        own.wait_for_group("billing", state="xyz")


@pytest.mark.parametrize(
    ("topics", "said"),
    [
        ({"orders": {"partition": 3}}, "topic orders has no setting 'partition'; did you mean 'partitions'?"),
        ({"orders": {"num_partitions": 3}}, "topic orders has no setting 'num.partitions'; did you mean 'partitions'?"),
        ({"orders": {"partitoner": "default"}}, "Unknown topic config name: partitoner; did you mean partitioner?"),
        ({"orders": "3"}, "topic orders: '3' is no number of partitions; write names, "),
        ({"orders": {"partitions": "3"}}, "topic orders: '3' is no number of partitions; write names, "),
        ({"orders": True}, "topic orders: True is no number of partitions; write names, "),
        ([3], "3 is no name of a topic; write names, "),
        (3, "topics=3: write names, "),
    ],
)
def test_topics_that_are_none_are_told_with_their_remedy(own: KafkaNamespace, topics: Any, said: str) -> None:
    with pytest.raises((ConfigError, InvalidConfig), match=f"^{re.escape(said)}"):
        own.create_topics(topics)
    assert made(own) == set()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"value": {1, 2}},
            "JSON cannot express the value, a 'set': Object of type set is not JSON serializable; pass ",
        ),
        ({"value": {"a": object()}}, "JSON cannot express the value, a 'dict': "),
        ({"key": object()}, "JSON cannot express the key, a 'object': "),
        ({"headers": {"h": {1}}}, "JSON cannot express the header 'h', a 'set': "),
    ],
)
def test_what_json_cannot_express_is_refused_by_its_type(own: KafkaNamespace, given: Any, said: str) -> None:
    """It was a traceback of the json module, and the topic was made."""
    with pytest.raises(TypeError, match=f"^{re.escape(said)}") as refused:
        own.produce("orders", **given)
    assert refused.value.__suppress_context__
    assert made(own) == set()


def test_views_of_bytes_are_bytes(own: KafkaNamespace) -> None:
    own.produce("orders", bytearray(b"v"), key=memoryview(b"k"))
    own.assert_produced("orders", key=b"k", value=b"v")


def test_a_client_that_outlived_its_broker_says_what_to_do() -> None:
    """It said to open the log again."""
    with Kafka(topics=["orders"], sockets=False) as kafka:
        old = kafka.producer(), kafka.consumer("orders")
        kafka.kill()
        with pytest.raises(LogkernelError, match=r"the broker does not run: start\(\) it"):
            kafka.records("orders")
        kafka.start()
        for call in (lambda: old[0].send("orders", b"1").result(), lambda: old[1].poll(0)):
            with pytest.raises(LogkernelError, match="a client ends with its log: make a new one"):
                call()


def test_a_bad_setting_is_told_by_its_place() -> None:
    """It named `--set`, an option of a command line."""
    with pytest.raises(ConfigError, match=r"^settings: num\.partitions=x: "):
        Kafka(settings={"num_partitions": "x"})
    with pytest.raises(ConfigError, match=r"^as_version: logkernel\.as\.version=1\.0: .* one of: 2\.8, 3\.0, "):
        Kafka(as_version="1.0")
