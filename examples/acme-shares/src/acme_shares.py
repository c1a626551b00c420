"""Client quota callback `shares`: a user's bytes a second count for the cluster, and each broker allows its part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from logkernel.contracts import ClientLimit, ClientQuotaCallback, ClusterFacts, QuotaEntity
from logkernel.hookspecs import hookimpl
from logkernel.vocabulary import Principal

DIVIDED = frozenset({"producer_byte_rate", "consumer_byte_rate"})
"""What goes to leaders only. A broker's time and mutations are not divided, and not limited here."""


class Shares:
    """`logkernel.contracts.ClientQuotaCallback`, and `ClusterQuotaCallback`."""

    def __init__(self) -> None:
        self._users: dict[str | None, Mapping[str, float]] = {}
        """User → its quotas in the cluster; None: those of all who have none of their own."""
        self._share = 0.0
        """The part of the leaders that this broker has; 0 while it leads nothing, so that nothing is limited."""

    def quotas_changed(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        rows = [(dict(entity), values) for entity, values in quotas.items()]
        self._users = {entity["user"]: values for entity, values in rows if entity.keys() == {"user"}}

    def update_cluster_metadata(self, cluster: ClusterFacts) -> bool:
        names = cluster.topics.keys() - cluster.internal
        leaders = [row.leader for name in names for row in cluster.topics[name] if row.leader >= 0]
        share = leaders.count(cluster.node_id) / len(leaders) if leaders else 0.0
        changed = share != self._share
        self._share = share
        return changed

    def limited_types(self) -> Collection[str]:
        return {quota_type for values in self._users.values() for quota_type in values} & DIVIDED if self._share else ()

    def limit(self, quota_type: str, principal: Principal, client_id: str) -> ClientLimit | None:
        values = self._users.get(principal.name, self._users.get(None, {}))
        quota = values.get(quota_type) if quota_type in DIVIDED else None
        return ClientLimit(quota * self._share, (principal.name,)) if quota and self._share else None


@hookimpl
def logkernel_client_quota_callback(name: str) -> ClientQuotaCallback | None:
    return Shares() if name == "shares" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("client quota callback", "shares")]
