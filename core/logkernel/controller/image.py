"""The cluster's metadata in memory, folded from the changes that the coordination stores.

| kind | key | value (JSON) |
|---|---|---|
| cluster | "" | {"id": text} |
| broker | node id | {"listeners": {name: [host, port]}, "rack": text or null, "protocols": {name: protocol}} |
| topic | name | {"id": text, "internal": bool, "partitions": [row, …]} |
| partition | "topic:index" | row, under the key "row" |
| config | "topic:NAME", "broker:ID", "broker:" (all brokers), "group:ID", "client-metrics:NAME" | {setting: text} |
| producer_ids | "" | {"next": int}: every id below is allocated |
| feature | name, "" (all without an own) | {"level": int}: the finalized level; the default is that of a new cluster |
| features_epoch | "" | {"epoch": int}: how often a level was set, where a snapshot left that out |
| log_dirs | node id | {"event": 1}: a log directory of the broker failed; a message to the controller, not folded |
| asked_move | "topic:index" | {"replicas": [node, …]}: an administrator asks to move the partition; not folded |
| asked_leader | "topic:index" | an administrator asks that the first replica leads; not folded |
| gone | topic id | {"topic": name, "replicas": [[node, …], …]}: a deleted topic; brokers may still have its folders |
| incarnation | node id | {"epoch": int}: the broker epoch in which elections last counted with that broker |
| acl | the binding as a JSON list, see `vocabulary.Acl` | {} |
| scram | "MECHANISM:USER" | {"iterations": int, "salt", "stored_key", "server_key": base64} |
| quota | the entity as a JSON list of [type, name or null], sorted | {key: number} |
| rack | node id | {"rack": text}: of a broker that may be away; its replicas are where they were |
| secret | what for | {"bytes": base64}: made by the first broker that needed it |
| token | its id | {"owner", "requester": "KIND:NAME", "renewers": […], "issued_ms", "max_ms", "expires_ms": int} |

A row is [replicas, isr, leader, leader epoch, partition epoch]: a topic of 1,000 partitions is 20 KB of JSON. While a
partition moves, two more follow: the replicas that are being added, and those that are being removed.
A value of None deletes; of what was asked, it says that nothing is left to do. Unknown kinds are ignored: a newer
release may have written them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.contracts import MetadataChange
from logkernel.controller.token import Token, Tokens
from logkernel.errors import UnknownTopicOrPartition, no_partition
from logkernel.vocabulary import Acl

NO_LEADER = -1
UNKNOWN_USERS: Final = "unknown users"
"""The secret that makes salts of users who do not exist."""
WATCHED: Final = frozenset(
    {"config", "acl", "scram", "quota", "token", "rack", "secret", "feature", "features_epoch", "cluster", "gone"}
)
"""Kinds of changes that every broker of a cluster gets from the coordination; the others come from the controller."""


@mutable
class Partition:
    """`leader` is -1 if there is none; `isr` is a subset of `replicas`, in no special order."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    """Grows with each change of the leader."""
    partition_epoch: int = 0
    """Grows with each change of any field."""
    adding: tuple[int, ...] = ()
    """Those of `replicas` that a reassignment adds."""
    removing: tuple[int, ...] = ()
    """Those of `replicas` that a reassignment removes at its end."""

    def row(self) -> list[Any]:
        row = [list(self.replicas), list(self.isr), self.leader, self.leader_epoch, self.partition_epoch]
        return [*row, list(self.adding), list(self.removing)] if self.adding or self.removing else row

    @classmethod
    def from_row(cls, row: list[Any]) -> Partition:
        return cls(tuple(row[0]), tuple(row[1]), row[2], row[3], row[4], *(tuple(nodes) for nodes in row[5:7]))


@mutable
class Topic:
    name: str
    id: UUID
    partitions: list[Partition]
    internal: bool = False

    def change(self) -> MetadataChange:
        rows = [partition.row() for partition in self.partitions]
        return MetadataChange("topic", self.name, {"id": str(self.id), "internal": self.internal, "partitions": rows})


@mutable
class BrokerRegistration:
    """What the cluster knows of a live broker. `listeners` is listener name → (host, port)."""

    id: int
    listeners: dict[str, tuple[str, int]]
    rack: str | None = None
    protocols: dict[str, str] = field(factory=dict)
    """Listener name → security protocol, of those that do not speak PLAINTEXT."""


class Acls(dict[Acl, None]):
    """The cluster's ACLs, and how often they changed."""

    changes = 0


