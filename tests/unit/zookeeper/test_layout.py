"""Nodes of ZooKeeper as a Kafka 3.9.2 wrote them, read and written (tests/golden/zookeeper)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from logkernel.contracts import MetadataChange
from logkernel.errors import CorruptMessage, InvalidRequest
from logkernel.plugins.transport.zookeeper import entities, layout

GOLDEN = Path(__file__).parents[2] / "golden" / "zookeeper"
TREES = {path.stem: json.loads(path.read_text()) for path in sorted(GOLDEN.glob("*.json"))}
"""Tree → path → {"data", "version", "ephemeral"}."""
EVERY = [(path, node["data"]) for tree in TREES.values() for path, node in tree.items()]


def matching(pattern: str) -> list[tuple[str, bytes]]:
    found = [(path, data.encode()) for path, data in EVERY if data is not None and re.fullmatch(pattern, path)]
    assert found, f"no recorded node is a {pattern}"
    return found


def data(path: str, tree: str = "deletion") -> bytes:
    return str(TREES[tree][path]["data"]).encode()


def test_topics_are_written_as_they_were_read() -> None:
    for path, raw in matching("/brokers/topics/[^/]+"):
        assert json.loads(layout.TopicNode.parse(raw, path).data()) == json.loads(raw)


def test_states_are_written_as_they_were_read() -> None:
    for path, raw in matching("/brokers/topics/.*/state"):
        assert json.loads(layout.StateNode.parse(raw, path).data()) == json.loads(raw)


def test_a_topic_under_way_to_other_brokers_names_those_that_come_and_go() -> None:
    node = layout.TopicNode.parse(data("/brokers/topics/moving", "move"), "")
    assert node.replicas == ((2, 3, 1),)
    assert dict(node.adding) == {0: (3,)}
    assert dict(node.removing) == {0: (1,)}


def test_brokers_are_written_as_they_were_read() -> None:
    for path, raw in matching("/brokers/ids/[^/]+"):
        known = json.loads(raw)
        assert json.loads(layout.broker_data(layout.parse_broker(raw, path), int(known["timestamp"]))) == known


def test_a_broker_says_what_its_listeners_speak() -> None:
    """All were written as PLAINTEXT."""
    value = {"listeners": {"IN": ["h", 1], "OUT": ["h", 2]}, "rack": None, "protocols": {"IN": "SASL_SSL"}}
    raw = layout.broker_data(value, 5)
    assert json.loads(raw)["listener_security_protocol_map"] == {"IN": "SASL_SSL", "OUT": "PLAINTEXT"}
    assert layout.parse_broker(raw, "") == value
    older = {"endpoints": ["SSL://h:1", "PLAINTEXT://h:2"]}
    assert layout.parse_broker(json.dumps(older).encode(), "")["protocols"] == {"SSL": "SSL"}, (
        "called by what it speaks"
    )
    hostile = {"endpoints": ["IN://h:1"], "listener_security_protocol_map": {"IN": ["SSL"], "X": "SSL"}}
    assert "protocols" not in layout.parse_broker(json.dumps(hostile).encode(), "")


def test_a_broker_has_a_rack_and_addresses_of_version_6() -> None:
    value = {"listeners": {"INTERNAL": ["::1", 9092], "OUT": ["h", 1]}, "rack": "r1"}
    raw = layout.broker_data(value, 5)
    assert layout.parse_broker(raw, "") == value
    found = json.loads(raw)
    assert found["endpoints"] == ["INTERNAL://[::1]:9092", "OUT://h:1"]
    assert found["listener_security_protocol_map"] == {"INTERNAL": "PLAINTEXT", "OUT": "PLAINTEXT"}


def test_single_nodes_are_written_as_they_were_read() -> None:
    def same(path: str, made: bytes) -> bool:
        return bool(json.loads(made) == json.loads(data(path)))

    controller = json.loads(data("/controller"))
    node_id = layout.parse_controller(data("/controller"))
    assert same("/controller", layout.controller_data(node_id, int(controller["timestamp"])))
    assert same("/cluster/id", layout.cluster_id_data(layout.parse_cluster_id(data("/cluster/id"))))
    end = layout.parse_producer_ids(data("/latest_producer_id_block"))
    assert (end, same("/latest_producer_id_block", layout.producer_ids_data(1, end - 1000, end))) == (1000, True)
    assert same("/feature", layout.features_data(layout.parse_features(data("/feature"))))
    assert layout.parse_epoch(data("/controller_epoch")) == 2
    assert layout.parse_producer_ids(None) == 0
    assert layout.parse_log_dir_event(layout.log_dir_event_data(4), "") == 4


def test_a_feature_has_its_level_as_kafka_writes_it() -> None:
    raw = layout.features_data({"share.version": 1})
    assert layout.parse_features(raw) == {"share.version": 1}
    off = json.loads(raw) | {"status": 0}
    assert layout.parse_features(layout.dump(off)) == {}


def test_settings_are_written_as_they_were_read() -> None:
    paths = matching("/config/(?:topics|brokers|clients|ips)/[^/]+|/config/users/[^/]+(?:/clients/[^/]+)?")
    for path, raw in paths:
        config = entities.parse_config(raw, path)
        assert json.loads(entities.config_data(config)) == json.loads(raw)


def facts(path: str) -> dict[tuple[str, str], Any]:
    config = entities.parse_config(data(f"/config/{path}"), path)
    return {(change.kind, change.key): change.value for change in entities.facts_of(path, config)}


def test_settings_mean_facts() -> None:
    assert facts("topics/orders") == {
        ("config", "topic:orders"): {"cleanup.policy": "compact,delete", "retention.ms": "86400000"}
    }
    assert facts("topics/one") == {("config", "topic:one"): None}
    assert facts("brokers/<default>")["config", "broker:"] == {
        "log.cleaner.io.buffer.size": "1048576", "background.threads": "8",
    }  # fmt: skip
    assert facts("brokers/1") == {("config", "broker:1"): {"log.cleaner.threads": "2"}}
    assert facts("users/<default>") == {("quota", '[["user",null]]'): {"request_percentage": 55.5}}
    assert facts("clients/c%202") == {("quota", '[["client-id","c 2"]]'): {"consumer_byte_rate": 1.5e9}}
    assert facts("ips/10.0.0.1") == {("quota", '[["ip","10.0.0.1"]]'): {"connection_creation_rate": 5}}
    assert facts("users/alice/clients/<default>") == {
        ("quota", '[["client-id",null],["user","alice"]]'): {"producer_byte_rate": 77}
    }
    alice = facts("users/alice")
    assert alice["quota", '[["user","alice"]]'] == {"producer_byte_rate": 4096}
    assert alice["scram", "1:alice"]["iterations"] == 4096
    assert alice["scram", "2:alice"] is None
    assert facts("users/alice%20b%40c")["scram", "2:alice b@c"]["iterations"] == 8192


def test_every_fact_of_an_entity_leads_back_to_its_node() -> None:
    for path, raw in matching("/config/(?:topics|brokers|clients|ips|users)/.*"):
        if path.endswith("/clients"):
            continue
        config = entities.parse_config(raw, path)
        made: dict[str, str] = {}
        for change in entities.facts_of(path.removeprefix("/config/"), config):
            entity = entities.entity_of(change)
            assert entity is not None
            assert entity.node == path
            made = entity.update(made)
        as_kafka = {name: text.replace("10.0", "10") if name in entities.QUOTAS else text
                    for name, text in config.items()}  # fmt: skip
        assert made == as_kafka


def test_a_change_leaves_what_else_a_node_says() -> None:
    entity = entities.entity_of(MetadataChange("quota", '[["user","alice"]]', {"request_percentage": 1.5}))
    assert entity is not None
    before = {"SCRAM-SHA-256": "salt=…", "producer_byte_rate": "1", "unheard.of": "x"}
    assert entity.update(before) == {"SCRAM-SHA-256": "salt=…", "unheard.of": "x", "request_percentage": "1.5"}
    gone = entities.entity_of(MetadataChange("scram", "1:alice", None))
    assert gone is not None
    assert gone.update(before) == {"producer_byte_rate": "1", "unheard.of": "x"}


@pytest.mark.parametrize("rate", ["nan", "inf", "-inf", "-1", "1e400", "x", ""])
def test_a_quota_that_is_no_rate_holds_nobody_back(rate: str) -> None:
    config = {"producer_byte_rate": rate, "consumer_byte_rate": "0", "request_percentage": "5"}
    quota = next(change for change in entities.facts_of("users/<default>", config) if change.kind == "quota")
    assert quota.value == {"consumer_byte_rate": 0, "request_percentage": 5}


def test_changes_name_entities() -> None:
    for path, raw in matching("/config/changes/.*"):
        assert json.loads(entities.change_data(entities.parse_change(raw, path))) == json.loads(raw)
    old = b'{"version":1,"entity_type":"topics","entity_name":"a"}'
    assert entities.parse_change(old, "") == "topics/a"


def test_rules_are_written_as_they_were_read() -> None:
    seen = 0
    for path, raw in matching("/kafka-acl/[^/]+/.*|/kafka-acl-extended/prefixed/[^/]+/.*"):
        rules = entities.parse_rules(raw, path)
        assert json.loads(entities.rules_data(rules)) == json.loads(raw)
        for rule in rules:
            told = [node for node, _ in EVERY if node == path]
            assert told
            root = entities.PREFIXED if "extended" in path else entities.LITERAL
            kind = next(number for number, name in entities.RESOURCE_TYPES.items() if f"/{name}/" in path)
            key = entities.acl_key(entities.Resource(kind, root, path.rpartition("/")[2]), rule)
            assert key is not None
            resource, back = entities.resource_of(MetadataChange("acl", key, {}))
            assert (resource.node, back) == (path, rule)
            seen += 1
    assert seen == 10


def test_changes_of_rules_name_resources() -> None:
    for path, raw in matching("/kafka-acl-changes/.*|/kafka-acl-extended-changes/.*"):
        resource = entities.changed_resource(raw, path)
        prefix, made = resource.change()
        assert path.startswith(prefix)
        assert made == raw if resource.pattern == entities.LITERAL else json.loads(made) == json.loads(raw)


def test_unknown_fields_are_kept() -> None:
    topic = layout.TopicNode.parse(b'{"version":4,"partitions":{"0":[1]},"new":[1]}', "")
    assert json.loads(topic.data())["new"] == [1]
    raw = b'{"version":1,"leader":1,"leader_epoch":3,"controller_epoch":1,"isr":[1],"leader_recovery_state":1,"x":2}'
    state = layout.StateNode.parse(raw, "")
    elected = json.loads(state.with_row([[1, 2], [1, 2], 2, 4, 9], 7).data())
    assert (elected["x"], elected["leader_recovery_state"], elected["controller_epoch"]) == (2, 1, 7)
    recovered = json.loads(state.with_row([[1, 2], [1, 2], 1, 3, 9], 7).data())
    assert (recovered["x"], "leader_recovery_state" in recovered) == (2, False)


def test_a_topic_of_an_old_kafka_has_no_id() -> None:
    node = layout.TopicNode.parse(b'{"version":1,"partitions":{"1":[2],"0":[1]}}', "")
    assert (node.id, node.replicas) == (None, ((1,), (2,)))


@pytest.mark.parametrize(
    "raw",
    [
        None, b"", b"{", b"[1]", b"[" * 100_000, b'{"partitions":{}', b'{"partitions":{"1":[1]}}',
        b'{"partitions":{"0":[]}}', b'{"partitions":{"0":[1,1]}}', b'{"partitions":{"0":[-1]}}',
        b'{"partitions":{"0":["1"]}}', b'{"partitions":{"0":[1]},"topic_id":"short"}', b'{"partitions":{"x":[1]}}',
        b'{"partitions":{"0":[4294967296]}}', b'{"partitions":{"00000000000000000000":[1]}}', b"x" * (1 << 20),
    ],
)  # fmt: skip
def test_a_topic_that_is_none_is_refused(raw: bytes | None) -> None:
    with pytest.raises(CorruptMessage, match="/brokers/topics/t"):
        layout.TopicNode.parse(raw, "/brokers/topics/t")


@pytest.mark.parametrize("raw", [b'{"endpoints":["PLAINTEXT://h:99999"]}', b'{"endpoints":["h"]}', b"{}"])
def test_a_broker_that_is_none_is_refused(raw: bytes) -> None:
    with pytest.raises(CorruptMessage, match="/brokers/ids/1"):
        layout.parse_broker(raw, "/brokers/ids/1")


def test_other_numbers_are_bounded() -> None:
    for parse, raw in (
        (layout.parse_epoch, b"99999999999"), (layout.parse_epoch, b"-1"),
        (layout.parse_controller, b'{"brokerid":-1}'),
        (layout.parse_producer_ids, b'{"block_end":"9223372036854775807"}'), (layout.parse_cluster_id, b'{"id":""}'),
        (layout.parse_features, b'{"status":1,"features":{"a":99999}}'),
    ):  # fmt: skip
        with pytest.raises(CorruptMessage):
            parse(raw)


def test_facts_of_our_own_have_paths() -> None:
    for kind, key in (("incarnation", "1"), ("config", "group:a/b ü"), ("features_epoch", "")):
        path = layout.fact_path(kind, key)
        assert path.count("/") == 4
        assert layout.fact_name(*path.split("/")[3:]) == (kind, key)
    with pytest.raises(InvalidRequest):
        layout.fact_path("config", "x" * 2000)


def test_names_are_quoted_as_kafka_does() -> None:
    assert layout.quoted("alice b@c") == "alice%20b%40c"
    assert layout.unquoted("c%202") == "c 2"
    with pytest.raises(CorruptMessage):
        layout.unquoted("%FF")


def test_sequential_nodes_have_numbers() -> None:
    assert [layout.sequence_number(name) for name in ("config_change_0000000007", "x", "a_-1")] == [7, -1, -1]
