"""Client quota callbacks that break a promise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logkernel.contracts import ClientLimit, ClusterFacts, QuotaEntity
from logkernel.vocabulary import Principal
from wrong_plugins import Wrong, made

Quotas = Mapping[QuotaEntity, Mapping[str, float]]


class Plain:
    """A callback that keeps its promises: a quota of the default user is shared by all."""

    def __init__(self) -> None:
        self.seen: dict[Any, Any] = {}
        self.shared: dict[str, float] = {}

    def quotas_changed(self, quotas: Quotas) -> None:
        self.shared = dict(quotas.get((("user", None),), {}))

    def limited_types(self) -> Any:
        return list(self.shared)

    def limit(self, quota_type: str, principal: Principal, client_id: str) -> Any:
        quota = self.shared.get(quota_type)
        return None if quota is None else ClientLimit(quota, ("all",))


class Everybody(Plain):
    def limited_types(self) -> Any:
        return ["producer_byte_rate"]

    def limit(self, quota_type: str, principal: Principal, client_id: str) -> Any:
        return self.answer if quota_type == "producer_byte_rate" else None

    answer: Any = ClientLimit(5.0, ("all",))


class Bare(Everybody):
    answer = 5.0


class Nothing(Everybody):
    answer = ClientLimit(0.0, ("all",))


class Endless(Everybody):
    answer = ClientLimit(float("inf"), ("all",))


class Listed(Everybody):
    answer = (5.0, ["all"])


class Choosy(Plain):
    def limit(self, quota_type: str, principal: Principal, client_id: str) -> Any:
        return ClientLimit({"ann": 5.0}[principal.name], (principal.name,))


class Particular(Plain):
    def quotas_changed(self, quotas: Quotas) -> None:
        self.shared = dict(quotas[(("user", None),)])


class Unknown(Plain):
    def limited_types(self) -> Any:
        return ["bytes"]


class Silent(Everybody):
    def limited_types(self) -> Any:
        return ()


class Aging(Everybody):
    def limit(self, quota_type: str, principal: Principal, client_id: str) -> Any:
        self.seen[len(self.seen)] = 1
        return ClientLimit(float(len(self.seen)), ("all",))


class Hoarder(Plain):
    def quotas_changed(self, quotas: Quotas) -> None:
        self.shared |= quotas.get((("user", None),), {})


class Divided(Plain):
    """Right: each partition that its broker leads gives a user 10 bytes a second."""

    leads = 0

    def limited_types(self) -> Any:
        return ["producer_byte_rate"] if self.leads else []

    def limit(self, quota_type: str, principal: Principal, client_id: str) -> Any:
        if quota_type != "producer_byte_rate" or not self.leads:
            return None
        return ClientLimit(10.0 * self.leads, (principal.name,))

    def update_cluster_metadata(self, cluster: ClusterFacts) -> Any:
        rows = [row for partitions in cluster.topics.values() for row in partitions]
        before, self.leads = self.leads, sum(row.leader == cluster.node_id for row in rows)
        return self.leads != before


class Forgetful(Divided):
    def update_cluster_metadata(self, cluster: ClusterFacts) -> Any:
        super().update_cluster_metadata(cluster)


class Unmoved(Divided):
    def update_cluster_metadata(self, cluster: ClusterFacts) -> Any:
        super().update_cluster_metadata(cluster)
        return False


class Growing(Divided):
    def update_cluster_metadata(self, cluster: ClusterFacts) -> Any:
        before = self.leads
        super().update_cluster_metadata(cluster)
        self.leads += before
        return True


class Hopeful(Divided):
    """It takes a topic for granted."""

    def update_cluster_metadata(self, cluster: ClusterFacts) -> Any:
        self.leads = len(cluster.topics["orders"])
        return True


class Ledger(Plain):
    def limit(self, quota_type: str, principal: Principal, client_id: str) -> Any:
        self.seen[client_id] = principal
        return super().limit(quota_type, principal, client_id)


ANY = "test_it_answers_with_a_limit_or_none_whoever_asks"
MOVES = "test_it_says_when_the_cluster_changes_a_limit"
SAYS = "test_it_says_what_it_limits"
WRONG = [
    Wrong(ANY, "answered 5.0; return ClientLimit", made(lambda _: Bare())),
    Wrong(ANY, "the quota is a number over 0", made(lambda _: Nothing())),
    Wrong(ANY, "the quota is a number over 0", made(lambda _: Endless())),
    Wrong(ANY, "whose is a tuple of texts", made(lambda _: Listed())),
    Wrong(ANY, "failed in client quota callback .*KeyError", made(lambda _: Choosy())),
    Wrong(ANY, "failed in client quota callback .*KeyError", made(lambda _: Particular())),
    Wrong(SAYS, "return some of producer_byte_rate", made(lambda _: Unknown())),
    Wrong(SAYS, "name it there", made(lambda _: Silent())),
    Wrong("test_what_others_ask_changes_nothing", "depend on the client only", made(lambda _: Aging())),
    Wrong("test_quotas_that_are_gone_count_no_more", "forget the earlier ones", made(lambda _: Hoarder())),
    Wrong(MOVES, "answered None; return True where limits may", made(lambda _: Forgetful())),
    Wrong(MOVES, "returned False; return True", made(lambda _: Unmoved())),
    Wrong(MOVES, "failed in client quota callback .*KeyError", made(lambda _: Hopeful())),
    Wrong("test_a_cluster_that_has_changed_counts_no_more", "forget the earlier one", made(lambda _: Growing())),
    Wrong("test_clients_that_are_gone_take_no_memory", "forget them", made(lambda _: Ledger())),
]
