"""Reads what Kafka and this plugin keep in ZooKeeper into facts. Nodes that are not as Kafka writes them are logged and
left out, so that one of them does not stop a cluster.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from uuid import NAMESPACE_URL, uuid5

from logkernel.attrs_lite import evolve
from logkernel.contracts import MetadataChange
from logkernel.errors import CorruptMessage
from logkernel.vocabulary import is_topic_name

from . import entities, fact_nodes, layout, tokens
from .connection import Connection, Node
from .entities import Resource
from .plan import StateShadow, TopicShadow, Tree

T = TypeVar("T")
log = logging.getLogger("logkernel.zookeeper")


def tolerant(parse: Callable[..., T], *arguments: Any) -> T | None:
    """What `parse` gives; None for a node that is not as Kafka writes it."""
    try:
        return parse(*arguments)
    except CorruptMessage as error:
        log.error("node left out: error=%s", error)
        return None


def read_tree(zk: Connection, node_id: int, term: int) -> Tree:
    """What a controller has to know of topics, producer ids, features and facts of our own."""
    tree = Tree(node_id, term)
    tree.deleting = set(zk.children(layout.DELETE_TOPICS) or ())
    tree.configured = set(zk.children(layout.TOPIC_CONFIGS) or ())
    names = sorted(zk.children(layout.TOPICS) or ())
    for name, found in zip(names, zk.get_many([layout.topic_path(name) for name in names]), strict=True):
        shadow = None if found is None else tolerant(_topic, name, found)
        if shadow is not None:
            tree.topics[name] = shadow
        else:
            tree.broken.add(name)
    _read_states(zk, tree)
    ids, feature = zk.get(layout.PRODUCER_IDS), zk.get(layout.FEATURE)
    if ids is not None:
        tree.next_producer_id, tree.producer_ids_version = layout.parse_producer_ids(ids.data), ids.version
    if feature is not None:
        tree.features, tree.feature_version = layout.parse_features(feature.data), feature.version
    return tree


def _topic(name: str, found: Node) -> TopicShadow:
    if not is_topic_name(name):  # folders are called so
        raise layout.bad(layout.topic_path(name)[:300], "no topic can be called so")
    node = layout.TopicNode.parse(found.data, layout.topic_path(name))
    if node.id is None:  # of a Kafka before 2.8; every controller gives it the same
        node = evolve(node, id=uuid5(NAMESPACE_URL, f"kafka:{found.czxid}:{name}"))
    return TopicShadow(node, found.version, [])


def _read_states(zk: Connection, tree: Tree) -> None:
    rows = [(name, index) for name, shadow in tree.topics.items() for index in range(len(shadow.node.replicas))]
    missing: list[tuple[str, StateShadow, str]] = []
    paths = [layout.state_path(*row) for row in rows]
    for (name, index), path, found in zip(rows, paths, zk.get_many(paths), strict=True):
        state = StateShadow()
        tree.topics[name].states.append(state)
        if found is None:
            missing.append((name, state, f"{layout.partitions_path(name)}/{index}"))
            continue
        node = tolerant(layout.StateNode.parse, found.data, path)
        state.version = found.version
        state.node = node or layout.StateNode(-1, 0, tree.topics[name].node.replicas[index], tree.term)
    folders = zk.get_many([path for _, _, path in missing])
    for (_, state, _), folder in zip(missing, folders, strict=True):
        state.has_folder = folder is not None
    names = sorted({name for name, _, _ in missing})
    for name, folder in zip(names, zk.get_many([layout.partitions_path(name) for name in names]), strict=True):
        tree.topics[name].has_folder = folder is not None


# ---------------------------------------------------------------- facts


def cluster(zk: Connection) -> Iterator[MetadataChange]:
    found = zk.get(layout.CLUSTER_ID)
    if found is not None:
        yield MetadataChange("cluster", "", {"id": layout.parse_cluster_id(found.data)})


def own_facts(zk: Connection, tree: Tree | None = None) -> Iterator[MetadataChange]:
    """Those that Kafka has no node for; `tree` learns which there are."""
    kinds = zk.children(layout.FACTS) or []
    names = [
        (kind, name)
        for kind, found in zip(kinds, zk.children_of_many([f"{layout.FACTS}/{kind}" for kind in kinds]), strict=True)
        for name in sorted(found)
    ]
    if tree is not None:
        tree.kinds.update(kinds)
    nodes = zk.get_many([f"{layout.FACTS}/{kind}/{name}" for kind, name in names])
    for (kind, name), found in zip(names, nodes, strict=True):
        fact = None if found is None else tolerant(_fact, kind, name, found)
        if fact is not None:
            if tree is not None:
                tree.facts.add((fact.kind, fact.key))
            yield fact


def _fact(kind: str, name: str, found: Node) -> MetadataChange:
    return fact_nodes.fact(kind, layout.fact_name(kind, name).key, found.data)


def features(found: Node | None, known: Iterable[str] = ()) -> list[MetadataChange]:
    """The finalized levels; those of `known` that have none any more. What /feature does not name is at level 0."""
    levels = {} if found is None else tolerant(layout.parse_features, found.data) or {}
    gone = [MetadataChange("feature", name, None) for name in known if name not in levels]
    there = [MetadataChange("feature", name, {"level": level}) for name, level in levels.items()]
    epoch = 0 if found is None else found.version
    return [
        MetadataChange("feature", "", {"level": 0}), *gone, *there,
        MetadataChange("features_epoch", "", {"epoch": epoch}),
    ]  # fmt: skip


def settings(zk: Connection, without: Iterable[str] = ()) -> Iterator[MetadataChange]:
    """Settings of topics (but for some), brokers, users, clients and addresses, that are there."""
    left_out = frozenset(without)
    kinds = ("topics", "brokers", "users", "clients", "ips")
    found = zk.children_of_many([f"{layout.CONFIG}/{kind}" for kind in kinds])
    paths = [
        f"{kind}/{name}"
        for kind, names in zip(kinds, found, strict=True)
        for name in sorted(names)
        if kind != "topics" or name not in left_out
    ]
    users = [f"{path}/clients" for path in paths if path.startswith("users/")]
    clients = zk.children_of_many([f"{layout.CONFIG}/{path}" for path in users])
    paths.extend(f"{path}/{name}" for path, names in zip(users, clients, strict=True) for name in sorted(names))
    yield from (change for change in entity_facts(zk, paths) if change.value is not None)


def entity_facts(zk: Connection, paths: Sequence[str]) -> list[MetadataChange]:
    """What entities' settings mean now; with None for what is not there."""
    return facts_of(paths, zk.get_many([f"{layout.CONFIG}/{path}" for path in paths]))


