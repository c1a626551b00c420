"""What the recorded conversation with Kafka does not show: placement, internal topics, ids, effects."""

from __future__ import annotations

from itertools import count
from typing import Any
from uuid import UUID

import pytest

from logkernel.config.broker import BrokerConfig
from logkernel.config.topic import TopicSettings
from logkernel.contracts import ServiceDeclaration, ServiceTopic
from logkernel.controller.controller import Controller
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.controller.image import BrokerRegistration, ClusterImage, Partition, Topic
from logkernel.controller.internal import internal_topics
from logkernel.controller.placement import Placing
from logkernel.controller.producers import ProducerIds
from logkernel.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopicException,
    PluginError,
    PolicyViolation,
    TopicAlreadyExists,
    TopicDeletionDisabled,
    UnknownTopicOrPartition,
)
from logkernel.kernel import Kernel
from logkernel.requests import configs as c
from logkernel.requests import topics as t

KERNEL = Kernel(allow=())


class Bench:
    def __init__(self, nodes: int = 0, **settings: Any) -> None:
        ids = count(1)
        given = {name.replace("_", "."): value for name, value in settings.items()}
        config = BrokerConfig.load(None, given, KERNEL.declarations())
        self.image = ClusterImage()
        topics = internal_topics(KERNEL.services(), config)
        self.controller = Controller(config, 1, lambda: UUID(int=next(ids)), topics, KERNEL.placement)
        for node in range(1, nodes + 1):
            self.keep(self.controller.register(self.image, BrokerRegistration(node, {"PLAINTEXT": ("h", node)})))

    def keep(self, result: ControllerResult) -> Any:
        self.image.apply_all(result.changes)
        return result.response


def test_too_many_replicas() -> None:
    with pytest.raises(InvalidReplicationFactor, match=r"replication factor 3 .* 2 are registered; ask for at most 2"):
        Placing([(1, None), (2, None)], KERNEL.placement, lambda below: 0).place(TopicSettings(), 1, 3)


def test_created_and_validated_only() -> None:
    bench = Bench(default_replication_factor=2, num_partitions=3, nodes=2)
    topic = t.CreatableTopic("a", -1, -1, configs=[t.CreatableTopicConfig("retention.ms", "5")])
    dry = bench.controller.create_topics(t.CreateTopicsRequest([topic], validate_only=True), bench.image)
    assert (dry.changes, dry.effects) == ([], Effects())
    result = bench.controller.create_topics(t.CreateTopicsRequest([topic]), bench.image)
    assert result.effects == Effects(created=["a"])
    (row,) = bench.keep(result).topics
    assert (row.num_partitions, row.replication_factor, row.topic_id) == (3, 2, UUID(int=1))
    assert [p.replicas for p in bench.image.topics["a"].partitions] == [(1, 2), (2, 1), (1, 2)]
    assert bench.image.topic_config("a") == {"retention.ms": "5"}
    told = {one.name: (one.value, one.config_source) for one in row.configs}
    assert told["retention.ms"] == ("5", 1)
    assert told["segment.bytes"] == ("1073741824", 5)


def test_one_topic_from_plain_values() -> None:
    bench = Bench()
    made = bench.keep(bench.controller.create_topic(bench.image, "a", 2, settings={"retention.ms": "1"}))
    assert bench.image.topics["a"] == made
    for arguments, error in [
        (("a",), TopicAlreadyExists),
        (("b", 0), InvalidPartitions),
        (("b", 1, 2), InvalidReplicationFactor),
        (("b", 1, 1, {"x": "1"}), InvalidConfig),
        (("b", 10_001), PolicyViolation),
        (("b/c",), InvalidTopicException),
    ]:
        with pytest.raises(error):
            bench.controller.create_topic(bench.image, *arguments)  # type: ignore[arg-type]


