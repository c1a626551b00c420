"""Delegation tokens in Kafka's nodes, and the facts that these stand for. Pure.

    /delegation_token/tokens/ID                      a token, as Kafka 2.x to 3.9 write it (version 3; 1 and 2 are read)
    /delegation_token/token_changes/token_change_N   the id of a token that came, changed or went

Principals are quoted there, as Kafka's Sanitizer does. There is no HMAC: each broker computes it.
"""

from __future__ import annotations

from typing import Any, Final

from logkernel.contracts import MetadataChange
from logkernel.errors import InvalidRequest

from . import layout

TOKENS: Final = "/delegation_token/tokens"
CHANGES: Final = "/delegation_token/token_changes"
CHANGE: Final = f"{CHANGES}/token_change_"
VERSION: Final = 3
MAX_RENEWERS: Final = 10_000
MAX_ID: Final = 1_000
"""Characters; Kafka's have 22."""
_LAST_MS: Final = 2**63 - 1


def path(token_id: str) -> str:
    """Raises `InvalidRequest` for what cannot be a node's name."""
    if not token_id or layout.quoted(token_id) != token_id:
        raise InvalidRequest(f"{token_id[:50]!r} is no id of a delegation token; use the id that was given out")
    return f"{TOKENS}/{token_id}"


def data(change: MetadataChange) -> bytes:
    """Of the node of a token that is there."""
    value = change.value or {}
    return layout.dump({
        "version": VERSION,
        "owner": layout.quoted(value["owner"]),
        "tokenRequester": layout.quoted(value["requester"]),
        "renewers": [layout.quoted(one) for one in value["renewers"]],
        "issueTimestamp": value["issued_ms"],
        "maxTimestamp": value["max_ms"],
        "expiryTimestamp": value["expires_ms"],
        "tokenId": change.key,
    })  # fmt: skip


def fact(token_id: str, content: bytes | None) -> MetadataChange:
    """What a node says. Raises `CorruptMessage`."""
    node = f"{TOKENS}/{token_id}"
    if len(token_id) > MAX_ID:
        raise layout.bad(node[:100], "no id has so many characters")
    found = layout.load(content, node)
    version = layout.bounded(found.get("version"), 1, VERSION, node)
    renewers = found.get("renewers")
    if not isinstance(renewers, list) or len(renewers) > MAX_RENEWERS:
        raise layout.bad(node, "it has no list of renewers")
    owner = _principal(found.get("owner"), node)
    value = {
        "owner": owner,
        "requester": owner if version < VERSION else _principal(found.get("tokenRequester"), node),
        "renewers": [_principal(one, node) for one in renewers],
        "issued_ms": layout.bounded(found.get("issueTimestamp"), 0, _LAST_MS, node),
        "max_ms": layout.bounded(found.get("maxTimestamp"), 0, _LAST_MS, node),
        "expires_ms": layout.bounded(found.get("expiryTimestamp"), 0, _LAST_MS, node),
    }
    return MetadataChange("token", token_id, value)


def changed(content: bytes | None, node: str) -> str:
    """The id that a node of `CHANGES` names. Raises `CorruptMessage`."""
    token_id = (content or b"")[:1_000].decode(errors="replace")
    if not layout.is_node_name(token_id) or layout.quoted(token_id) != token_id:
        raise layout.bad(node, "it names no delegation token")
    return token_id


def _principal(quoted: Any, node: str) -> str:
    text = layout.unquoted(quoted) if isinstance(quoted, str) else ""
    kind, _, name = text.partition(":")
    if not kind or not name or len(text) > layout.MAX_NAME:
        raise layout.bad(node, f"{quoted!r:.100} is no principal")
    return text
