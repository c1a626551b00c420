"""What every client quota callback promises to the broker that asks it, and to the clients that it limits."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from hypothesis import strategies as st

from logkernel.config.broker import BrokerConfig
from logkernel.contracts import QUOTA_TYPES, ClientLimit, ClientQuotaCallback, ClusterFacts, LedPartition, QuotaEntity
from logkernel.guards.client_quota_callback import GuardedClientQuotaCallback
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all, shown, traced_memory
from logkernel.vocabulary import Principal

USERS = st.sampled_from(["ann", "shop-bob", "CN=eve,O=x", "ANONYMOUS", "", "ä" * 300, "-"])
CLIENT_IDS = st.sampled_from(["", "shop", "till", "%s\n", "x" * 300]) | st.text(max_size=5)
Quotas = Mapping[QuotaEntity, Mapping[str, float]]


def _entity(user: str | None, client_id: str | None, which: int) -> QuotaEntity:
    parts: list[tuple[str, str | None]] = [("client-id", client_id), ("user", user)]
    return tuple([parts, parts[:1], parts[1:]][which])


ENTITIES = st.builds(_entity, st.none() | USERS, st.none() | CLIENT_IDS, st.integers(0, 2))
VALUES = st.dictionaries(st.sampled_from(QUOTA_TYPES), st.sampled_from([0.5, 1.0, 100.0, 2e6]), min_size=1)
QUOTAS = st.dictionaries(ENTITIES, VALUES, max_size=4)
Question = tuple[str, Principal, str]
QUESTIONS: st.SearchStrategy[Question] = st.tuples(
    st.sampled_from(QUOTA_TYPES), st.builds(Principal, st.sampled_from(["User", "Group"]), USERS), CLIENT_IDS
)
NODES = (1, 2, 3)


def _partition(leader: int, replicas: tuple[int, ...]) -> LedPartition:
    return LedPartition(leader if leader in replicas else -1, replicas, replicas)


PARTITIONS = st.builds(_partition, st.sampled_from(NODES), st.sampled_from([(1,), (1, 2), (2, 3), (1, 2, 3)]))
TOPICS = st.dictionaries(st.sampled_from(["orders", "shop-1", "__consumer_offsets"]), st.lists(PARTITIONS, min_size=1))


def _cluster(nodes: frozenset[int], topics: Mapping[str, list[LedPartition]]) -> ClusterFacts:
    rows = {name: tuple(partitions) for name, partitions in topics.items()}
    internal = frozenset(name for name in topics if name.startswith("__"))
    return ClusterFacts("c", 1, nodes | {1}, MappingProxyType(rows), internal)


CLUSTERS = st.builds(_cluster, st.frozensets(st.sampled_from(NODES)), TOPICS)
STRANGERS = 4_000
KEPT_BYTES = 1 << 20
"""Most memory for clients that came once, with ids of 2 kB."""


class ClientQuotaCallbackContract(Kit[ClientQuotaCallback]):
    """`logkernel.contracts.ClientQuotaCallback`, and `ClusterQuotaCallback` of one that has its method. `settings` are
    the broker's."""

    kind = "client quota callback"
    methods = ("limit", "limited_types", "quotas_changed")

    def provide(self, kernel: Kernel, name: str) -> ClientQuotaCallback:
        given = [f"{setting}={value}" for setting, value in self.settings.items()]
        return kernel.client_quota_callback(name, BrokerConfig.load(None, given, kernel.declarations()))

    @for_all(80, quotas=QUOTAS, asked=QUESTIONS)
    def test_it_answers_with_a_limit_or_none_whoever_asks(self, quotas: Quotas, asked: Question) -> None:
        """Where it fails, a client is not limited."""
        self._ask(self._told(quotas), asked)

    @for_all(80, quotas=QUOTAS, asked=QUESTIONS)
    def test_it_says_what_it_limits(self, quotas: Quotas, asked: Question) -> None:
        """Requests are measured only where it does."""
        callback = self._told(quotas)
        types = self._types(callback)
        limit = self._ask(callback, asked)
        if limit is not None and asked[0] not in types:
            self.broken(f"limit() answered {limit} for {asked[0]}, which limited_types() leaves out; name it there")

    @for_all(40, quotas=QUOTAS, asked=QUESTIONS, others=st.lists(QUESTIONS, max_size=4))
    def test_what_others_ask_changes_nothing(self, quotas: Quotas, asked: Question, others: list[Question]) -> None:
        callback = self._told(quotas)
        first = self._ask(callback, asked)
        for other in others:
            self._ask(callback, other)
        again = self._ask(callback, asked)
        if first != again:
            self.broken(f"limit() answered {first} to {shown(asked)}, then {again}; depend on the client only")

    @for_all(40, before=QUOTAS, quotas=QUOTAS, asked=QUESTIONS)
    def test_quotas_that_are_gone_count_no_more(self, before: Quotas, quotas: Quotas, asked: Question) -> None:
        """It is told all of them at each change."""
        callback = self._told(before)
        self._ask(callback, asked)
        self._tell(callback, quotas)
        after, never = self._ask(callback, asked), self._ask(self._told(quotas), asked)
        if after != never:
            self.broken(f"{shown(asked)} gets {after} after the quotas changed, not {never}; forget the earlier ones")

    @for_all(80, quotas=QUOTAS, before=CLUSTERS, cluster=CLUSTERS, asked=QUESTIONS)
    def test_it_says_when_the_cluster_changes_a_limit(
        self, quotas: Quotas, before: ClusterFacts, cluster: ClusterFacts, asked: Question
    ) -> None:
        """The broker asks anew what is to be measured, only where it does."""
        callback = self._told(quotas)
        if not callback.wants_cluster:
            return
        self._hear(callback, before)
        first = self._types(callback), self._ask(callback, asked)
        changed = self._hear(callback, cluster)
        then = self._types(callback), self._ask(callback, asked)
        if first != then and not changed:
            self.broken(
                f"{shown(asked)} gets {then[1]} after {first[1]}, and update_cluster_metadata() returned False;"
                " return True where limits may have changed"
            )

    @for_all(40, quotas=QUOTAS, before=CLUSTERS, cluster=CLUSTERS, asked=QUESTIONS)
    def test_a_cluster_that_has_changed_counts_no_more(
        self, quotas: Quotas, before: ClusterFacts, cluster: ClusterFacts, asked: Question
    ) -> None:
        """It is told all of it each time."""
        callback, other = self._told(quotas), self._told(quotas)
        if not callback.wants_cluster:
            return
        for told in (before, cluster):
            self._hear(callback, told)
        self._hear(other, cluster)
        after, never = self._ask(callback, asked), self._ask(other, asked)
        if after != never:
            self.broken(f"{shown(asked)} gets {after} after the cluster changed, not {never}; forget the earlier one")

    def test_clients_that_are_gone_take_no_memory(self) -> None:
        """Client ids are what clients say: each connection may bring another."""
        callback = self._told({(("user", None),): dict.fromkeys(QUOTA_TYPES, 5.0)})
        with traced_memory() as memory:
            for number in range(STRANGERS):
                self._ask(callback, (QUOTA_TYPES[0], Principal("User", f"u{number}"), f"{number}-{'x' * 2_000}"))
        if memory.kept_bytes > KEPT_BYTES:
            self.broken(f"it keeps {memory.kept_bytes >> 10} kB of {STRANGERS:,} clients that came once; forget them")

    # ------------------------------------------------------------ steps

    def _told(self, quotas: Quotas) -> GuardedClientQuotaCallback:
        """A new object behind the guard that a broker asks it through, that was told these quotas."""
        callback = cast(GuardedClientQuotaCallback, self.guarded())
        self._tell(callback, quotas)
        return callback

    def _tell(self, callback: GuardedClientQuotaCallback, quotas: Quotas) -> None:
        with self.calling("quotas_changed()"):
            callback.told_or_raise(quotas)

    def _hear(self, callback: GuardedClientQuotaCallback, cluster: ClusterFacts) -> bool:
        with self.calling("update_cluster_metadata()"):
            return callback.judged_update(cluster)

    def _types(self, callback: GuardedClientQuotaCallback) -> frozenset[str]:
        with self.calling("limited_types()"):
            return frozenset(callback.judged_types())

    def _ask(self, callback: GuardedClientQuotaCallback, asked: Question) -> ClientLimit | None:
        with self.calling("limit()"):
            return callback.judged_limit(*asked)