def test_many_partitions_in_one_request_are_bounded_in_sum() -> None:
    """None of them is created, as in Kafka: the first ones were."""
    bench = Bench()
    rows = [t.CreatableTopic("a", 6000, 1), t.CreatableTopic("b", 6000, 1), t.CreatableTopic("c", 4000, 1)]
    response = bench.keep(bench.controller.create_topics(t.CreateTopicsRequest(rows), bench.image))
    assert [row.error_code for row in response.topics] == [PolicyViolation.code] * 3
    assert not bench.image.topics
    response = bench.keep(bench.controller.create_topics(t.CreateTopicsRequest(rows[1:]), bench.image))
    assert [row.error_code for row in response.topics] == [0, 0]


@pytest.mark.parametrize(
    ("name", "policy"),
    [("__consumer_offsets", "compact"), ("__transaction_state", "compact"), ("__share_group_state", "delete")],
)
def test_internal_topics_are_made_with_their_own_settings_and_kept(name: str, policy: str) -> None:
    bench = Bench(nodes=2)
    bench.controller.size = 2
    topic = bench.keep(bench.controller.auto_create(name, bench.image))
    assert topic.internal
    assert len(topic.partitions) == 50
    assert len(topic.partitions[0].replicas) == 2
    assert bench.image.topic_config(name)["cleanup.policy"] == policy
    assert bench.controller.config.topic_settings(bench.image.topic_config(name)).segment_bytes == 104_857_600
    with pytest.raises(InvalidTopicException, match="internal"):
        bench.controller.delete_topic(bench.image, name)
    request = t.CreatePartitionsRequest([t.CreatePartitionsTopic(name, 60)])
    (row,) = bench.controller.create_partitions(request, bench.image).response.results
    assert row.error_code == InvalidTopicException.code


@pytest.mark.parametrize(
    ("size", "alive", "replicas"),
    [(1, 1, 1), (2, 2, 2), (2, 1, None), (3, 3, 3), (3, 2, None), (5, 5, 3), (5, 3, 3), (None, 3, 3), (None, 2, None)],
)
def test_an_internal_topic_has_all_of_its_replicas_or_is_not_made_yet(
    size: int | None, alive: int, replicas: int | None
) -> None:
    """It was made with as many as there were brokers alive, and kept so few for ever."""
    bench = Bench(nodes=alive)
    bench.controller.size = size
    if replicas is None:
        with pytest.raises(InvalidReplicationFactor):
            bench.controller.auto_create("__consumer_offsets", bench.image)
    else:
        topic = bench.keep(bench.controller.auto_create("__consumer_offsets", bench.image))
        assert {len(row.replicas) for row in topic.partitions} == {replicas}


def test_an_internal_topic_on_one_broker_can_be_written() -> None:
    bench = Bench()
    bench.keep(bench.controller.auto_create("__transaction_state", bench.image))
    assert bench.image.topic_config("__transaction_state")["min.insync.replicas"] == "1"


def test_a_strangers_service_topic_is_made_as_it_is_declared() -> None:
    bench = Bench(default_replication_factor="3", num_partitions="4")
    declared = ServiceTopic("delays", "num.partitions", {"cleanup.policy": "compact"})
    bench.controller.internal = {"delays": declared}
    made = bench.keep(bench.controller.auto_create("delays", bench.image))
    assert (made.internal, len(made.partitions), len(made.partitions[0].replicas)) == (True, 4, 1)
    assert bench.image.topic_config("delays") == {"cleanup.policy": "compact"}


def test_settings_of_a_services_topic_come_from_the_broker_s_within_what_topics_take() -> None:
    """The first commit of a group made 100 MiB segments, whatever offsets.topic.segment.bytes said."""
    for given, kept in (("5000000", "5000000"), ("1", str(1 << 20))):
        bench = Bench(offsets_topic_segment_bytes=given)
        bench.keep(bench.controller.create_internal("__consumer_offsets", bench.image))
        assert bench.image.topic_config("__consumer_offsets")["segment.bytes"] == kept


def test_a_topic_that_was_ordinary_while_its_service_was_blocked_becomes_internal() -> None:
    bench = Bench()
    topics, bench.controller.internal = bench.controller.internal, {}
    assert not bench.keep(bench.controller.create_topic(bench.image, "__consumer_offsets", 3)).internal
    bench.controller.internal = topics
    bench.keep(bench.controller.mark_internal(bench.image))
    assert bench.image.topics["__consumer_offsets"].internal
    assert len(bench.image.topics["__consumer_offsets"].partitions) == 3
    assert bench.controller.mark_internal(bench.image).changes == []


