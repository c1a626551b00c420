"""Which internal topics are being made, and which could not be."""

from __future__ import annotations

from attrs import define, field, frozen


@frozen
class Making:
    """Names the request in which topics are made."""

    group_id: str
    names: tuple[str, ...]


@define
class MakingTopics:
    """Of all groups of one shard."""

    asked: set[str] = field(factory=set)
    failed: dict[str, tuple[str, int]] = field(factory=dict)
    """Topic → (why it could not be made, monotonic ms until which it is not asked for)."""