def acl_key(acl: Acl) -> str:
    return _json(acl)


class Scram(NamedTuple):
    """The keys that check a user's password (RFC 5802). The password cannot be computed from them."""

    iterations: int
    salt: str
    stored_key: str
    server_key: str


Entity = tuple[tuple[str, str | None], ...]
"""The entity of a quota: (type, name or None for the default), sorted by type."""


def quota_key(entity: Entity) -> str:
    return _json(entity)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def topic_key(topic: str) -> str:
    return f"topic:{topic}"


def group_key(group_id: str) -> str:
    return f"group:{group_id}"


def client_metrics_key(name: str) -> str:
    return f"client-metrics:{name}"


def broker_key(node_id: int | str) -> str:
    """The config key of one broker, or of all by ""."""
    return f"broker:{node_id}"


@mutable
class ClusterImage:
    """Folds changes one by one. Only `apply` changes it."""

    cluster_id: str = ""
    topics: dict[str, Topic] = field(factory=dict)
    names: dict[UUID, str] = field(factory=dict)
    """Topic id → name."""
    configs: dict[str, dict[str, str]] = field(factory=dict)
    nodes: dict[int, BrokerRegistration] = field(factory=dict)
    next_producer_id: int = 0
    features: dict[str, int] = field(factory=dict)
    """Feature → finalized level, of those that were set."""
    features_epoch: int = 0
    """How often a level was set."""
    gone: dict[UUID, Topic | None] = field(factory=dict)
    """Topic id → deleted topic of which brokers may still have folders, with its replicas; None if those are
    unknown."""
    incarnations: dict[int, int] = field(factory=dict)
    """Node id → the last incarnation (broker epoch) that elections counted as alive; a larger one is a new start."""
    acls: Acls = field(factory=Acls)
    scram: dict[tuple[str, int], Scram] = field(factory=dict)
    """(user, mechanism) → credential."""
    quotas: dict[Entity, dict[str, float]] = field(factory=dict)
    tokens: Tokens = field(factory=Tokens)
    racks: dict[int, str] = field(factory=dict)
    """Broker → its rack, of all that ever joined with one."""
    secrets: dict[str, bytes] = field(factory=dict, repr=False)

    @classmethod
    def of(cls, changes: Iterable[MetadataChange]) -> ClusterImage:
        image = cls()
        image.apply_all(changes)
        return image

    def apply_all(self, changes: Iterable[MetadataChange]) -> None:
        for change in changes:
            self.apply(change)

    def apply(self, change: MetadataChange) -> None:
        """Fold one change. Raises KeyError for a partition of an unknown topic."""
        fold = _FOLDS.get(change.kind)
        if fold is not None:
            fold(self, change.key, change.value)

    def partition(self, topic: str, index: int) -> Partition:
        """The row of a partition. Raises `UnknownTopicOrPartition`."""
        found = self.topics.get(topic)
        if found is None:
            raise UnknownTopicOrPartition(f"there is no topic {topic!r}; check the name, or create the topic")
        if not 0 <= index < len(found.partitions):
            raise UnknownTopicOrPartition(no_partition(topic, index, len(found.partitions)))
        return found.partitions[index]

    def has_replica(self, node: int, topic: str, index: int) -> bool:
        """Whether the partition exists and has a replica on that broker."""
        found = self.topics.get(topic)
        return found is not None and index < len(found.partitions) and node in found.partitions[index].replicas

    def topic_config(self, topic: str) -> Mapping[str, str]:
        """The topic's own settings."""
        return self.configs.get(topic_key(topic), {})

    def group_config(self, group_id: str) -> Mapping[str, str]:
        """The group's own settings."""
        return self.configs.get(group_key(group_id), {})

    def broker_config(self, node_id: int | str) -> Mapping[str, str]:
        """The dynamic settings of a broker, or those of all brokers by ""."""
        return self.configs.get(broker_key(node_id), {})

    # contracts.ClusterView

    def partition_count(self, topic: str) -> int | None:
        found = self.topics.get(topic)
        return None if found is None else len(found.partitions)

    def topic_id(self, topic: str) -> UUID | None:
        found = self.topics.get(topic)
        return None if found is None else found.id

    def topic_name(self, topic_id: UUID) -> str | None:
        return self.names.get(topic_id)

    def brokers(self, listener: str) -> list[tuple[int, str, int, str | None]]:
        """(node id, host, port, rack) of every registered broker that has such a listener."""
        return [
            (node.id, *node.listeners[listener], node.rack)
            for _, node in sorted(self.nodes.items())
            if listener in node.listeners
        ]

    @property
    def size(self) -> int:
        """Return about how many changes `snapshot` yields."""
        named = len(self.nodes) + len(self.topics) + len(self.configs) + len(self.features) + len(self.gone)
        access = len(self.acls) + len(self.scram) + len(self.quotas) + len(self.tokens) + len(self.secrets)
        return 3 + named + len(self.incarnations) + len(self.racks) + access

    def snapshot(self) -> Iterator[MetadataChange]:
        """Yield the smallest number of changes that fold to this image."""
        if self.cluster_id:
            yield MetadataChange("cluster", "", {"id": self.cluster_id})
        for node in self.nodes.values():
            yield registration_change(node)
        for topic in self.topics.values():
            yield topic.change()
        for key, config in self.configs.items():
            yield MetadataChange("config", key, dict(config))
        if self.next_producer_id:
            yield MetadataChange("producer_ids", "", {"next": self.next_producer_id})
        for name, level in self.features.items():
            yield MetadataChange("feature", name, {"level": level})
        if self.features_epoch != len(self.features):
            yield MetadataChange("features_epoch", "", {"epoch": self.features_epoch})
        for topic_id, gone in self.gone.items():
            yield MetadataChange("gone", str(topic_id), _gone_value(gone))
        for node_id, epoch in self.incarnations.items():
            yield incarnation_change(node_id, epoch)
        for node_id, rack in self.racks.items():
            yield rack_change(node_id, rack)
        for acl in self.acls:
            yield MetadataChange("acl", acl_key(acl), {})
        for (user, mechanism), credential in self.scram.items():
            yield scram_change(user, mechanism, credential)
        for entity, values in self.quotas.items():
            yield MetadataChange("quota", quota_key(entity), dict(values))
        for token in self.tokens.values():
            yield token.change()
        for name, secret in self.secrets.items():
            yield secret_change(name, secret)


