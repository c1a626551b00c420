"""Which replica leads: elected when brokers come, go or leave, when replicas fail, and when settings allow it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from logkernel.broker.by_settings import BySettings
from logkernel.broker.controller.commits import Commits
from logkernel.broker.controller.live_brokers import LiveBrokers
from logkernel.broker.runtime import Runtime
from logkernel.broker.turn import Turn
from logkernel.contracts import Candidates, Elected, ElectionStrategy, MetadataChange
from logkernel.controller import election_rules
from logkernel.controller.controller import Controller
from logkernel.controller.image import NO_LEADER, incarnation_change
from logkernel.controller.orders import Orders
from logkernel.errors import PluginError

if TYPE_CHECKING:
    from logkernel.requests.placement import ElectLeadersRequest, ElectLeadersResponse

log = logging.getLogger("logkernel.controller")


class _Nobody:
    """Elects no leader, in place of a strategy whose plugin is missing."""

    def elect(self, candidates: Candidates) -> Elected | None:
        return None


class LeaderElections:
    """Of one term."""

    def __init__(
        self,
        runtime: Runtime,
        turn: Turn,
        controller: Controller,
        orders: Orders,
        brokers: LiveBrokers,
        commits: Commits,
    ) -> None:
        self._runtime = runtime
        self._turn = turn
        self._controller = controller
        self._orders = orders
        self._brokers = brokers
        self._commits = commits
        self._strategies = BySettings(runtime.kernel.election)

    # ------------------------------------------------------------ brokers

    def broker_gone(self, node: int) -> None:
        image = self._orders.image
        found = self._controller.broker_gone(image, node, self._strategy, self._candidates(), offline=self._offline)
        if node in image.incarnations:
            found.changes.append(MetadataChange("incarnation", str(node), None))
        self._commits.attempt(found)

    def broker_came(self, node: int, broker_epoch: int) -> None:
        found = self._controller.broker_started(
            self._orders.image, node, self._strategy, self._candidates(),
            offline=self._offline, leaving=self._brokers.leaving,
        )  # fmt: skip
        found.changes.append(incarnation_change(node, broker_epoch))
        self._commits.attempt(found)

    def broker_leaves(self, node: int) -> list[tuple[str, int]]:
        """Lead its partitions elsewhere; returns those that it leads still, where it is not their only replica. Raises
        `NotController`, `KafkaError`."""
        left: list[tuple[str, int]] = self._commits.commit(
            election_rules.broker_leaves(self._orders.image, node, self._candidates(), self._offline)
        )
        return left

    def replicas_offline(self, node: int, names: Sequence[tuple[str, int]]) -> None:
        """A broker's replicas of these partitions are offline."""
        self._commits.attempt(
            election_rules.replicas_offline(
                self._orders.image, node, names, self._strategy, self._candidates(), self._offline
            )
        )

    # ------------------------------------------------------------ partitions without a leader

    def replicas_online(self, names: Iterable[tuple[str, int]]) -> None:
        """Replicas of these partitions, which were offline, are here again."""
        for topic in {topic for topic, _ in names}:
            self._elect_leaderless(topic)

    def configured(self, keys: Iterable[str]) -> None:
        """Settings changed: a topic without a leader may have one now."""
        for key in keys:
            kind, _, name = key.partition(":")
            if kind == "topic":
                self._turn.call_soon(partial(self._elect_leaderless, name))
            elif kind == "broker":
                self._turn.call_soon(self.elect_all_leaderless)

    def elect_all_leaderless(self) -> None:
        for topic in list(self._orders.image.topics):
            self._elect_leaderless(topic)

    def _elect_leaderless(self, topic: str) -> None:
        image = self._orders.image
        found = image.topics.get(topic) if self._commits.is_open else None
        if found is not None and any(row.leader == NO_LEADER for row in found.partitions):
            strategy, unclean = self._strategy(topic)
            self._commits.attempt(
                self._controller.elect(
                    image, topic, strategy, self._candidates(),
                    unclean_allowed=unclean, offline=self._offline, leaving=self._brokers.leaving,
                )
            )  # fmt: skip

    # ------------------------------------------------------------ preferred leaders

    def prefer_where_imbalanced(self, percentage: int) -> None:
        """Have the first replica of each partition lead, where it can, on brokers that lead too little of what they
        should by more than `percentage`."""
        image = self._orders.image
        names = election_rules.imbalanced(image, self._brokers.epochs, percentage)
        if names:
            self._commits.attempt(election_rules.prefer(image, names, self._candidates(), self._offline))

    def prefer_as_asked(self, asked: Sequence[MetadataChange]) -> None:
        """Have the first replica of each partition lead, where it can, that these facts of kind "asked_leader" name."""
        keys = [change.key.rpartition(":") for change in asked]
        names = [(topic, int(index)) for topic, _, index in keys]
        found = election_rules.prefer(self._orders.image, names, self._candidates(), self._offline)
        found.changes.extend(MetadataChange(change.kind, change.key, None) for change in asked)
        self._commits.attempt(found)

    def elect(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """What an administrator asks for. Raises `NotController`, `KafkaError`."""
        from logkernel.controller import leaders

        response: ElectLeadersResponse = self._commits.commit(
            leaders.elect_in_cluster(request, self._orders.image, self._candidates(), self._offline)
        )
        return response

    # ------------------------------------------------------------ who may lead

    def _candidates(self) -> Collection[int]:
        return self._brokers.eligible.keys()

    def _offline(self, topic: str, index: int) -> Collection[int]:
        return self._orders.offline.get((topic, index), ())

    def _strategy(self, topic: str) -> tuple[ElectionStrategy, bool]:
        """The topic's election strategy, and whether it may be unclean."""
        settings, _ = self._runtime.config.kept_topic_settings(self._orders.image.topic_config(topic))
        try:
            found = self._strategies.get(settings.election, settings.plugin)
        except PluginError as error:
            log.error("no leader is elected: topic=%s election=%s error=%s", topic, settings.election, error)
            return _Nobody(), False
        return found, settings.unclean_leader_election_enable