def facts_of(paths: Sequence[str], nodes: Sequence[Node | None]) -> list[MetadataChange]:
    """What the nodes of entities' settings mean; with None for what is not there."""
    facts: list[MetadataChange] = []
    for path, found in zip(paths, nodes, strict=True):
        data = None if found is None else found.data
        read = tolerant(_entity_facts, path, data)
        facts.extend(read or ())
    return facts


def _entity_facts(path: str, data: bytes | None) -> list[MetadataChange]:
    return entities.facts_of(path, entities.parse_config(data, path))


def rules(zk: Connection) -> dict[Resource, set[str]]:
    """Resource → the keys of its acl facts."""
    roots = [
        (pattern, kind, f"{root}/{name}")
        for pattern, root in entities.ACL_ROOTS.items()
        for kind, name in entities.RESOURCE_TYPES.items()
    ]
    found = zk.children_of_many([path for _, _, path in roots])
    resources = [
        Resource(kind, pattern, name)
        for (pattern, kind, _), names in zip(roots, found, strict=True)
        for name in sorted(names)
    ]
    return rules_of(zk, resources)


def rules_of(zk: Connection, resources: Sequence[Resource]) -> dict[Resource, set[str]]:
    """A resource whose node cannot be read is closed: among what it says may be who is denied."""
    nodes = zk.get_many([resource.node for resource in resources])
    known: dict[Resource, set[str]] = {}
    for resource, found in zip(resources, nodes, strict=True):
        data = None if found is None else found.data
        kept = tolerant(entities.parse_rules, data, resource.node)
        keys = [entities.closed(resource)] if kept is None else [entities.acl_key(resource, rule) for rule in kept]
        known[resource] = {key for key in keys if key is not None}
    return known


def delegation_tokens(zk: Connection, ids: Sequence[str] | None = None) -> list[MetadataChange]:
    """Of all, or of some, with None for what is not there."""
    wanted = sorted(zk.children(tokens.TOKENS) or ()) if ids is None else ids
    nodes = zk.get_many([f"{tokens.TOKENS}/{token_id}" for token_id in wanted])
    found = []
    for token_id, node in zip(wanted, nodes, strict=True):
        gone = MetadataChange("token", token_id, None)
        fact = gone if node is None else tolerant(tokens.fact, token_id, node.data)
        if fact is not None:
            found.append(fact)
    return found


def brokers(
    zk: Connection, watch_names: Callable[[Any], None] | None, watch_node: Callable[[Any], None] | None
) -> dict[int, tuple[int, dict[str, Any]]]:
    """Node id → (broker epoch, fact) of those that are registered."""
    names = map(layout.parse_broker_id, zk.children(layout.BROKER_IDS, watch_names) or ())
    ids = sorted(node_id for node_id in names if node_id is not None)
    paths = [layout.broker_path(node_id) for node_id in ids]
    nodes = zk.get_many(paths) if watch_node is None else zk.get_watched(paths, watch_node)
    known = {}
    for node_id, path, found in zip(ids, paths, nodes, strict=True):
        if found is not None:
            value = tolerant(layout.parse_broker, found.data, path)
            if value is not None:
                known[node_id] = (found.czxid, value)
    return known
