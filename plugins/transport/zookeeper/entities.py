"""What has settings in ZooKeeper: entities, and the facts that their nodes stand for. Pure.

    node                                     entity path of its changes    facts
    /config/topics/T                         topics/T                      config topic:T
    /config/brokers/N, …/<default>           brokers/N                     config broker:N, broker:
    /config/users/U                          users/U                       scram 1:U, 2:U; quota [user U]
    /config/users/U/clients/C                users/U/clients/C             quota [client-id C, user U]
    /config/clients/C                        clients/C                     quota [client-id C]
    /config/ips/I                            ips/I                         quota [ip I]
    /kafka-acl/TYPE/NAME                                                   acl, one each rule
    /kafka-acl-extended/prefixed/TYPE/NAME                                 acl, one each rule

Users, client ids and addresses are quoted in paths. A node that holds several facts is changed by reading it, and
writing it at the version that was read; what else is in it stays.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final, NamedTuple

from logkernel.contracts import MetadataChange
from logkernel.errors import CorruptMessage, InvalidRequest

from .layout import CONFIG, MAX_CONFIGS, MAX_NAME, dump, is_node_name, load, quoted, unquoted

DEFAULT: Final = "<default>"
MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
QUOTAS: Final = frozenset(
    {
        "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
        "connection_creation_rate",
    }
)  # fmt: skip
_TYPES: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
Update = Callable[[dict[str, str]], dict[str, str]]


class Entity(NamedTuple):
    """An entity and what a change does to its settings."""

    path: str
    update: Update

    @property
    def node(self) -> str:
        return f"{CONFIG}/{self.path}"


def parse_config(data: bytes | None, path: str) -> dict[str, str]:
    """The settings of an entity; none for a node that only has others below it. Raises `CorruptMessage`."""
    if not data:
        return {}
    config = load(data, path).get("config")
    if not isinstance(config, dict) or len(config) > MAX_CONFIGS:
        raise CorruptMessage(f"ZooKeeper's node {path} holds no settings; repair or delete the node")
    return {name: value for name, value in config.items() if isinstance(value, str)}


def config_data(config: Mapping[str, str]) -> bytes:
    return dump({"version": 1, "config": dict(config)})


def change_data(entity_path: str) -> bytes:
    return dump({"version": 2, "entity_path": entity_path})


def parse_change(data: bytes | None, path: str) -> str:
    """The entity path that a node of `/config/changes` names. Raises `CorruptMessage`."""
    found = load(data, path)
    entity_path = found.get("entity_path")
    if found.get("version") == 1:  # Kafka before 0.10.2
        entity_path = f"{found.get('entity_type')}/{found.get('entity_name')}"
    if isinstance(entity_path, str) and len(entity_path) <= 10_000 and all(map(is_node_name, entity_path.split("/"))):
        return entity_path
    raise CorruptMessage(f"ZooKeeper's node {path} names no entity; delete the node")


# ---------------------------------------------------------------- from nodes to facts


def facts_of(entity_path: str, config: Mapping[str, str]) -> list[MetadataChange]:
    """What an entity's settings mean, with None for facts that are not there; nothing for an unknown kind of entity."""
    words = entity_path.split("/")
    if words[0] == "topics" and len(words) == 2:
        return [MetadataChange("config", f"topic:{words[1]}", dict(config) or None)]
    if words[0] == "brokers" and len(words) == 2:
        return [MetadataChange("config", f"broker:{'' if words[1] == DEFAULT else words[1]}", dict(config) or None)]
    entity = _quota_entity(words)
    if entity is None:
        return []
    found = [MetadataChange("quota", _json(entity), _rates(config) or None)]
    if len(words) == 2 and words[0] == "users" and entity[0][1] is not None:
        for number, mechanism in MECHANISMS.items():
            found.append(MetadataChange("scram", f"{number}:{entity[0][1]}", _scram(config.get(mechanism))))
    return found