def registration_change(node: BrokerRegistration) -> MetadataChange:
    listeners = {name: list(address) for name, address in node.listeners.items()}
    value: dict[str, Any] = {"listeners": listeners, "rack": node.rack}
    if node.protocols:
        value["protocols"] = dict(node.protocols)
    return MetadataChange("broker", str(node.id), value)


def log_dirs_change(node_id: int) -> MetadataChange:
    return MetadataChange("log_dirs", str(node_id), {"event": 1})


def incarnation_change(node_id: int, broker_epoch: int) -> MetadataChange:
    return MetadataChange("incarnation", str(node_id), {"epoch": broker_epoch})


def rack_change(node_id: int, rack: str | None) -> MetadataChange:
    return MetadataChange("rack", str(node_id), None if rack is None else {"rack": rack})


def _gone_value(topic: Topic | None) -> dict[str, Any]:
    if topic is None:
        return {}
    return {"topic": topic.name, "replicas": [list(row.replicas) for row in topic.partitions]}


def partition_change(topic: str, index: int, partition: Partition) -> MetadataChange:
    return MetadataChange("partition", f"{topic}:{index}", {"row": partition.row()})


def scram_change(user: str, mechanism: int, credential: Scram | None) -> MetadataChange:
    value = None
    if credential is not None:
        value = credential._asdict()
    return MetadataChange("scram", f"{mechanism}:{user}", value)


def secret_change(name: str, secret: bytes) -> MetadataChange:
    return MetadataChange("secret", name, {"bytes": base64.b64encode(secret).decode()})


Value = Mapping[str, Any] | None


def _fold_cluster(image: ClusterImage, key: str, value: Value) -> None:
    image.cluster_id = value["id"] if value is not None else ""