def test_a_service_whose_topic_cannot_be_made_is_refused_by_name() -> None:
    config = BrokerConfig.load(None, {}, KERNEL.declarations())
    for topic, said in (
        (ServiceTopic("delays", "num.partition", {}), "'d': its topic needs num.partition, .*did you mean num.partit"),
        (ServiceTopic("delays", "num.partitions", {"x": "1"}), "needs x, which is no topic setting"),
        (ServiceTopic("de lays", "num.partitions", {}), "'d': the topic name 'de lays'"),
    ):
        with pytest.raises(PluginError, match=said):
            internal_topics([ServiceDeclaration("d", (), topic)], config)


def test_deleting_by_name_and_id() -> None:
    bench = Bench()
    for name in ("a", "b"):
        bench.keep(bench.controller.create_topic(bench.image, name, settings={"flush.ms": "1"}))
    ids = [bench.image.topics[name].id for name in ("a", "b")]
    request = t.DeleteTopicsRequest(topic_names=["a"], topics=[t.DeleteTopicState(None, ids[1])])
    result = bench.controller.delete_topics(request, bench.image)
    assert result.effects.deleted == [("a", ids[0]), ("b", ids[1])]
    assert [(row.name, row.topic_id) for row in bench.keep(result).responses] == [("a", ids[0]), ("b", ids[1])]
    assert list(bench.image.gone) == ids
    assert bench.image == ClusterImage(gone=bench.image.gone)
    with pytest.raises(UnknownTopicOrPartition):
        bench.controller.delete_topic(bench.image, "a")


def test_deletion_can_be_forbidden_and_one_name_is_enough() -> None:
    bench = Bench(delete_topic_enable="false")
    bench.keep(bench.controller.create_topic(bench.image, "a"))
    with pytest.raises(TopicDeletionDisabled, match=r"delete\.topic\.enable=false"):
        bench.controller.delete_topic(bench.image, "a")
    both = t.DeleteTopicsRequest(topics=[t.DeleteTopicState("a", UUID(int=1)), t.DeleteTopicState(None)])
    assert [row.error_code for row in bench.controller.delete_topics(both, bench.image).response.responses] == [42, 42]


def test_a_topic_grows_to_no_more_than_brokers_take() -> None:
    """They leave out what they are told of a topic with more, so that it was led by nobody."""
    bench = Bench()
    bench.image.apply_all([Topic("t", UUID(int=9), [Partition((1,), (1,), 1)] * 99_999).change()])
    for wanted, code in ((100_001, InvalidPartitions.code), (100_000, 0)):
        request = t.CreatePartitionsRequest([t.CreatePartitionsTopic("t", wanted)])
        (answer,) = bench.controller.create_partitions(request, bench.image).response.results
        assert answer.error_code == code, answer.error_message


def test_added_partitions_go_on_where_the_others_ended() -> None:
    bench = Bench(nodes=3)
    bench.keep(bench.controller.create_topic(bench.image, "a", 2))
    request = t.CreatePartitionsRequest([t.CreatePartitionsTopic("a", 5)])
    result = bench.controller.create_partitions(request, bench.image)
    assert result.effects.grown == [("a", 2)]
    before = bench.image.topics["a"].partitions[:2]
    bench.keep(result)
    assert bench.image.topics["a"].partitions[:2] == before
    assert [p.leader for p in bench.image.topics["a"].partitions] == [1, 2, 3, 1, 2]


def incremental(bench: Bench, *rows: tuple[str, int, str | None], name: str = "a") -> int:
    one = c.IncrementalAlterConfigsAlterableConfig
    resource = c.IncrementalAlterConfigsAlterConfigsResource(2, name, [one(*row) for row in rows])
    result = bench.controller.incremental_alter_configs(c.IncrementalAlterConfigsRequest([resource]), bench.image)
    code: int = bench.keep(result).responses[0].error_code
    assert result.effects.topics_configured == ([name] if result.changes else [])
    return code


