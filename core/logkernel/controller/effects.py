"""The results of the controller machine: changes to store, then work for the shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.contracts import MetadataChange


class LeaderChange(NamedTuple):
    """A partition's leadership after an election; `leader` -1 is none."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


@mutable
class Effects:
    """Carry them out in this order, after the changes were committed and folded."""

    deleted: list[tuple[str, UUID]] = field(factory=list)
    """Topics whose logs to delete."""
    created: list[str] = field(factory=list)
    """Topics whose logs to create."""
    grown: list[tuple[str, int]] = field(factory=list)
    """(topic, first new partition)."""
    moved: list[str] = field(factory=list)
    """Topics with replicas on other brokers than before, or on brokers that are in another rack now."""
    leaders: list[LeaderChange] = field(factory=list)
    topics_configured: list[str] = field(factory=list)
    """Topics whose settings to compute again."""
    brokers_configured: list[str] = field(factory=list)
    """Brokers (node id as text, "" for all) whose dynamic settings changed."""


class ControllerResult(NamedTuple):
    """A decision of the controller (Kafka's name): `changes` are committed as one and folded, then `effects` are
    carried out and `response` is sent."""

    changes: list[MetadataChange]
    response: Any
    effects: Effects


Spend = Callable[[int], None]
"""Counts partitions that are to be created or deleted against a client's quota. Raises `ThrottlingQuotaExceeded` where
there may be no more (KIP-599)."""


def free(partitions: int) -> None:
    """Without a quota."""
