"""Facts that Kafka has no node for, as their nodes hold them. Pure.

    /logkernel/facts/KIND/KEY    the fact's value
    /logkernel/changes/change_N  {"kind": KIND, "key": KEY} of a fact that came, changed or went

Every broker folds them, so each is judged by its kind before anybody is told. A kind that is not known may be a later
version's, which nobody folds here.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from logkernel.contracts import MetadataChange
from logkernel.errors import InvalidRequest

from . import layout
from .layout import FactName

KAFKAS: Final = frozenset(
    {
        "acl", "broker", "cluster", "feature", "features_epoch", "log_dirs", "partition", "producer_ids", "quota",
        "scram", "token", "topic",
    }
)  # fmt: skip
"""Kinds that have nodes of Kafka's, and are read from these alone."""
_LAST: Final = 2**63 - 1


def fact(kind: str, key: str, data: bytes | None) -> MetadataChange:
    """What a node says. Raises `CorruptMessage`."""
    path = _path(kind, key)
    value = layout.load(data, path)
    check = _CHECKS.get(kind)
    if check is not None:
        check(key, value, path)
    return MetadataChange(kind, key, value)


def changed(data: bytes | None, node: str) -> FactName:
    """The fact that a node of `/logkernel/changes` names. Raises `CorruptMessage`."""
    found = layout.load(data, node)
    kind, key = found.get("kind"), found.get("key")
    if not isinstance(kind, str) or not isinstance(key, str):
        raise layout.bad(node, "it names no fact")
    _path(kind, key)
    return FactName(kind, key)


def _path(kind: str, key: str) -> str:
    """Raises `CorruptMessage` where there is no such fact."""
    where = f"{layout.FACTS}/{kind!r:.50}"
    if kind in KAFKAS or not layout.is_node_name(kind):
        raise layout.bad(where, "no facts of this kind are there")
    try:
        path = layout.fact_path(kind, key)
    except (InvalidRequest, UnicodeEncodeError):
        raise layout.bad(where, f"{key!r:.100} is no key") from None
    if not layout.is_node_name(path.rpartition("/")[2]):
        raise layout.bad(where, f"{key!r:.100} is no key")
    return path


Check = Callable[[str, Mapping[str, Any], str], object]


def _check_config(key: str, value: Mapping[str, Any], path: str) -> None:
    """Of groups and the like; those of topics and brokers have nodes of Kafka's."""
    if key.startswith(("topic:", "broker:")) or not all(isinstance(text, str) for text in value.values()):
        raise layout.bad(path, "it holds no settings")


def _check_gone(key: str, value: Mapping[str, Any], path: str) -> None:
    try:
        UUID(key)
    except ValueError:
        raise layout.bad(path, f"{key!r:.100} is no topic id") from None
    if "topic" not in value:
        return
    replicas = value.get("replicas")
    if not isinstance(value["topic"], str) or not isinstance(replicas, list):
        raise layout.bad(path, "it names no topic and replicas")
    for nodes in replicas:
        layout.node_ids(nodes, path)


def _check_incarnation(key: str, value: Mapping[str, Any], path: str) -> None:
    _check_broker(key, path)
    layout.bounded(value.get("epoch"), 0, _LAST, path)


def _check_rack(key: str, value: Mapping[str, Any], path: str) -> None:
    _check_broker(key, path)
    if not isinstance(value.get("rack"), str) or len(value["rack"]) > layout.MAX_WORD:
        raise layout.bad(path, "it names no rack")


def _check_broker(key: str, path: str) -> None:
    if layout.parse_broker_id(key) is None:
        raise layout.bad(path, f"{key!r:.100} is no broker")


def _check_secret(key: str, value: Mapping[str, Any], path: str) -> None:
    try:
        is_secret = isinstance(value.get("bytes"), str) and base64.b64decode(value["bytes"], validate=True)
    except (ValueError, binascii.Error):
        is_secret = b""
    if not is_secret:
        raise layout.bad(path, "it holds no secret")


_CHECKS: Final[Mapping[str, Check]] = {
    "config": _check_config,
    "gone": _check_gone,
    "incarnation": _check_incarnation,
    "rack": _check_rack,
    "secret": _check_secret,
}
