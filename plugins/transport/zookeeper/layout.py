"""The nodes that Apache Kafka 3.9 keeps in ZooKeeper: their paths and their JSON, both ways. Pure.

Each node that has a shape of its own has a class here with `parse` and `data`. Fields that this code does not know are
kept as they were read, and written back. Sizes and numbers are bounded before they are believed. Source: Kafka 3.9's
ZkData.scala, as far as the nodes that a running Kafka 3.9.2 wrote show it (`tests/golden/zookeeper`).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from logkernel.attrs_lite import evolve, field, frozen
from logkernel.errors import CorruptMessage, InvalidRequest
from logkernel.vocabulary import MAX_PARTITIONS, PLAINTEXT, SECURITY_PROTOCOLS, format_id

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
DELETE_TOPICS: Final = "/admin/delete_topics"
CLUSTER_ID: Final = "/cluster/id"
FEATURE: Final = "/feature"
PRODUCER_IDS: Final = "/latest_producer_id_block"
CONFIG: Final = "/config"
TOPIC_CONFIGS: Final = "/config/topics"
CONFIG_CHANGES: Final = "/config/changes"
LOG_DIR_EVENTS: Final = "/log_dir_event_notification"
FACTS: Final = "/logkernel/facts"
"""Facts that Kafka has no node for: KIND/KEY, with the fact's value as JSON."""
FACT_CHANGES: Final = "/logkernel/changes"
"""Tells of changed facts, as `/config/changes` does of settings."""

PERSISTENT: Final = (
    "/consumers", BROKER_IDS, TOPICS, CONFIG_CHANGES, DELETE_TOPICS, "/brokers/seqid", "/isr_change_notification",
    PRODUCER_IDS, LOG_DIR_EVENTS, TOPIC_CONFIGS, "/config/clients", "/config/users", "/config/brokers", "/config/ips",
    FACTS, FACT_CHANGES,
)  # fmt: skip
"""Nodes that must be there before anything else is written."""
SENSITIVE: Final = ("/config/users", "/config/brokers", "/delegation_token", "/logkernel/facts/secret")
"""What only the brokers may read, where nodes have ACLs."""
OPEN: Final = ("/consumers",)
"""Nodes without an ACL: old consumers make theirs there."""

MAX_NODE_BYTES: Final = 0xFFFFF
"""jute.maxbuffer, by default of ZooKeeper: no node is larger."""
MAX_REPLICAS: Final = 1_000
MAX_ENDPOINTS: Final = 100
MAX_CONFIGS: Final = 10_000
MAX_WORD: Final = 1_000
"""Characters of a host, a listener or a rack. Clients are told these, and longer strings may not fit into an answer."""
MAX_NAME: Final = 8_000
"""Characters of a user, a client id or an address: an answer that names more fails for who asks for all."""
_NO_NODE: Final = re.compile("[\0-\x1f/\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")
"""Characters that ZooKeeper takes in no name."""
_INT, _LONG = 2**31 - 1, 2**63 - 1


# ---------------------------------------------------------------- JSON, numbers, ids


def load(data: bytes | None, path: str) -> dict[str, Any]:
    """The JSON object of a node. Raises `CorruptMessage`."""
    if data is None or len(data) > MAX_NODE_BYTES:
        raise bad(path, "it is empty" if data is None else f"it has {len(data)} bytes")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise bad(path, str(error)) from None
    if not isinstance(found, dict):
        raise bad(path, "it holds no JSON object")
    if b"\\ud" in data.lower() and not _is_text(found):
        raise bad(path, "it has halves of characters")
    return found


def _is_text(value: Mapping[str, Any]) -> bool:
    """Whether all strings in it can be told to a client: JSON may escape what UTF-8 has not."""
    try:
        dump(value)
    except UnicodeEncodeError:
        return False
    return True


def dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def bad(path: str, why: str) -> CorruptMessage:
    """The error of a node."""
    return CorruptMessage(f"ZooKeeper's node {path} is not as Kafka writes it ({why}); repair or delete the node")