def _fold_broker(image: ClusterImage, key: str, value: Value) -> None:
    if value is None:
        image.nodes.pop(int(key), None)
        return
    listeners = {name: (host, port) for name, (host, port) in value["listeners"].items()}
    protocols = dict(value.get("protocols", ()))
    image.nodes[int(key)] = BrokerRegistration(int(key), listeners, value.get("rack"), protocols)


def _fold_topic(image: ClusterImage, key: str, value: Value) -> None:
    old = image.topics.pop(key, None)
    if old is not None:
        image.names.pop(old.id, None)
    if value is None:
        if old is not None:
            image.gone[old.id] = old
        return
    partitions = [Partition.from_row(row) for row in value["partitions"]]
    topic = Topic(key, UUID(value["id"]), partitions, value.get("internal", False))
    image.topics[key] = topic
    image.names[topic.id] = key


def _fold_partition(image: ClusterImage, key: str, value: Value) -> None:
    topic, _, index = key.rpartition(":")
    if value is not None:
        image.topics[topic].partitions[int(index)] = Partition.from_row(value["row"])


def _fold_config(image: ClusterImage, key: str, value: Value) -> None:
    if value:
        image.configs[key] = dict(value)
    else:
        image.configs.pop(key, None)


def _fold_producer_ids(image: ClusterImage, key: str, value: Value) -> None:
    if value is not None:
        image.next_producer_id = max(image.next_producer_id, value["next"])


def _fold_feature(image: ClusterImage, key: str, value: Value) -> None:
    image.features_epoch += 1
    if value is None:
        image.features.pop(key, None)
    else:
        image.features[key] = value["level"]


def _fold_features_epoch(image: ClusterImage, key: str, value: Value) -> None:
    if value is not None:
        image.features_epoch = value["epoch"]


def _fold_gone(image: ClusterImage, key: str, value: Value) -> None:
    topic_id = UUID(key)
    if value is None:
        image.gone.pop(topic_id, None)
    elif "topic" in value:
        rows = [Partition(tuple(replicas), (), NO_LEADER) for replicas in value["replicas"]]
        image.gone[topic_id] = Topic(value["topic"], topic_id, rows)
    else:
        image.gone[topic_id] = None


def _fold_incarnation(image: ClusterImage, key: str, value: Value) -> None:
    if value is None:
        image.incarnations.pop(int(key), None)
    else:
        image.incarnations[int(key)] = value["epoch"]


def _fold_rack(image: ClusterImage, key: str, value: Value) -> None:
    if value is None:
        image.racks.pop(int(key), None)
    else:
        image.racks[int(key)] = value["rack"]


def _fold_acl(image: ClusterImage, key: str, value: Value) -> None:
    acl = Acl(*json.loads(key))
    image.acls.changes += 1
    if value is None:
        image.acls.pop(acl, None)
    else:
        image.acls[acl] = None


def _fold_scram(image: ClusterImage, key: str, value: Value) -> None:
    mechanism, _, user = key.partition(":")
    if value is None:
        image.scram.pop((user, int(mechanism)), None)
    else:
        image.scram[user, int(mechanism)] = Scram(**value)


def _fold_quota(image: ClusterImage, key: str, value: Value) -> None:
    entity = tuple((kind, name) for kind, name in json.loads(key))
    if value:
        image.quotas[entity] = dict(value)
    else:
        image.quotas.pop(entity, None)


def _fold_token(image: ClusterImage, key: str, value: Value) -> None:
    image.tokens.changes += 1
    if value is None:
        image.tokens.pop(key, None)
    else:
        image.tokens[key] = Token.of(key, value)


def _fold_secret(image: ClusterImage, key: str, value: Value) -> None:
    if value is None:
        image.secrets.pop(key, None)
    else:
        image.secrets[key] = base64.b64decode(value["bytes"])


_FOLDS = {
    "cluster": _fold_cluster,
    "broker": _fold_broker,
    "topic": _fold_topic,
    "partition": _fold_partition,
    "config": _fold_config,
    "producer_ids": _fold_producer_ids,
    "feature": _fold_feature,
    "features_epoch": _fold_features_epoch,
    "gone": _fold_gone,
    "incarnation": _fold_incarnation,
    "rack": _fold_rack,
    "acl": _fold_acl,
    "scram": _fold_scram,
    "quota": _fold_quota,
    "token": _fold_token,
    "secret": _fold_secret,
}
