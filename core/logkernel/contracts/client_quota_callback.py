"""A client quota callback says how much clients may use, and which of them share that (KIP-257)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from logkernel.vocabulary import Principal

QUOTA_TYPES: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
"""What client quotas limit, by the names of their settings."""

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Whose quota it is, e.g. `(("client-id", "shop"), ("user", None))`, sorted; None is the default of its type."""


class ClientLimit(NamedTuple):
    """What applies to a client."""

    quota: float
    """Over 0: bytes a second, % of the broker's thread, or partitions a second."""
    whose: tuple[str | None, ...]
    """Clients with equal ones share the quota of a type. Any text; few of them, as each has a meter."""


@runtime_checkable
class ClientQuotaCallback(Protocol):
    """Says how much clients may use of a broker. One object for each broker, called on the broker's thread: what it
    takes, all clients wait for, so it answers from memory.

    What it raises, or answers wrongly, limits nobody: a request is always carried out."""

    def quotas_changed(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Take note of the quotas that the cluster keeps (`kafka-configs`, AlterClientQuotas) for users and client ids:
        all of them, by their types. Called at the start, and after each change. You may ignore them."""
        ...

    def limited_types(self) -> Collection[str]:
        """Return those of `QUOTA_TYPES` that `limit` may limit somebody in. Asked after each `quotas_changed`; requests
        are measured for these only, so return none where you limit nobody."""
        ...

    def limit(self, quota_type: str, principal: Principal, client_id: str) -> ClientLimit | None:
        """Return what applies to a client, asked for each of its requests; None: it may use what it likes.

        `client_id` is what the client says of itself, empty where it says nothing: each connection may bring another.
        Answers may change at any time."""
        ...


class LedPartition(NamedTuple):
    """Who has a partition."""

    leader: int
    """Node id; -1 while nobody leads."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class ClusterFacts(NamedTuple):
    """The cluster as one of its brokers knows it. Nothing in it changes any more."""

    cluster_id: str
    node_id: int
    """The broker that asks the callback."""
    nodes: frozenset[int]
    """The brokers that are alive."""
    topics: Mapping[str, Sequence[LedPartition]]
    """Every topic, those of services included; the partitions by their numbers."""
    internal: frozenset[str]
    """Topics in which services keep their state."""


@runtime_checkable
class ClusterQuotaCallback(Protocol):
    """A further method of a `ClientQuotaCallback` whose limits depend on who leads what."""

    def update_cluster_metadata(self, cluster: ClusterFacts) -> bool:
        """Take note of the cluster; return whether an answer of `limit` or `limited_types` may be another now.

        Called on the broker's thread: at the start, and after topics, leaders, in-sync replicas or brokers changed.
        Changes that come soon after one another are told at once: the broker spends 5 % of its time on this at most,
        its own work and yours together. The first call may come before a cluster's broker knows of any topic."""
        ...