def _quota_entity(words: list[str]) -> list[tuple[str, str | None]] | None:
    if len(words) not in (2, 4) or (len(words) == 4 and (words[0], words[2]) != ("users", "clients")):
        return None
    pairs: list[tuple[str, str | None]] = []
    for kind, name in zip(words[::2], words[1::2], strict=True):
        if kind not in _TYPES or not name:
            return None
        if len(name) > MAX_NAME:
            raise CorruptMessage(f"{name[:50]!r}… has {len(name)} characters, more than a name has; delete that node")
        pairs.append((_TYPES[kind], None if name == DEFAULT else unquoted(name)))
    return sorted(pairs, key=lambda pair: pair[0])


def _rates(config: Mapping[str, str]) -> dict[str, float]:
    """Quotas that are numbers, as only these hold anybody back, or let anybody in."""
    found = {}
    for name, text in config.items():
        if name in QUOTAS:
            try:
                rate = float(text)
            except ValueError:
                continue
            if 0 <= rate < inf:  # neither is NaN
                found[name] = rate
    return found


def _scram(text: str | None) -> dict[str, Any] | None:
    """`salt=…,stored_key=…,server_key=…,iterations=…`; None for what is no credential."""
    if text is None:
        return None
    fields = dict(word.split("=", 1) for word in text.split(",") if "=" in word)
    iterations = fields.get("iterations", "")
    keys = {name: fields.get(name, "") for name in ("salt", "stored_key", "server_key")}
    is_count = iterations.isascii() and iterations.isdigit() and len(iterations) <= 9
    return {"iterations": int(iterations), **keys} if is_count and all(map(_is_base64, keys.values())) else None


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except ValueError:
        return False


# ---------------------------------------------------------------- from changes to nodes


def entity_of(change: MetadataChange) -> Entity | None:
    """The entity that a change concerns; None where Kafka has no node for it."""
    if change.kind == "config":
        kind, _, name = change.key.partition(":")
        if kind == "topic":
            return Entity(f"topics/{name}", lambda config: dict(change.value or {}))
        if kind == "broker":
            return Entity(f"brokers/{name or DEFAULT}", lambda config: dict(change.value or {}))
    elif change.kind == "scram":
        number, _, user = change.key.partition(":")
        mechanism = MECHANISMS[int(number)]
        return Entity(f"users/{quoted(user)}", lambda config: _put(config, mechanism, _scram_text(change.value)))
    elif change.kind == "quota":
        pairs = dict(json.loads(change.key))
        return Entity(_quota_path(pairs), lambda config: _with_rates(config, change.value or {}))
    return None


def _quota_path(pairs: Mapping[str, str | None]) -> str:
    words = []
    for kind, entity_type in _TYPES.items():
        if entity_type in pairs:
            name = pairs[entity_type]
            words.append(f"{kind}/{DEFAULT if name is None else quoted(name)}")
    return "/".join(words)


def _with_rates(config: dict[str, str], rates: Mapping[str, float]) -> dict[str, str]:
    kept = {name: text for name, text in config.items() if name not in QUOTAS}
    return kept | {name: _rate_text(value) for name, value in rates.items()}


