"""The tables of both placements' docstrings, and what a placement that errs comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any
from uuid import UUID

import pytest

from logkernel.config.broker import BrokerConfig
from logkernel.contracts import PlacementFacts, PlacementStrategy
from logkernel.controller.controller import Controller
from logkernel.controller.image import BrokerRegistration, ClusterImage, registration_change
from logkernel.errors import PluginError, UnknownServerError
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.plugins.placement import kafka, modulo
from logkernel.requests.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest


def zero(below: int) -> int:
    return 0


def facts(partitions: int, factor: int, brokers: Iterable[int] | dict[int, str], **more: Any) -> PlacementFacts:
    racks = brokers if isinstance(brokers, dict) else dict.fromkeys(brokers)
    return PlacementFacts(partitions, factor, tuple(sorted(racks.items())), more.pop("draw", zero), **more)


def rows(text: str) -> list[list[int]]:
    return [[int(node) for node in row] for row in text.split()]


@pytest.mark.parametrize(
    ("partitions", "factor", "brokers", "expected"),
    [
        (4, 1, [1, 2, 3], "1 2 3 1"),
        (4, 2, [1, 2, 3], "12 23 31 12"),
        (4, 3, [1, 2, 3], "123 231 312 123"),
        (4, 2, [0, 1, 2, 3], "01 12 23 30"),
    ],
)
def test_modulo_places_as_its_table_says(partitions: int, factor: int, brokers: list[int], expected: str) -> None:
    assert modulo.Modulo().place(facts(partitions, factor, brokers)) == rows(expected)


def test_modulo_goes_on_where_a_topic_ended() -> None:
    assert modulo.Modulo().place(facts(2, 2, [1, 2, 3], first=4, leader_of_first=1)) == rows("23 31")


@pytest.mark.parametrize(
    ("partitions", "factor", "brokers", "draws", "expected"),
    [
        (7, 3, range(5), (0, 0), "012 123 234 340 401 023 134"),
        (4, 1, [1, 2, 3], (0, 0), "1 2 3 1"),
        (6, 2, [1, 2, 3], (0, 0), "12 23 31 13 21 32"),
        (2, 3, [7, 8, 9], (0, 0), "789 897"),
        (3, 2, [1, 2, 3], (2, 1), "32 13 21"),
    ],
)
def test_kafka_places_as_its_table_says(
    partitions: int, factor: int, brokers: Iterable[int], draws: Sequence[int], expected: str
) -> None:
    left = list(draws)
    assert kafka.Kafka().place(facts(partitions, factor, brokers, draw=lambda below: left.pop(0))) == rows(expected)


def test_kafka_goes_on_where_a_topic_ended() -> None:
    placed = kafka.Kafka().place(facts(3, 2, [1, 2, 3], first=2, leader_of_first=2))
    assert [row[0] for row in placed] == [1, 2, 3]
    assert kafka.Kafka().place(facts(1, 1, [1, 2, 3], first=3, leader_of_first=9)) == [[1]]


@pytest.mark.parametrize("count", range(2, 7))
def test_kafka_spreads_evenly(count: int) -> None:
    for factor in range(1, count + 1):
        placed = kafka.Kafka().place(facts(count * 12, factor, range(count), draw=Random(count).randrange))
        assert all(len(set(row)) == factor for row in placed)
        assert set(Counter(row[0] for row in placed).values()) == {12}
        assert set(Counter(node for row in placed for node in row).values()) == {12 * factor}


@pytest.mark.parametrize("seed", range(20))
def test_kafka_spreads_over_racks(seed: int) -> None:
    chance = Random(seed)
    racks = {node: f"rack{node % 3}" for node in range(6)}
    for factor in range(1, 7):
        placed = kafka.Kafka().place(facts(36, factor, racks, draw=chance.randrange))
        assert all(len(set(row)) == factor for row in placed)
        assert all(len({racks[node] for node in row}) == min(factor, 3) for row in placed)
        assert set(Counter(row[0] for row in placed).values()) == {6}


def test_racks_count_where_every_broker_names_one() -> None:
    some = {1: "a", 2: "b", 3: None}
    assert kafka.Kafka().place(facts(3, 2, some)) == kafka.Kafka().place(facts(3, 2, [1, 2, 3]))  # type: ignore[arg-type]


def test_each_plugin_answers_to_its_own_name_only() -> None:
    assert isinstance(kafka.logkernel_placement("kafka"), kafka.Kafka)
    assert isinstance(modulo.logkernel_placement("modulo"), modulo.Modulo)
    assert kafka.logkernel_placement("modulo") is modulo.logkernel_placement("kafka") is None
    assert [*kafka.logkernel_names(), *modulo.logkernel_names()] == [("placement", "kafka"), ("placement", "modulo")]
    assert isinstance(kafka.Kafka(), PlacementStrategy)


class Broken:
    """A plugin that places as a test tells it."""

    def __init__(self, placed: Any) -> None:
        self.placed = placed

    @hookimpl
    def logkernel_placement(self, name: str) -> object:
        return self if name == "broken" else None

    @hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        return [("placement", "broken")]

    def place(self, facts: PlacementFacts) -> Any:
        if isinstance(self.placed, Exception):
            raise self.placed
        return self.placed


@pytest.mark.parametrize(
    ("placed", "problem"),
    [
        (None, "returned None"),
        ([[1, 2]], "placed 1 partitions of 2"),
        ([[1, 2], [1]], r"the replicas \[1\]; give it 2 different ones of \[1, 2, 3\]"),
        ([[1, 2], [1, 1]], "2 different ones"),
        ([[1, 2], [1, 9]], "2 different ones"),
        ([[1, 2], 7], "2 different ones"),
        (ZeroDivisionError("a fault"), "ZeroDivisionError"),
    ],
)
def test_a_placement_that_errs_is_named_and_creates_nothing(placed: Any, problem: str) -> None:
    kernel = Kernel(plugins=[Broken(placed)])
    with pytest.raises(PluginError, match=problem):
        kernel.placement("broken", {}).place(facts(2, 2, [1, 2, 3]))
    config = BrokerConfig.load(None, [], kernel.declarations())
    image = ClusterImage.of(registration_change(BrokerRegistration(node, {"P": ("h", node)})) for node in (1, 2, 3))
    controller = Controller(config, 1, lambda: UUID(int=1), {}, kernel.placement)
    topics = [
        CreatableTopic("a", 2, 2, configs=[CreatableTopicConfig("placement", "broken")]),
        CreatableTopic("b", 2, 2, configs=[CreatableTopicConfig("placement", "modulo")]),
    ]
    result = controller.create_topics(CreateTopicsRequest(topics), image)
    assert [row.error_code for row in result.response.topics] == [UnknownServerError.code, 0]
    assert result.effects.created == ["b"]
