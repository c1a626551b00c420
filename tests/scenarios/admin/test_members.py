"""Leaders, reassignments, features, members, and resources with settings, asked of one broker."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from logkernel import errors as e
from logkernel.controller import features
from logkernel.controller.image import ClusterImage
from logkernel.record.encode import encode_batch
from logkernel.requests import cluster, configs, consumer_groups, data, offsets, placement, quorum, topics
from logkernel.requests.producers import InitProducerIdRequest
from logkernel.vocabulary import Record

OFFSETS_TOPIC = "__consumer_offsets"
INTERNAL = (OFFSETS_TOPIC, "__share_group_state", "__transaction_state")
LEVELS = {"group.version": (0, 1, 1), "transaction.version": (0, 2, 2)}


def test_elections_have_nothing_to_do(start: Any) -> None:
    log = start()
    log.create_topic("t", 2)
    asked = [placement.TopicPartitions("t", [0, 7]), placement.TopicPartitions("none", [0])]
    for kind in (0, 1):
        rows = log.request(placement.ElectLeadersRequest(kind, asked)).replica_election_results
        assert [(row.topic, one.partition_id, one.error_code) for row in rows for one in row.partition_result] == [
            ("t", 0, e.ElectionNotNeeded.code),
            ("t", 7, e.UnknownTopicOrPartition.code),
            ("none", 0, e.UnknownTopicOrPartition.code),
        ]
        assert log.request(placement.ElectLeadersRequest(kind, None)).replica_election_results == []
    assert log.request(placement.ElectLeadersRequest(5, None)).error_code == e.InvalidRequest.code


def test_an_offline_partition_has_no_leader_to_elect(start: Any) -> None:
    log = start()
    log.create_topic("t", 2)
    broker = log.broker
    name = next(name for name in broker.replicas.led if name.topic == "t")
    broker.replicas.storage_failed(broker.replicas.led[name], OSError(5, "gone"))
    for kind, code in ((0, e.PreferredLeaderNotAvailable.code), (1, e.EligibleLeadersNotAvailable.code)):
        (row,) = log.request(placement.ElectLeadersRequest(kind, None)).replica_election_results
        assert {one.error_code for one in row.partition_result} == {code}


@pytest.mark.parametrize(
    ("topic", "partition", "replicas", "code"),
    [
        ("t", 0, [1], 0),
        ("t", 0, None, e.NoReassignmentInProgress.code),
        ("t", 0, [1, 2], e.InvalidReplicaAssignment.code),
        ("t", 0, [1, 1], e.InvalidReplicaAssignment.code),
        ("t", 0, [], e.InvalidReplicaAssignment.code),
        ("t", 9, [1], e.UnknownTopicOrPartition.code),
        ("none", 0, [1], e.UnknownTopicOrPartition.code),
    ],
)
def test_a_reassignment_is_taken_or_refused_by_name(
    start: Any, topic: str, partition: int, replicas: list[int] | None, code: int
) -> None:
    log = start("node.id=1")
    log.create_topic("t")
    rows = [placement.ReassignableTopic(topic, [placement.ReassignablePartition(partition, replicas)])]
    (row,) = log.request(placement.AlterPartitionReassignmentsRequest(topics=rows)).responses
    assert [one.error_code for one in row.partitions] == [code]
    assert log.request(placement.ListPartitionReassignmentsRequest()).topics == []


def update(*rows: tuple[str, int, int], dry: bool = False) -> tuple[int, list[tuple[str, int]]]:
    request = quorum.UpdateFeaturesRequest(
        feature_updates=[quorum.FeatureUpdateKey(name, level, kind) for name, level, kind in rows], validate_only=dry
    )
    outcome = features.update(request, LEVELS)
    return outcome.response.error_code, [(change.key, dict(change.value or {})["level"]) for change in outcome.changes]


@pytest.mark.parametrize(
    ("rows", "dry", "answer"),
    [
        ([("transaction.version", 1, 2)], False, (0, [("transaction.version", 1)])),
        ([("transaction.version", 1, 3)], False, (0, [("transaction.version", 1)])),
        ([("transaction.version", 1, 2)], True, (0, [])),
        ([("transaction.version", 2, 1)], False, (0, [])),
        ([("transaction.version", 0, 2)], False, (0, [("transaction.version", 0)])),
        ([("transaction.version", 1, 1)], False, (e.InvalidUpdateVersion.code, [])),
        ([("transaction.version", 3, 1)], False, (e.InvalidUpdateVersion.code, [])),
        ([("transaction.version", -1, 2)], False, (e.InvalidUpdateVersion.code, [])),
        ([("transaction.version", 1, 9)], False, (e.InvalidUpdateVersion.code, [])),
        ([("no.such", 1, 1)], False, (e.InvalidUpdateVersion.code, [])),
        ([("group.version", 0, 2), ("no.such", 1, 1)], False, (e.InvalidUpdateVersion.code, [])),
        ([("group.version", 0, 2), ("group.version", 0, 2)], False, (e.InvalidRequest.code, [])),
    ],
)
def test_feature_updates_are_taken_or_refused(rows: Any, dry: bool, answer: Any) -> None:
    assert update(*rows, dry=dry) == answer


def test_a_snapshot_keeps_the_epoch_of_features() -> None:
    image = ClusterImage()
    for level in (1, 2, 1):
        row = quorum.FeatureUpdateKey("transaction.version", level, 2)
        request = quorum.UpdateFeaturesRequest(feature_updates=[row])
        known = {"transaction.version": (0, 2, image.features.get("transaction.version", 0))}
        image.apply_all(features.update(request, known).changes)
    assert image.features_epoch == 3
    assert ClusterImage.of(image.snapshot()) == image


def test_the_cluster_has_no_quorum_and_keeps_its_broker(start: Any) -> None:
    log = start("node.id=1")
    response = log.request(quorum.DescribeQuorumRequest())
    assert response.error_code == e.UnsupportedVersion.code
    assert "quorum" in response.error_message
    assert log.request(quorum.UnregisterBrokerRequest(7)).error_code == e.BrokerIdNotRegistered.code
    assert log.request(quorum.UnregisterBrokerRequest(1)).error_code == e.InvalidRequest.code
    for kind, code in ((1, 0), (2, e.MismatchedEndpointType.code), (3, e.UnsupportedEndpointType.code)):
        assert log.request(cluster.DescribeClusterRequest(endpoint_type=kind)).error_code == code


# ---------------------------------------------------------------- settings


def alter(log: Any, kind: int, name: str, *rows: tuple[str, int, str | None], dry: bool = False) -> int:
    one = configs.IncrementalAlterConfigsAlterableConfig
    resource = configs.IncrementalAlterConfigsAlterConfigsResource(kind, name, [one(*row) for row in rows])
    (row,) = log.request(configs.IncrementalAlterConfigsRequest([resource], dry)).responses
    assert (row.resource_type, row.resource_name) == (kind, name)
    return row.error_code  # type: ignore[no-any-return]


def described(log: Any, kind: int, name: str) -> dict[str, tuple[str | None, int]]:
    request = configs.DescribeConfigsRequest([configs.DescribeConfigsResource(kind, name, None)], True, True)
    (row,) = log.request(request).results
    assert row.error_code == 0, row.error_message
    assert all(one.documentation for one in row.configs)
    return {one.name: (one.value, one.config_source) for one in row.configs}


def listed(log: Any, *kinds: int) -> list[tuple[int, str]]:
    response = log.request(configs.ListConfigResourcesRequest(list(kinds)))
    assert response.error_code == 0
    return [(one.resource_type, one.resource_name) for one in response.config_resources]


def test_what_has_settings_is_listed(start: Any) -> None:
    log = start("node.id=1")
    log.create_topic("t")
    assert listed(log) == [(2, "t"), (4, "1"), (8, "1")]
    assert alter(log, 16, "m", ("interval.ms", 0, "5000")) == 0
    assert alter(log, 32, "g", ("share.isolation.level", 0, "read_committed")) == 0
    assert listed(start("node.id=1"), 16, 32) == [(16, "m"), (32, "g")]
    log = start("node.id=1")
    assert alter(log, 32, "g", ("share.isolation.level", 1, None)) == 0
    assert listed(log, 32, 16) == [(16, "m")]
    assert log.request(configs.ListConfigResourcesRequest([3])).error_code == e.UnsupportedVersion.code


def test_a_groups_own_times_are_what_its_members_hear(start: Any) -> None:
    log = start("group.consumer.min.heartbeat.interval.ms=100")
    log.create_topic("t")
    beat = consumer_groups.ConsumerGroupHeartbeatRequest(
        "g", "m", 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    assert log.request(beat).heartbeat_interval_ms == 5_000
    assert alter(log, 32, "g", ("consumer.heartbeat.interval.ms", 0, "300")) == 0
    assert log.request(beat).heartbeat_interval_ms == 300
    assert alter(log, 32, "g", ("consumer.heartbeat.interval.ms", 1, None)) == 0
    assert log.request(beat).heartbeat_interval_ms == 5_000


@pytest.mark.parametrize(("name", "code"), [("", 17), ("bad name", 17), ("..", 17), ("none", 3)])
def test_settings_of_topics_that_are_not_there(start: Any, name: str, code: int) -> None:
    request = configs.DescribeConfigsRequest([configs.DescribeConfigsResource(2, name, None)])
    assert start().request(request).results[0].error_code == code


def test_what_services_keep_is_not_cut_off_by_clients(start: Any) -> None:
    log = start("offsets.topic.num.partitions=1")
    log.create_topic("t")
    log.create_topic(OFFSETS_TOPIC)
    asked = [offsets.DeleteRecordsTopic(name, [offsets.DeleteRecordsPartition(0, -1)]) for name in (OFFSETS_TOPIC, "t")]
    rows = log.request(offsets.DeleteRecordsRequest(asked, 1_000)).topics
    assert [(row.name, row.partitions[0].error_code) for row in rows] == [
        (OFFSETS_TOPIC, e.InvalidTopicException.code),
        ("t", 0),
    ]


def test_what_services_keep_is_not_added_to_by_clients(start: Any) -> None:
    """A record there that its service cannot read took the shard away for good."""
    log = start()
    for name in INTERNAL:
        log.create_topic(name)
    for name in INTERNAL:
        rows = [data.PartitionProduceData(0, bytearray(encode_batch([Record(b"k", b"v", timestamp_ms=1)])))]
        asked = data.ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[data.TopicProduceData(name, rows)])
        assert log.request(asked).responses[0].partition_responses[0].error_code == e.InvalidTopicException.code


def test_an_id_that_a_client_made_up_is_not_counted_on_from(start: Any) -> None:
    """The next id after 2**63 - 1 fits no field: nobody got one any more."""
    log = start()
    log.create_topic("t")
    for producer_id in (2**63 - 1, 7_000_000):
        record = Record(b"k", b"v", timestamp_ms=1)
        batch = encode_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=0)
        rows = [data.PartitionProduceData(0, bytearray(batch))]
        asked = data.ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[data.TopicProduceData("t", rows)])
        assert log.request(asked).responses[0].partition_responses[0].error_code == 0
    given = start().request(InitProducerIdRequest())
    assert (given.error_code, given.producer_id) == (0, 7_000_001)


@pytest.mark.parametrize(("stamp", "offset"), [(-1, 1), (-2, 0), (-4, 0), (-5, -1), (-6, -1)])
def test_offsets_where_nothing_is_tiered(start: Any, stamp: int, offset: int) -> None:
    log = start()
    log.create_topic("t")
    log.append("t", value=b"v")
    asked = offsets.ListOffsetsTopic("t", [offsets.ListOffsetsPartition(0, stamp)])
    (row,) = log.request(offsets.ListOffsetsRequest(topics=[asked])).topics[0].partitions
    assert (row.error_code, row.offset) == (0, offset)


@pytest.mark.parametrize(("partitions", "factor"), [(0, 0), (0, -2), (-2, 0)])
def test_of_two_wrong_numbers_the_factor_is_told(start: Any, partitions: int, factor: int) -> None:
    """As Kafka 4.3 has it."""
    wanted = topics.CreateTopicsRequest([topics.CreatableTopic("t", partitions, factor)], timeout_ms=1_000)
    assert start().request(wanted).topics[0].error_code == e.InvalidReplicationFactor.code


def test_client_metrics_subscriptions_outlive_a_restart(start: Any) -> None:
    log = start()
    assert described(log, 16, "m") == {"interval.ms": ("300000", 5), "match": ("", 5), "metrics": ("", 5)}
    assert alter(log, 16, "m", ("match", 0, "client_id=a.*,client_software_name=x"), ("interval.ms", 0, "100")) == 0
    assert described(start(), 16, "m")["match"] == ("client_id=a.*,client_software_name=x", 7)


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([("interval.ms", 0, "99")], e.InvalidRequest.code),
        ([("interval.ms", 0, "3600001")], e.InvalidRequest.code),
        ([("interval.ms", 0, "x")], e.InvalidConfig.code),
        ([("no.such", 0, "1")], e.InvalidRequest.code),
        ([("match", 0, "color=red")], e.InvalidConfig.code),
        ([("match", 0, "client_id=[")], e.InvalidConfig.code),
        ([("match", 0, "client_id")], e.InvalidConfig.code),
        ([("match", 0, "client_id=" + "a" * 2000)], e.InvalidConfig.code),
        ([("metrics", 2, "x")], e.InvalidConfig.code),
    ],
)
def test_subscriptions_that_make_no_sense(start: Any, rows: Any, code: int) -> None:
    log = start()
    assert alter(log, 16, "m", *rows) == code
    assert alter(log, 16, "", ("interval.ms", 0, "5000")) == e.InvalidRequest.code
    assert listed(log, 16) == []


@pytest.mark.parametrize("name", ["9", "x", "²", "-1", "1" * 5000])
def test_settings_of_brokers_that_are_not_there(start: Any, name: str) -> None:
    assert alter(start("node.id=1"), 4, name, ("message.max.bytes", 0, "1000")) == e.InvalidRequest.code


@pytest.fixture
def levels() -> Iterator[None]:
    names = ["logkernel", *(name for name in logging.root.manager.loggerDict if name.startswith("logkernel."))]
    before = {name: logging.getLogger(name).level for name in names}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def test_log_levels(start: Any, levels: None) -> None:
    log = start("node.id=1")
    assert alter(log, 8, "1", ("root", 0, "ERROR"), ("logkernel.storage", 0, "DEBUG")) == 0
    found = described(log, 8, "1")
    assert found["root"] == ("ERROR", 6)
    assert found["logkernel.storage"] == ("DEBUG", 6)
    assert found["logkernel.admin"] == ("ERROR", 6)
    assert logging.getLogger("logkernel.storage").level == logging.DEBUG
    assert alter(log, 8, "1", ("logkernel.storage", 1, None)) == 0
    assert described(log, 8, "1")["logkernel.storage"] == ("ERROR", 6)
    assert alter(log, 8, "1", ("root", 0, "TRACE"), dry=True) == 0
    assert described(log, 8, "1")["root"] == ("ERROR", 6)


@pytest.mark.parametrize(
    ("name", "row", "code"),
    [
        ("1", ("root", 0, "LOUD"), e.InvalidConfig.code),
        ("1", ("root", 0, "info"), e.InvalidConfig.code),
        ("1", ("root", 0, None), e.InvalidConfig.code),
        ("1", ("no.such", 0, "INFO"), e.InvalidConfig.code),
        ("1", ("pytest", 0, "INFO"), e.InvalidConfig.code),
        ("1", ("root", 1, None), e.InvalidRequest.code),
        ("1", ("root", 2, "INFO"), e.InvalidRequest.code),
        ("2", ("root", 0, "INFO"), e.InvalidRequest.code),
        ("", ("root", 0, "INFO"), e.InvalidRequest.code),
    ],
)
def test_log_levels_that_make_no_sense(start: Any, levels: None, name: str, row: Any, code: int) -> None:
    assert alter(start("node.id=1"), 8, name, row) == code