def bounded(value: Any, low: int, high: int, path: str) -> int:
    """A number of a node. Raises `CorruptMessage`."""
    if type(value) is not int or not low <= value <= high:
        raise bad(path, f"{value!r:.100} is no number from {low} to {high}")
    return value


def node_ids(value: Any, path: str) -> tuple[int, ...]:
    """Ids of different brokers. Raises `CorruptMessage`."""
    if not isinstance(value, list) or len(value) > MAX_REPLICAS:
        raise bad(path, f"{value!r:.100} is no list of broker ids")
    nodes = tuple(bounded(node, 0, _INT, path) for node in value)
    if len(set(nodes)) < len(nodes):
        raise bad(path, f"{value!r:.100} names a broker twice")
    return nodes


def parse_id(text: Any, path: str) -> UUID:
    try:
        return UUID(bytes=base64.b64decode(f"{text}==", b"-_", validate=True))
    except (ValueError, binascii.Error):
        raise bad(path, f"{text!r:.100} is no topic id") from None


def is_node_name(text: str) -> bool:
    """Whether a node can be called so: a name that is told becomes part of a path."""
    return 0 < len(text) <= MAX_NODE_BYTES and text not in (".", "..") and _NO_NODE.search(text) is None


def sequence_number(name: str) -> int:
    """Of a sequential node's name; -1 for a name without one."""
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 19 else -1


# ---------------------------------------------------------------- brokers and the controller


def broker_path(node_id: int) -> str:
    return f"{BROKER_IDS}/{node_id}"


def parse_broker(data: bytes | None, path: str) -> dict[str, Any]:
    """The fact of a broker: {"listeners": {name: [host, port]}, "rack": text or None}, and "protocols": {name: security
    protocol} of listeners that do not speak PLAINTEXT."""
    found = load(data, path)
    listeners: dict[str, list[Any]] = {}
    endpoints = found.get("endpoints")
    if not isinstance(endpoints, list) or len(endpoints) > MAX_ENDPOINTS:
        raise bad(path, "it has no list of endpoints")
    for endpoint in endpoints:
        name, separator, address = str(endpoint).partition("://")
        host, _, port = address.rpartition(":")
        if not separator or not name or not port.isascii() or not port.isdigit() or len(port) > 5:
            raise bad(path, f"{endpoint!r:.100} is no endpoint")
        host = _word(host.removeprefix("[").removesuffix("]"), path)
        listeners[_word(name, path)] = [host, bounded(int(port), 0, 65_535, path)]
    rack = found.get("rack")
    if rack is not None:
        rack = _word(rack, path)
    fact = {"listeners": listeners, "rack": rack}
    protocols = _protocols(found.get("listener_security_protocol_map"), listeners)
    return {**fact, "protocols": protocols} if protocols else fact


