"""Elections, placements and cleanup policies get the settings that their plugin owns, as the other kinds do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from logkernel.broker.build import build
from logkernel.broker.by_settings import MOST_KEPT, BySettings
from logkernel.cluster.cluster import open_cluster
from logkernel.config.definitions import TOPIC, Setting
from logkernel.config.values import INT
from logkernel.contracts import Candidates, Elected, LogFacts, PlacementFacts
from logkernel.embed import EmbeddedLog
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel

DEPTH = "acme.depth"


class Deciding:
    """What a hook handed out, with the settings that it was given."""

    def __init__(self, plugin: Acme, kind: str, settings: Mapping[str, Any]) -> None:
        self._plugin = plugin
        self._kind = kind
        self.depth = settings[DEPTH]
        plugin.made.append((kind, self.depth))

    def elect(self, known: Candidates) -> Elected | None:
        self._plugin.asked.append((self._kind, self.depth))
        isr = tuple(node for node in known.isr if node in known.alive)
        return Elected(isr[0], isr) if isr else None

    def place(self, known: PlacementFacts) -> Sequence[Sequence[int]]:
        self._plugin.asked.append((self._kind, self.depth))
        nodes = [node for node, _ in known.brokers]
        return [nodes[: known.factor] for _ in range(known.partitions)]

    def plan(self, log: LogFacts) -> Sequence[Any]:
        self._plugin.asked.append((self._kind, self.depth))
        return []


class Acme:
    """A plugin of the three kinds, each called `acme`."""

    def __init__(self) -> None:
        self.made: list[tuple[str, int]] = []
        self.asked: list[tuple[str, int]] = []

    @hookimpl
    def logkernel_election(self, name: str, settings: Mapping[str, Any]) -> Deciding | None:
        return Deciding(self, "election", settings) if name == "acme" else None

    @hookimpl
    def logkernel_placement(self, name: str, settings: Mapping[str, Any]) -> Deciding | None:
        return Deciding(self, "placement", settings) if name == "acme" else None

    @hookimpl
    def logkernel_cleanup(self, name: str, settings: Mapping[str, Any]) -> Deciding | None:
        return Deciding(self, "cleanup policy", settings) if name == "acme" else None

    @hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        return [(kind, "acme") for kind in ("election", "placement", "cleanup policy")]

    @hookimpl
    def logkernel_settings(self) -> list[Setting]:
        return [Setting(DEPTH, INT, "1", None, "How deep.", scope=TOPIC)]


@pytest.fixture
def acme() -> Acme:
    return Acme()


@pytest.fixture
def log(acme: Acme) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(build(None, (), in_memory=True, kernel=Kernel(plugins=[acme]))) as found:
        yield found


def test_a_placement_gets_the_topic_s_settings_when_it_is_created_and_when_it_grows(acme: Acme) -> None:
    with open_cluster(brokers=2, plugins=[acme]) as cluster:
        cluster.create_topic("plain", partitions=1, replication_factor=1, placement="acme")
        cluster.create_topic("deep", partitions=1, replication_factor=1, placement="acme", **{DEPTH: 7})
        assert acme.asked == [("placement", 1), ("placement", 7)]
        with cluster.admin() as admin:
            admin.create_partitions({"deep": 2})
    assert acme.asked[2:] == [("placement", 7)]


def test_an_election_gets_the_topic_s_settings(acme: Acme) -> None:
    with open_cluster(brokers=2, plugins=[acme]) as cluster:
        cluster.create_topic("plain", assignment={0: [1, 2], 1: [1, 2]}, election="acme")
        cluster.create_topic("deep", assignment={0: [1, 2]}, election="acme", **{DEPTH: 7})
        for topic in ("plain", "deep"):
            cluster.wait_for_isr(topic, 0, 2)
        cluster.wait_for_isr("plain", 1, 2)
        acme.asked.clear()
        cluster.kill(1)
        for topic in ("plain", "deep"):
            assert cluster.wait_for_leader(topic, 0, other_than=1) == 2
    assert sorted(set(acme.asked)) == [("election", 1), ("election", 7)]
    assert sorted(acme.made) == [("election", 1), ("election", 7)], "topics with equal settings share an object"


def test_a_cleanup_policy_gets_the_topic_s_settings_and_anew_when_they_change(acme: Acme, log: EmbeddedLog) -> None:
    for topic, own in (("plain", {}), ("same", {}), ("deep", {DEPTH: "7"})):
        log.create_topic(topic, partitions=1, config={"cleanup.policy": "acme", **own})
        log.broker.retention.expire(topic, lambda results: None)
    assert acme.asked == [("cleanup policy", 1), ("cleanup policy", 1), ("cleanup policy", 7)]
    with log.admin() as admin:
        admin.alter_configs({("topic", "plain"): {DEPTH: "9"}})
    log.broker.retention.expire("plain", lambda results: None)
    assert acme.asked[3:] == [("cleanup policy", 9)]
    assert acme.made == [("cleanup policy", depth) for depth in (1, 7, 9)]


def test_a_plugin_that_does_not_ask_for_settings_is_called_without(acme: Acme) -> None:
    class Old:
        @hookimpl
        def logkernel_election(self, name: str) -> Deciding | None:
            return Deciding(acme, "election", {DEPTH: 0}) if name == "old" else None

    assert Kernel(plugins=[Old()]).election("old", {DEPTH: 5}).elect(Candidates((1,), (1,), frozenset({1}))) is not None


def test_only_some_objects_are_kept() -> None:
    made: list[int] = []

    def provide(name: str, settings: Mapping[str, Any]) -> object:
        made.append(settings[DEPTH])
        return object()

    kept = BySettings(provide)
    for _ in range(2):
        for depth in range(MOST_KEPT):
            kept.get("acme", {DEPTH: depth})
    assert made == list(range(MOST_KEPT))
    kept.get("acme", {DEPTH: MOST_KEPT})
    kept.get("acme", {DEPTH: 1})
    assert made[MOST_KEPT:] == [MOST_KEPT], "the oldest goes first"
    kept.get("acme", {DEPTH: 0})
    assert made[MOST_KEPT:] == [MOST_KEPT, 0]