UNCLEAN = "unclean.leader.election.enable"


@pytest.mark.parametrize(
    ("old", "rows", "code", "new"),
    [
        ({"election": "unclean", UNCLEAN: "true"}, [(UNCLEAN, 0, "false")], 0, {UNCLEAN: "false"}),
        ({UNCLEAN: "true"}, [("election", 0, "clean")], 0, {"election": "clean"}),
        ({"election": "unclean", UNCLEAN: "true"}, [("election", 1, None)], 0, {}),
        ({"election": "unclean", UNCLEAN: "true"}, [(UNCLEAN, 1, None)], 0, {}),
        ({"election": "clean"}, [(UNCLEAN, 0, "true"), ("election", 0, "clean")], 40, {"election": "clean"}),
        ({"flush.ms": "1"}, [("flush.ms", 0, "1")], 0, {"flush.ms": "1"}),
        ({}, [("flush.ms", 0, "1" * 40_000)], 40, {}),
    ],
)
def test_settings_are_altered_one_by_one(old: dict[str, str], rows: list[Any], code: int, new: dict[str, str]) -> None:
    bench = Bench()
    bench.keep(bench.controller.create_topic(bench.image, "a", settings=old))
    assert incremental(bench, *rows) == code
    assert bench.image.topic_config("a") == new


def test_a_setting_of_a_plugin_that_is_gone_does_not_stand_in_the_way() -> None:
    bench = Bench()
    bench.keep(bench.controller.create_topic(bench.image, "a"))
    bench.image.configs["topic:a"] = {"gone.plugin": "x"}
    assert incremental(bench, ("flush.ms", 0, "1")) == 0
    assert bench.image.topic_config("a") == {"gone.plugin": "x", "flush.ms": "1"}
    assert incremental(bench, ("gone.plugin", 1, None), ("flush.ms", 1, None)) == 0
    assert bench.image.configs == {}


def test_a_group_s_setting_of_a_plugin_that_is_gone_does_not_stand_in_the_way() -> None:
    """Every other setting of the group was refused."""
    bench = Bench()
    bench.image.configs["group:g"] = {"gone.plugin": "x"}
    one = c.IncrementalAlterConfigsAlterableConfig
    rows = [one("consumer.session.timeout.ms", 0, "50000")]
    resource = c.IncrementalAlterConfigsAlterConfigsResource(32, "g", rows)
    result = bench.controller.incremental_alter_configs(c.IncrementalAlterConfigsRequest([resource]), bench.image)
    assert bench.keep(result).responses[0].error_code == 0
    assert bench.image.configs["group:g"] == {"gone.plugin": "x", "consumer.session.timeout.ms": "50000"}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("bad_option", "1", "Unknown group config name: bad_option; "),
        ("consumer.session.timeout.ms", "x", "Invalid value x for configuration consumer.session.timeout.ms: Not a n"),
        (
            "consumer.session.timeout.ms", "44999",
            "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms; give a"
            " value between 45000 and 60000",
        ),
        (
            "share.record.lock.duration.ms", "60001",
            "share.record.lock.duration.ms must be less than or equal to group.share.max.record.lock.duration.ms; ",
        ),
    ],
)  # fmt: skip
def test_a_group_s_setting_is_refused_in_kafkas_words(name: str, value: str, said: str) -> None:
    bench = Bench()
    rows = [c.IncrementalAlterConfigsAlterableConfig(name, 0, value)]
    resource = c.IncrementalAlterConfigsAlterConfigsResource(32, "g", rows)
    result = bench.controller.incremental_alter_configs(c.IncrementalAlterConfigsRequest([resource]), bench.image)
    (row,) = result.response.responses
    assert row.error_code == InvalidConfig.code
    assert row.error_message.startswith(said)


