"""What any broker may write: settings, users, quotas, access rules, delegation tokens, the cluster's id, facts of our
own.

A commit reads the nodes that it changes and writes them at the versions that it read, with the nodes that tell other
brokers: in one multi, if that holds them. Where another broker wrote meanwhile, it begins again with what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from logkernel.contracts import MetadataChange
from logkernel.errors import KafkaStorageError

from . import entities, layout, tokens
from .connection import Connection, failed
from .plan import MAX_MULTI_BYTES, MAX_OPERATIONS, Create, Delete, Operation, Set, change_note, check_sizes, size_of

ATTEMPTS: Final = 100
"""Of four that write the same node at once, one lost twenty times in a row. Each loss is a write of another broker."""
CONFLICTS: Final = (BadVersionError, NodeExistsError, NoNodeError)


Unit = list[Operation]
"""What belongs into one multi."""


def write(zk: Connection, changes: Sequence[MetadataChange]) -> None:
    """All of them, or none, if they fit into one multi; else node by node, in parts. Raises `Unanswered`,
    `KafkaStorageError`, `PolicyViolation`."""
    for _ in range(ATTEMPTS):
        error = next((each for each in map(failed, zk.multis(_packed(_units(zk, changes)))) if each is not None), None)
        if error is None:
            return
        if not isinstance(error, CONFLICTS):
            raise KafkaStorageError(f"ZooKeeper refused a change ({error!r}); its log may say why")
    raise KafkaStorageError("other brokers changed the same nodes each time; try again")


def _packed(units: Iterable[Unit]) -> list[Unit]:
    """As few multis as it takes. Raises `PolicyViolation` for a node that is too large."""
    packed: list[Unit] = []
    for unit in units:
        check_sizes(unit)
        if packed and len(packed[-1]) + len(unit) <= MAX_OPERATIONS and size_of(packed[-1] + unit) <= MAX_MULTI_BYTES:
            packed[-1].extend(unit)
        else:
            packed.append(list(unit))
    return packed


def _units(zk: Connection, changes: Sequence[MetadataChange]) -> list[Unit]:
    by_node: dict[str, list[entities.Entity]] = {}
    by_resource: dict[entities.Resource, list[MetadataChange]] = {}
    units: list[Unit] = []
    made: set[str] = set()
    for change in changes:
        entity = entities.entity_of(change)
        if entity is not None:
            by_node.setdefault(entity.node, []).append(entity)
        elif change.kind == "acl":
            by_resource.setdefault(entities.resource_of(change)[0], []).append(change)
        elif change.kind == "token":
            units.append(_token(zk, change, made))
        elif change.kind == "cluster":
            if zk.get(layout.CLUSTER_ID) is None and change.value is not None:
                named = Create(layout.CLUSTER_ID, layout.cluster_id_data(change.value["id"]))
                units.append([*_parents(zk, layout.CLUSTER_ID, made), named])
        elif change.kind == "log_dirs":
            event = layout.log_dir_event_data(int(change.key))
            units.append([Create(f"{layout.LOG_DIR_EVENTS}/log_dir_event_", event, sequence=True)])
        else:
            units.append(_own_fact(zk, change, made))
    units += [_entity(zk, node, wanted, made) for node, wanted in by_node.items()]
    units += [_rules(zk, resource, rules, made) for resource, rules in by_resource.items()]
    return [unit for unit in units if unit]


def _parents(zk: Connection, path: str, made: set[str]) -> list[Operation]:
    """Makes the nodes above a path that are not there."""
    missing: list[Operation] = []
    above = path.rpartition("/")[0]
    while above and above not in made and zk.exists(above) is None:
        made.add(above)
        missing.insert(0, Create(above))
        above = above.rpartition("/")[0]
    return missing


def _entity(zk: Connection, node: str, wanted: Sequence[entities.Entity], made: set[str]) -> list[Operation]:
    found = zk.get(node)
    config = {} if found is None else entities.parse_config(found.data, node)
    after = config
    for entity in wanted:
        after = entity.update(after)
    if after == config and (found is not None or not after):
        return []
    data = entities.config_data(after)
    if found is not None:
        return [Set(node, data, found.version), change_note(wanted[0].path)]
    made.add(node)
    return [*_parents(zk, node, made), Create(node, data), change_note(wanted[0].path)]


def _rules(
    zk: Connection, resource: entities.Resource, changes: Sequence[MetadataChange], made: set[str]
) -> list[Operation]:
    found = zk.get(resource.node)
    before = [] if found is None else entities.parse_rules(found.data, resource.node)
    after = list(before)
    for change in changes:
        rule = entities.resource_of(change)[1]
        after = [known for known in after if known != rule]
        if change.value is not None:
            after.append(rule)
    if after == before:
        return []
    prefix, data = resource.change()
    tells = [*_parents(zk, prefix, made), Create(prefix, data, sequence=True)]
    if found is None:
        return [*_parents(zk, resource.node, made), Create(resource.node, entities.rules_data(after)), *tells]
    if not after:
        return [Delete(resource.node, found.version), *tells]
    return [Set(resource.node, entities.rules_data(after), found.version), *tells]


def _token(zk: Connection, change: MetadataChange, made: set[str]) -> list[Operation]:
    path = tokens.path(change.key)
    found = zk.get(path)
    if found is None:
        if change.value is None:
            return []
        write: list[Operation] = [*_parents(zk, path, made), Create(path, tokens.data(change))]
    elif change.value is None:
        write = [Delete(path, found.version)]
    else:
        write = [Set(path, tokens.data(change), found.version)]
    tells = [*_parents(zk, tokens.CHANGE, made), Create(tokens.CHANGE, change.key.encode(), sequence=True)]
    return [*write, *tells]


def _own_fact(zk: Connection, change: MetadataChange, made: set[str]) -> list[Operation]:
    path = layout.fact_path(change.kind, change.key)
    found = zk.get(path)
    name = layout.dump({"kind": change.kind, "key": change.key})
    tell = Create(f"{layout.FACT_CHANGES}/change_", name, sequence=True)
    if change.value is None:
        return [] if found is None else [Delete(path, found.version), tell]
    data = layout.dump(change.value)
    if found is not None:
        return [Set(path, data, found.version), tell]
    return [*_parents(zk, path, made), Create(path, data), tell]
