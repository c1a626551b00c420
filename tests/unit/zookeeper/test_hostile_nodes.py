"""Nodes of whoever may write into the tree, and means ill, or made a mistake: each is left out, and no other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from typing import Any, cast

import pytest

from logkernel.errors import CorruptMessage
from logkernel.plugins.transport.zookeeper import entities, fact_nodes, layout, reading, tokens
from logkernel.plugins.transport.zookeeper.connection import Connection, Node
from logkernel.plugins.transport.zookeeper.entities import Resource

PATHS = ("..", ".", "", "a/b", "../../controller", "a//b", "nul\0", "line\nend", "\ud800", "\U0001f600")
TOPIC = Resource(2, entities.LITERAL, "t")
A_TOPIC = {"version": 3, "partitions": {"0": [1]}, "adding_replicas": {}, "removing_replicas": {}}


class Tree:
    """Nodes by path, as reading asks for them."""

    def __init__(self, nodes: dict[str, bytes]) -> None:
        self._nodes = nodes

    def get(self, path: str) -> Node | None:
        data = self._nodes.get(path)
        return None if data is None else Node(data, 0, 1, 1, 0, 0)

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        return [self.get(path) for path in paths]

    def children(self, path: str, watch: Any = None) -> list[str]:
        below = (name.removeprefix(f"{path}/") for name in self._nodes if name.startswith(f"{path}/"))
        return [name for name in below if "/" not in name]

    def children_of_many(self, paths: Sequence[str]) -> list[list[str]]:
        return [self.children(path) for path in paths]


def tree(nodes: dict[str, bytes]) -> Connection:
    return cast("Connection", Tree(nodes))


@pytest.mark.parametrize("name", PATHS, ids=count())
def test_a_name_that_is_told_and_is_a_path_is_left_out(name: str) -> None:
    rows = (
        lambda: entities.parse_change(json.dumps({"version": 2, "entity_path": f"users/{name}/x"}).encode(), "n"),
        lambda: entities.changed_resource(f"TOPIC:{name}".encode("utf-8", "surrogatepass"), "n"),
        lambda: entities.changed_resource(json.dumps({"resourceType": "TOPIC", "name": name}).encode(), "n"),
        lambda: tokens.changed(name.encode("utf-8", "surrogatepass"), "n"),
        lambda: fact_nodes.changed(json.dumps({"kind": name, "key": "x"}).encode(), "n"),
    )
    if name in ("a/b", "a//b", "../../controller"):
        assert layout.quoted(name) != name, "parts of a path of entities have no slash"
        rows = rows[1:]
    if name == "\ud800":  # bytes that are not UTF-8 are replaced
        rows = (rows[0], *rows[2:])
    for row in rows:
        with pytest.raises(CorruptMessage):
            row()


@pytest.mark.parametrize("name", ["users/..", "../x", "users//x", "users/", "/users/x", "topics/a\0"], ids=count())
def test_an_entity_is_no_way_to_another_node(name: str) -> None:
    with pytest.raises(CorruptMessage, match="names no entity"):
        entities.parse_change(json.dumps({"version": 2, "entity_path": name}).encode(), "n")


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        *((kind, "x", {}) for kind in sorted(fact_nodes.KAFKAS)),
        ("config", "topic:t", {"segment.bytes": "1"}),
        ("config", "broker:", {"num.io.threads": "1"}),
        ("config", "group:g", {"a": 5}),
        ("secret", "scram", {}),
        ("secret", "scram", {"bytes": 5}),
        ("secret", "scram", {"bytes": "!"}),
        ("secret", "scram", {"bytes": ""}),
        ("rack", "x", {"rack": "r"}),
        ("rack", "1", {"rack": ["r"]}),
        ("rack", "1", {"rack": "r" * 70_000}),
        ("incarnation", "1", {"epoch": "x"}),
        ("incarnation", "-1", {"epoch": 1}),
        ("gone", "x", {}),
        ("gone", "00000000-0000-0000-0000-000000000001", {"topic": 3, "replicas": 4}),
        ("gone", "00000000-0000-0000-0000-000000000001", {"topic": "t", "replicas": [["x"]]}),
        ("rack", "x" * 3_000, {"rack": "r"}),
        ("rack", "\ud800", {"rack": "r"}),
        ("../..", "x", {}),
    ],
    ids=count(),
)
def test_a_fact_that_is_none_is_left_out(kind: str, key: str, value: dict[str, Any]) -> None:
    with pytest.raises(CorruptMessage):
        fact_nodes.fact(kind, key, json.dumps(value).encode())


def test_facts_are_read_as_they_are_written() -> None:
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("config", "group:g", {"share.auto.offset.reset": "earliest"}),
        ("secret", "scram", {"bytes": "c2VjcmV0"}),
        ("rack", "1", {"rack": ""}),
        ("incarnation", "1", {"epoch": 2**40}),
        ("gone", "00000000-0000-0000-0000-000000000001", {}),
        ("gone", "00000000-0000-0000-0000-000000000001", {"topic": "t", "replicas": [[1, 2]]}),
        ("of-a-later-version", "", {"any": None}),
    ]
    for kind, key, value in rows:
        found = fact_nodes.fact(kind, key, json.dumps(value).encode())
        assert (found.kind, found.key, found.value) == (kind, key, value)
        assert fact_nodes.changed(json.dumps({"kind": kind, "key": key}).encode(), "n") == (kind, key)


@pytest.mark.parametrize("name", ["x" * 300, "line\nend", "\u00fc", "a b"], ids=count())
def test_a_topic_whose_name_none_can_have_is_broken(name: str, caplog: pytest.LogCaptureFixture) -> None:
    sound = layout.dump(A_TOPIC)
    found = reading.read_tree(tree({layout.topic_path(name): sound, layout.topic_path("t"): sound}), 1, 1)
    assert list(found.topics) == ["t"]
    assert found.broken == {name}, "it is not taken for one that others make"
    assert "no topic can be called so" in caplog.text


@pytest.mark.parametrize("data", [b"[", b'{"acls": 5}', b'{"acls": ["x"]}', b"\xff"])
def test_a_resource_whose_rules_cannot_be_read_is_closed(data: bytes) -> None:
    """Among them may be who is denied."""
    (found,) = reading.rules_of(tree({TOPIC.node: data}), [TOPIC]).values()
    assert [json.loads(key) for key in found] == [[2, 3, "t", "User:*", "*", 2, 2]], "DENY ALL to everybody"
    (found,) = reading.rules_of(tree({TOPIC.node: b""}), [TOPIC]).values()
    assert not found


@pytest.mark.parametrize("name", ["99999999999999999999", "4294967296", "\uff12", "007", "x", "-1"], ids=count())
def test_a_broker_whose_id_is_none_is_left_out(name: str) -> None:
    sound = layout.broker_data({"listeners": {"A": ["h", 1]}, "rack": None}, 0)
    found = reading.brokers(tree({f"{layout.BROKER_IDS}/{name}": sound, layout.broker_path(3): sound}), None, None)
    assert list(found) == [3]


@pytest.mark.parametrize(
    "change",
    [
        {"endpoints": ["A://" + "h" * 70_000 + ":1"]},
        {"endpoints": ["A" * 70_000 + "://h:1"]},
        {"endpoints": ["A://a\nb:1"]},
        {"rack": "r" * 70_000},
        {"rack": 5},
    ],
    ids=["host", "listener", "line end", "rack", "number"],
)
def test_a_broker_that_nobody_can_be_told_of_is_left_out(change: dict[str, Any]) -> None:
    sound = json.loads(layout.broker_data({"listeners": {"A": ["h", 1]}, "rack": None}, 0))
    layout.parse_broker(json.dumps(sound).encode(), "n")
    with pytest.raises(CorruptMessage):
        layout.parse_broker(json.dumps(sound | change).encode(), "n")


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"principal": ["User:x"], "host": "*"},
        {"principal": "User:x", "host": {}},
        {"principal": "User:" + "x" * 40_000, "host": "*"},
    ],
    ids=["nobody", "a list", "no host", "a long name"],
)
def test_a_rule_for_whom_cannot_be_told_closes_its_resource(row: dict[str, Any]) -> None:
    data = json.dumps({"acls": [{"permissionType": "Deny", "operation": "All", **row}]}).encode()
    (found,) = reading.rules_of(tree({TOPIC.node: data}), [TOPIC]).values()
    assert found == {entities.closed(TOPIC)}


def test_halves_of_characters_are_told_to_nobody() -> None:
    """JSON may escape them; UTF-8, and so an answer, has none."""
    assert layout.load(b'{"config": {"a": "\\ud83d\\ude00 \\\\ud"}}', "n") == {"config": {"a": "\U0001f600 \\ud"}}
    for data in (b'{"config": {"a": "\\ud800"}}', b'{"config": {"\\uDC00": "x"}}'):
        with pytest.raises(CorruptMessage, match="halves of characters"):
            layout.load(data, "n")


def test_names_that_fit_into_no_answer_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    long = "x" * 40_000
    nodes = {f"{layout.CONFIG}/users/{name}": entities.config_data({"producer_byte_rate": "1"}) for name in (long, "u")}
    found = [change.key for change in reading.settings(tree(nodes))]
    assert found == ['[["user","u"]]']
    assert "more than a name has" in caplog.text
    token = {
        "version": 3, "owner": "User%3Aa", "tokenRequester": "User%3Aa", "renewers": [], "issueTimestamp": 1,
        "maxTimestamp": 2, "expiryTimestamp": 2,
    }  # fmt: skip
    assert tokens.fact("id", json.dumps(token).encode()).key == "id"
    with pytest.raises(CorruptMessage):
        tokens.fact(long, json.dumps(token).encode())
    with pytest.raises(CorruptMessage):
        tokens.fact("id", json.dumps(token | {"owner": f"User%3A{long}"}).encode())


@pytest.mark.parametrize("key", ["salt", "stored_key", "server_key"])
@pytest.mark.parametrize("text", ["a", "!!!!", ""])
def test_a_credential_that_is_none_is_nobodys(key: str, text: str) -> None:
    sound = {"salt": "c2FsdA==", "stored_key": "c3RvcmVk", "server_key": "c2VydmVy", "iterations": "4096"}

    def of(fields: dict[str, str]) -> Any:
        line = ",".join(f"{name}={value}" for name, value in fields.items())
        changes = entities.facts_of("users/u", {"SCRAM-SHA-256": line})
        return next(change.value for change in changes if change.key == "1:u")

    assert of(sound) == sound | {"iterations": 4096}
    assert of(sound | {key: text}) is None