def _word(value: Any, path: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_WORD or not value.isprintable():
        raise bad(path, f"{value!r:.100} is no host, listener or rack")
    return value


def parse_broker_id(name: str) -> int | None:
    """Of a node below `BROKER_IDS`; None for a name that is no broker's."""
    is_number = name.isascii() and name.isdigit() and len(name) <= 10
    return int(name) if is_number and name == str(int(name)) and int(name) <= _INT else None


def _protocols(found: Any, listeners: Collection[str]) -> dict[str, str]:
    """Of the listeners that do not speak PLAINTEXT. Without a map, a listener is called as what it speaks."""
    given = found if isinstance(found, dict) else {}
    spoken = {name: given.get(name, name) for name in listeners}
    return {name: protocol for name, protocol in spoken.items() if protocol in SECURITY_PROTOCOLS[1:]}


def broker_data(value: Mapping[str, Any], wall_ms: int) -> bytes:
    """The reverse of `parse_broker`, as a broker registers itself at `wall_ms`."""
    listeners: Mapping[str, Sequence[Any]] = value["listeners"]
    host, port = next(iter(listeners.values())) if listeners else ("", -1)
    node: dict[str, Any] = {
        "features": {},
        "listener_security_protocol_map": dict.fromkeys(listeners, PLAINTEXT) | value.get("protocols", {}),
        "endpoints": [f"{name}://{_bracketed(host)}:{port}" for name, (host, port) in listeners.items()],
        "jmx_port": -1,
        "port": port,
        "host": host,
        "version": 5,
        "timestamp": str(wall_ms),
    }
    if value.get("rack") is not None:
        node["rack"] = value["rack"]
    return dump(node)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def parse_controller(data: bytes | None) -> int:
    return bounded(load(data, CONTROLLER).get("brokerid"), 0, _INT, CONTROLLER)


def controller_data(node_id: int, wall_ms: int) -> bytes:
    return dump({"version": 2, "brokerid": node_id, "timestamp": str(wall_ms), "kraftControllerEpoch": -1})


def parse_epoch(data: bytes | None) -> int:
    text = (data or b"").decode(errors="replace")
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        raise bad(CONTROLLER_EPOCH, f"{text!r:.100} is no epoch")
    return bounded(int(text), 0, _INT, CONTROLLER_EPOCH)


# ---------------------------------------------------------------- topics


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def state_path(topic: str, index: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{index}/state"


@frozen
class TopicNode:
    """`/brokers/topics/T`. `id` is None for a topic that a Kafka before 2.8 made."""

    id: UUID | None
    replicas: tuple[tuple[int, ...], ...]
    adding: Mapping[int, tuple[int, ...]] = field(factory=dict)
    removing: Mapping[int, tuple[int, ...]] = field(factory=dict)
    extra: Mapping[str, Any] = field(factory=dict)

    @classmethod
    def parse(cls, data: bytes | None, path: str) -> TopicNode:
        found = load(data, path)
        by_index = cls._rows(found.pop("partitions", None), path)
        if sorted(by_index) != list(range(len(by_index))) or not all(by_index.values()):
            raise bad(path, "its partitions are not 0, 1, 2, … with replicas each")
        topic_id = found.pop("topic_id", None)
        found.pop("version", None)
        adding = cls._rows(found.pop("adding_replicas", None) or {}, path)
        removing = cls._rows(found.pop("removing_replicas", None) or {}, path)
        replicas = tuple(by_index[index] for index in range(len(by_index)))
        return cls(None if topic_id is None else parse_id(topic_id, path), replicas, adding, removing, found)

    @staticmethod
    def _rows(value: Any, path: str) -> dict[int, tuple[int, ...]]:
        if not isinstance(value, dict) or len(value) > MAX_PARTITIONS:
            raise bad(path, "it has no partitions")
        if not all(index.isascii() and index.isdigit() and len(index) <= 6 for index in value):
            raise bad(path, "a partition has no number")
        return {int(index): node_ids(nodes, path) for index, nodes in value.items()}

    def data(self) -> bytes:
        rows = {str(index): list(nodes) for index, nodes in enumerate(self.replicas)}
        node: dict[str, Any] = {"partitions": rows}
        if self.id is not None:
            node["topic_id"] = format_id(self.id)
        node["adding_replicas"] = {str(index): list(nodes) for index, nodes in self.adding.items() if nodes}
        node["removing_replicas"] = {str(index): list(nodes) for index, nodes in self.removing.items() if nodes}
        return dump({**node, "version": 3, **self.extra})


@frozen
class StateNode:
    """`/brokers/topics/T/partitions/P/state`."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    extra: Mapping[str, Any] = field(factory=dict)

    @classmethod
    def parse(cls, data: bytes | None, path: str) -> StateNode:
        found = load(data, path)
        found.pop("version", None)
        leader = bounded(found.pop("leader", None), -2, _INT, path)
        leader_epoch = bounded(found.pop("leader_epoch", None), 0, _INT, path)
        term = bounded(found.pop("controller_epoch", None), 0, _INT, path)
        return cls(max(leader, -1), leader_epoch, node_ids(found.pop("isr", None), path), term, found)

    def with_row(self, row: Sequence[Any], term: int) -> StateNode:
        """As a fact's row has it. A leader that asks for other in-sync replicas has recovered from an unclean
        election; what recovers is written down by Kafka alone, and only where it is so."""
        extra = {name: value for name, value in self.extra.items() if name != "leader_recovery_state"}
        kept = self.extra if row[3] != self.leader_epoch else extra
        return evolve(self, leader=row[2], leader_epoch=row[3], isr=tuple(row[1]), controller_epoch=term, extra=kept)

    def data(self) -> bytes:
        return dump(
            {
                "controller_epoch": self.controller_epoch,
                "leader": self.leader,
                "version": 1,
                "leader_epoch": self.leader_epoch,
                "isr": list(self.isr),
                **self.extra,
            }
        )


# ---------------------------------------------------------------- single nodes


def parse_cluster_id(data: bytes | None) -> str:
    found = load(data, CLUSTER_ID).get("id")
    if not isinstance(found, str) or not found or len(found) > 255:
        raise bad(CLUSTER_ID, f"{found!r:.100} is no cluster id")
    return found


def cluster_id_data(cluster_id: str) -> bytes:
    return dump({"version": "1", "id": cluster_id})


def parse_producer_ids(data: bytes | None) -> int:
    """The first id that was not given away."""
    if not data:
        return 0
    text = load(data, PRODUCER_IDS).get("block_end")
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 19:
        raise bad(PRODUCER_IDS, f"{text!r:.100} is no producer id")
    return bounded(int(text), 0, _LONG - 1, PRODUCER_IDS) + 1


def producer_ids_data(node_id: int, first: int, end: int) -> bytes:
    """The block from `first` up to `end`, excluded."""
    return dump({"version": 1, "broker": node_id, "block_start": str(first), "block_end": str(end - 1)})


def parse_features(data: bytes | None) -> dict[str, int]:
    """Finalized levels; none where features are off (status 0)."""
    found = load(data, FEATURE)
    features = found.get("features")
    if not isinstance(features, dict) or len(features) > MAX_CONFIGS or found.get("status") not in (0, 1):
        raise bad(FEATURE, "it has no features")
    if found["status"] == 0:
        return {}
    levels: dict[str, int] = {}
    for name, level in features.items():
        levels[name] = bounded(level.get("max_version_level") if isinstance(level, dict) else None, 0, 32_767, FEATURE)
    return levels


def features_data(levels: Mapping[str, int]) -> bytes:
    features = {name: {"max_version_level": level} for name, level in levels.items() if level}
    return dump({"features": features, "version": 2, "status": 1})


def parse_log_dir_event(data: bytes | None, path: str) -> int:
    """The broker of which a log directory failed."""
    return bounded(load(data, path).get("broker"), 0, _INT, path)


def log_dir_event_data(node_id: int) -> bytes:
    """A log directory of the broker failed."""
    return dump({"version": 1, "broker": node_id, "event": 1})


# ---------------------------------------------------------------- facts of our own


class FactName(NamedTuple):
    kind: str
    key: str


def fact_path(kind: str, key: str) -> str:
    """Raises `InvalidRequest` for a key that no path has room for."""
    name = quoted(key) or "%"
    if len(name) > 1_000:
        raise InvalidRequest(f"{key[:50]!r}… is too long for ZooKeeper; choose a name of fewer than 1,000 bytes")
    return f"{FACTS}/{kind}/{name}"


def fact_name(kind: str, name: str) -> FactName:
    return FactName(kind, "" if name == "%" else unquoted(name))


# ---------------------------------------------------------------- names in paths

_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")


def quoted(name: str) -> str:
    """As Kafka's Sanitizer writes users and client ids: all but letters, digits and `-_.~` as %XX of UTF-8."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in name.encode())


def unquoted(text: str) -> str:
    """Raises `CorruptMessage` for what `quoted` never gives."""
    from urllib.parse import unquote_to_bytes

    try:
        return unquote_to_bytes(text).decode()
    except ValueError:
        raise CorruptMessage(f"{text[:100]!r} is no name that Kafka quoted; delete that node") from None