@pytest.mark.parametrize(("broker", "code"), [("1", InvalidRequest.code), ("", 0)])
def test_a_setting_of_a_listener_that_the_broker_has_not_is_refused_for_it_alone(broker: str, code: int) -> None:
    """Kafka takes it; here the start refuses it, too. Set for all brokers, it may be another one's listener."""
    bench = Bench(listeners="OUT://:1", listener_security_protocol_map="OUT:SSL")
    rows = [c.IncrementalAlterConfigsAlterableConfig("listener.name.owt.ssl.client.auth", 0, "required")]
    resource = c.IncrementalAlterConfigsAlterConfigsResource(4, broker, rows)
    result = bench.controller.incremental_alter_configs(c.IncrementalAlterConfigsRequest([resource]), bench.image)
    assert bench.keep(result).responses[0].error_code == code


def test_what_a_file_says_of_a_topic_is_set_over_its_own() -> None:
    bench = Bench()
    bench.keep(bench.controller.create_topic(bench.image, "a", settings={"flush.ms": "1", UNCLEAN: "true"}))
    told = {"flush.ms": "1", "retention.ms": "5", "election": "clean", UNCLEAN: "false"}
    result = bench.controller.apply_topic_settings(bench.image, "a", told)
    assert bench.keep(result) == {"retention.ms": (None, "5"), "election": (None, "clean"), UNCLEAN: ("true", "false")}
    assert bench.image.topic_config("a") == told
    assert bench.controller.apply_topic_settings(bench.image, "a", told).changes == []


def test_producer_ids_never_repeat_even_after_a_crash() -> None:
    bench = Bench()
    seen: list[int] = []
    for _ in range(3):  # three incarnations
        ids = ProducerIds()
        for _ in range(1_500):
            taken = ids.take()
            if taken is None:
                ids.refill(bench.keep(bench.controller.allocate_producer_ids(bench.image)))
                taken = ids.take()
            assert taken is not None
            seen.append(taken)
    assert len(set(seen)) == len(seen) == 4_500
    assert seen[0] == 0


def test_a_cluster_is_named_once_and_a_broker_registered_once() -> None:
    bench = Bench()
    assert bench.keep(bench.controller.name_cluster(bench.image, "x")) == "x"
    assert bench.keep(bench.controller.name_cluster(bench.image, "y")) == "x"
    node = BrokerRegistration(1, {"PLAINTEXT": ("h", 1)})
    assert len(bench.controller.register(bench.image, node).changes) == 1
    bench.keep(bench.controller.register(bench.image, node))
    assert bench.controller.register(bench.image, node).changes == []


def test_every_refusal_says_what_to_do() -> None:
    bench = Bench()
    bench.keep(bench.controller.create_topic(bench.image, "a"))
    rows = [
        t.CreatableTopic("a", 1, 1),
        t.CreatableTopic("b", 0, 1),
        t.CreatableTopic("c", 1, 9),
        t.CreatableTopic("d e", 1, 1),
        t.CreatableTopic("f", 1, 1, configs=[t.CreatableTopicConfig("retention.ms", "soon")]),
    ]
    response = bench.controller.create_topics(t.CreateTopicsRequest(rows), bench.image).response
    refused = "Invalid value soon for configuration retention.ms: Not a number of type LONG; give a whole number"
    parts = ["'a'", "0 partitions", "factor 9", "'d e'", refused]
    for row, part in zip(response.topics, parts, strict=True):
        assert part in row.error_message
        assert row.error_code > 0


@pytest.mark.parametrize(
    ("replicas", "adding", "removing", "factor"),
    [((3, 4, 1, 2), (3, 4), (1, 2), 2), ((1, 2, 3), (3,), (), 3), ((1, 2, 3), (), (3,), 2)],
)
def test_a_topic_that_grows_while_it_moves_takes_the_factor_that_it_moves_to(
    replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...], factor: int
) -> None:
    """Old and new replicas are there together during a move; new partitions had as many as both."""
    bench = Bench(nodes=4)
    row = Partition(replicas, replicas, replicas[0], 0, 0, adding, removing)
    bench.image.apply_all([Topic("t", UUID(int=9), [row]).change()])
    request = t.CreatePartitionsRequest([t.CreatePartitionsTopic("t", 3)])
    (answer,) = bench.keep(bench.controller.create_partitions(request, bench.image)).results
    assert answer.error_code == 0
    assert [len(each.replicas) for each in bench.image.topics["t"].partitions[1:]] == [factor] * 2
