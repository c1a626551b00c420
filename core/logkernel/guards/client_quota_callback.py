"""The guard of `contracts.ClientQuotaCallback`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from math import isfinite
from typing import Any

from logkernel.contracts import (
    QUOTA_TYPES,
    ClientLimit,
    ClientQuotaCallback,
    ClusterFacts,
    ClusterQuotaCallback,
    QuotaEntity,
)
from logkernel.errors import LogkernelError
from logkernel.guards.guard import TimedGuard
from logkernel.vocabulary import Principal

NOT_LIMITED = "the client is not limited"


class GuardedClientQuotaCallback(TimedGuard[ClientQuotaCallback]):
    """`contracts.ClientQuotaCallback`. Whom it fails for is not limited; `told_or_raise` and `judged_…` raise."""

    __slots__ = ()
    kind = "client quota callback"

    def quotas_changed(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        with suppress(LogkernelError):
            self.told_or_raise(quotas)

    def limited_types(self) -> Collection[str]:
        try:
            return self.judged_types()
        except LogkernelError:
            return ()

    def limit(self, quota_type: str, principal: Principal, client_id: str) -> ClientLimit | None:
        try:
            return self.judged_limit(quota_type, principal, client_id)
        except LogkernelError:
            return None

    @property
    def wants_cluster(self) -> bool:
        """Whether it has the methods of `contracts.ClusterQuotaCallback`."""
        return isinstance(self._plugin, ClusterQuotaCallback)

    def update_cluster_metadata(self, cluster: ClusterFacts) -> bool:
        try:
            return self.judged_update(cluster)
        except LogkernelError:
            return False

    def told_or_raise(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self._call("it may not know all quotas", lambda: self._plugin.quotas_changed(quotas))

    def judged_update(self, cluster: ClusterFacts) -> bool:
        callback: object = self._plugin
        assert isinstance(callback, ClusterQuotaCallback), "it wants to know nothing of the cluster"

        def decide() -> bool:
            answer: Any = callback.update_cluster_metadata(cluster)
            if answer is not True and answer is not False:
                raise self._wrong(answer, "return True where limits may have changed, else False")
            return answer

        return self._call("it may not know who leads what", decide)

    def judged_types(self) -> Collection[str]:
        def decide() -> Collection[str]:
            answer: Any = self._plugin.limited_types()
            if isinstance(answer, str) or not isinstance(answer, Collection) or not set(answer) <= set(QUOTA_TYPES):
                raise self._wrong(answer, f"return some of {', '.join(QUOTA_TYPES)}")
            return frozenset(answer)

        return self._call("nobody is limited", decide)

    def judged_limit(self, quota_type: str, principal: Principal, client_id: str) -> ClientLimit | None:
        def decide() -> ClientLimit | None:
            answer: Any = self._plugin.limit(quota_type, principal, client_id)
            if answer is None:
                return None
            if not isinstance(answer, tuple) or len(answer) != 2:
                raise self._wrong(answer, "return ClientLimit(quota, whose) or None")
            quota, whose = answer
            if type(quota) not in (int, float) or not isfinite(quota) or quota <= 0:
                raise self._wrong(answer, "the quota is a number over 0")
            if type(whose) is not tuple or not all(part is None or isinstance(part, str) for part in whose):
                raise self._wrong(answer, "whose is a tuple of texts")
            return ClientLimit(quota, whose)

        return self._call(NOT_LIMITED, decide)