def _rate_text(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _scram_text(value: Mapping[str, Any] | None) -> str | None:
    if value is None:
        return None
    names = ("salt", "stored_key", "server_key", "iterations")
    return ",".join(f"{name}={value[name]}" for name in names)


def _put(config: dict[str, str], name: str, text: str | None) -> dict[str, str]:
    kept = {known: value for known, value in config.items() if known != name}
    return kept if text is None else kept | {name: text}


# ---------------------------------------------------------------- access rules

ACLS: Final = "/kafka-acl"
PREFIXED_ACLS: Final = "/kafka-acl-extended/prefixed"
ACL_CHANGES: Final = "/kafka-acl-changes"
PREFIXED_ACL_CHANGES: Final = "/kafka-acl-extended-changes"
LITERAL, PREFIXED = 3, 4
ACL_ROOTS: Final = {LITERAL: ACLS, PREFIXED: PREFIXED_ACLS}
RESOURCE_TYPES: Final = {
    2: "Topic", 3: "Group", 4: "Cluster", 5: "TransactionalId", 6: "DelegationToken", 7: "User",
}  # fmt: skip
_LOUD: Final = {
    2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID", 6: "DELEGATION_TOKEN", 7: "USER",
}  # fmt: skip
_OPERATIONS: Final = {
    2: "All", 3: "Read", 4: "Write", 5: "Create", 6: "Delete", 7: "Alter", 8: "Describe", 9: "ClusterAction",
    10: "DescribeConfigs", 11: "AlterConfigs", 12: "IdempotentWrite", 13: "CreateTokens", 14: "DescribeTokens",
    15: "TwoPhaseCommit",
}  # fmt: skip
_PERMISSIONS: Final = {2: "Deny", 3: "Allow"}
_OPERATION_NUMBERS: Final = {name: number for number, name in _OPERATIONS.items()}
_PERMISSION_NUMBERS: Final = {name: number for number, name in _PERMISSIONS.items()}


class Resource(NamedTuple):
    """What rules are about; it has one node."""

    type: int
    pattern: int
    name: str

    @property
    def node(self) -> str:
        return f"{ACL_ROOTS[self.pattern]}/{RESOURCE_TYPES[self.type]}/{self.name}"

    def change(self) -> tuple[str, bytes]:
        """Return (prefix of the sequential notification node, its data)."""
        loud = _LOUD[self.type]
        if self.pattern == LITERAL:
            return f"{ACL_CHANGES}/acl_changes_", f"{loud}:{self.name}".encode()
        told = {"version": 1, "resourceType": loud, "name": self.name, "patternType": "PREFIXED"}
        return f"{PREFIXED_ACL_CHANGES}/acl_changes_", dump(told)


def resource_of(change: MetadataChange) -> tuple[Resource, dict[str, str]]:
    """The resource of an acl change, and the rule as it stands in the node. Raises `InvalidRequest`."""
    kind, pattern, name, principal, host, operation, permission = json.loads(change.key)
    if "/" in name:
        raise InvalidRequest(f"{name[:100]!r} has a slash, and ZooKeeper keeps rules by resource; choose another name")
    rule = {
        "principal": principal,
        "permissionType": _PERMISSIONS[permission],
        "host": host,
        "operation": _OPERATIONS[operation],
    }
    return Resource(kind, pattern, name), rule


def parse_rules(data: bytes | None, path: str) -> list[dict[str, str]]:
    """The rules of a resource, those that this code does not know as well. Raises `CorruptMessage`."""
    if not data:
        return []
    rules = load(data, path).get("acls")
    if not isinstance(rules, list) or not all(map(_is_rule, rules)):
        raise CorruptMessage(f"ZooKeeper's node {path} holds no access rules; repair or delete the node")
    return rules


def _is_rule(rule: Any) -> bool:
    if not isinstance(rule, dict):
        return False
    whom = (rule.get("principal"), rule.get("host"))
    return all(isinstance(text, str) and len(text) <= MAX_NAME for text in whom)


def rules_data(rules: list[dict[str, str]]) -> bytes:
    return dump({"acls": rules, "version": 1})


def closed(resource: Resource) -> str:
    """The key of the rule that forbids a resource to all but super users: what its rules are is not known."""
    return _json([*resource, "User:*", "*", _OPERATION_NUMBERS["All"], _PERMISSION_NUMBERS["Deny"]])


def acl_key(resource: Resource, rule: Mapping[str, Any]) -> str | None:
    """The key of an acl fact; None for a rule that this code does not know."""
    operation = _OPERATION_NUMBERS.get(str(rule.get("operation")))
    permission = _PERMISSION_NUMBERS.get(str(rule.get("permissionType")))
    if operation is None or permission is None:
        return None
    return _json([*resource, str(rule.get("principal")), str(rule.get("host")), operation, permission])


def changed_resource(data: bytes | None, path: str) -> Resource:
    """Parse the notification of changed rules. Raises `CorruptMessage`."""
    text = (data or b"")[:10_000].decode(errors="replace")
    if text.startswith("{"):
        found = load(data, path)
        loud, name, pattern = found.get("resourceType"), found.get("name"), PREFIXED
    else:
        loud, _, name = text.partition(":")
        pattern = LITERAL
    kind = next((number for number, known in _LOUD.items() if known == loud), None)
    if kind is None or not isinstance(name, str) or not is_node_name(name):
        raise CorruptMessage(f"ZooKeeper's node {path} names no resource; delete the node")
    return Resource(kind, pattern, name)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
