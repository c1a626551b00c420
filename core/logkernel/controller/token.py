"""A delegation token as the cluster keeps it (KIP-48, KIP-373): without its HMAC, which each broker computes from the
token's id and `delegation.token.secret.key`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from logkernel.contracts import MetadataChange

Who = tuple[str, str]
"""A principal: (kind, name), e.g. ("User", "ann")."""


class Token(NamedTuple):
    """Times are in ms of the wall clock."""

    id: str
    owner: Who
    """Who a client is that logs in with the token."""
    requester: Who
    """Who asked for it: the owner, or another who may."""
    renewers: tuple[Who, ...]
    issued_ms: int
    max_ms: int
    """It cannot be renewed beyond this."""
    expires_ms: int

    def is_expired(self, now_ms: int) -> bool:
        return self.max_ms < now_ms or self.expires_ms < now_ms

    def is_renewed_by(self, who: Who) -> bool:
        """Whether `who` may renew and expire it."""
        return who == self.owner or who in self.renewers

    @property
    def concerned(self) -> frozenset[Who]:
        """Who sees it without being allowed to."""
        return frozenset((self.owner, self.requester, *self.renewers))

    def change(self) -> MetadataChange:
        value = {
            "owner": text(self.owner),
            "requester": text(self.requester),
            "renewers": [text(who) for who in self.renewers],
            "issued_ms": self.issued_ms,
            "max_ms": self.max_ms,
            "expires_ms": self.expires_ms,
        }
        return MetadataChange("token", self.id, value)

    @classmethod
    def of(cls, token_id: str, value: Mapping[str, Any]) -> Token:
        renewers = tuple(_who(one) for one in value["renewers"])
        owner, requester = _who(value["owner"]), _who(value["requester"])
        return cls(token_id, owner, requester, renewers, value["issued_ms"], value["max_ms"], value["expires_ms"])


class Tokens(dict[str, Token]):
    """The cluster's tokens by id, and how often they changed."""

    changes = 0


def removal(token_id: str) -> MetadataChange:
    return MetadataChange("token", token_id, None)


def text(who: Who) -> str:
    return ":".join(who)


def _who(principal: str) -> Who:
    kind, _, name = principal.partition(":")
    return kind, name
