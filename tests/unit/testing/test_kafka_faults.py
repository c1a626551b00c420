"""Which requests a fault strikes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from logkernel.errors import ConfigError, NotLeaderOrFollower
from logkernel.requests.cluster import MetadataRequest, MetadataRequestTopic
from logkernel.requests.data import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from logkernel.requests.groups import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from logkernel.requests.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from logkernel.testing.kafka.faults import ERRORS, Faults
from logkernel.testing.kafka.named import ANY_PARTITION, FetchSession, partitions_named
from logkernel.testing.kafka.requests import ClientRequest
from logkernel.vocabulary import TopicPartition

ID = UUID(int=7)


def name_of(topic_id: UUID) -> str:
    return "by-id" if topic_id == ID else ""


@pytest.fixture
def faults() -> Faults:
    return Faults(7, ["Produce", "Fetch", "Metadata"], lambda work: work())


def request(api: str = "Produce", client_id: str = "shop", **more: object) -> ClientRequest:
    return ClientRequest(api, 9, client_id, "", 1, 1, 0, more.get("request"))


def struck(faults: Faults, count: int, *named: TopicPartition, **of: str) -> list[int]:
    """The numbers of those of `count` requests that are struck."""
    return [number for number in range(count) if faults.strikes(request(**of), lambda: named) is not None]


def test_conditions_narrow_a_fault_down(faults: Faults) -> None:
    faults.close(api="Produce", client_id=re.compile("^sh"), topic="orders", partition=1)
    there = TopicPartition("orders", 1)
    assert struck(faults, 1, there) == [0]
    assert struck(faults, 1, TopicPartition("orders", ANY_PARTITION)) == [0]
    assert struck(faults, 1, TopicPartition("orders", 0)) == []
    assert struck(faults, 1, TopicPartition("other", 1)) == []
    assert struck(faults, 1) == []
    assert struck(faults, 1, there, api="Fetch") == []
    assert struck(faults, 1, there, client_id="the shop") == []


def test_a_fault_skips_and_ends(faults: Faults) -> None:
    fault = faults.error("NOT_LEADER_OR_FOLLOWER", api="Produce", skip=2, times=3)
    assert struck(faults, 9) == [2, 3, 4]
    assert (fault.struck, fault.fitted) == (3, 5)
    assert "NotLeaderOrFollower" in repr(fault.error)
    assert str(fault) == "error NOT_LEADER_OR_FOLLOWER api=Produce times=3 skip=2: struck 3 of 5"


def test_a_fault_says_what_it_does_and_when(faults: Faults) -> None:
    """It said no error, times or skip."""
    assert str(faults.delay(500, topic="orders", partition=0)) == "delay 500 topic=orders partition=0: struck 0 of 0"
    assert (
        str(faults.cut_answer(0.25, probability=0.5, times=0))
        == "cut_answer 0.25 times=0 probability=0.5: struck 0 of 0"
    )
    assert str(faults.close()) == "close: struck 0 of 0"


def test_a_seed_decides_the_same_again() -> None:
    def run(seed: int, others: bool) -> list[int]:
        faults = Faults(seed, ["Produce", "Fetch"], lambda work: work())
        faults.close(api="Produce", probability=0.3)
        found = []
        for number in range(100):
            if others:
                struck(faults, 2, api="Fetch")
            found += [number] * len(struck(faults, 1))
        return found

    assert run(1, False) == run(1, True)
    assert run(1, False) != run(2, False)
    assert 10 < len(run(1, False)) < 60


def test_the_first_that_fits_strikes_and_removed_ones_do_not(faults: Faults) -> None:
    first, second = faults.close(times=1), faults.stall()
    assert faults.strikes(request(), tuple) is first
    assert faults.strikes(request(), tuple) is second
    released: list[int] = []
    second.released.append(lambda: released.append(1))
    second.remove()
    second.remove()
    assert released == [1]
    assert faults.strikes(request(), tuple) is None
    faults.close()
    faults.clear()
    assert (faults.active, faults.made) == ([], [])


def test_mistakes_are_told_with_their_remedy(faults: Faults) -> None:
    with pytest.raises(ConfigError, match="did you mean 'Produce'"):
        faults.close(api="Prodcue")
    with pytest.raises(ConfigError, match="did you mean NOT_LEADER_OR_FOLLOWER"):
        faults.error("NOT_LEADER_OR_FOLOWER")
    with pytest.raises(ConfigError, match="there is no condition 'tpoic'; did you mean 'topic'"):
        faults.close(tpoic="orders")
    with pytest.raises(ConfigError, match="there is no condition 'tims'; did you mean 'times'"):
        faults.close(tims=2)
    known = "api, broker, client_id, partition, probability, skip, times, topic"
    with pytest.raises(ConfigError, match=f"there is no condition 'x'; there are {known}$"):
        faults.close(x=2)
    with pytest.raises(ConfigError, match="probability=2"):
        faults.close(probability=2)
    with pytest.raises(ConfigError, match="part=1"):
        faults.cut_answer(1)
    with pytest.raises(ConfigError, match="0 ms"):
        faults.delay(0)
    assert faults.active == []


YAML = """
- error: NOT_LEADER_OR_FOLLOWER
  api: Produce
  topic: orders
  times: 2
- delay: 500
  client_id: shop
- cut_answer: 0.25
- cut_answer: true
- lose_answer: true
  probability: 0.5
"""


def test_a_file_asks_for_faults(faults: Faults, tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(YAML)
    error, delay, quarter, half, lost = faults.load(path)
    assert (error.kind, error.conditions.topic, error.times) == ("error", "orders", 2)
    assert isinstance(error.error, NotLeaderOrFollower)
    assert (delay.kind, delay.wait_ms, delay.conditions.client_id) == ("delay", 500, "shop")
    assert (quarter.part, half.part) == (0.25, 0.5)
    assert (lost.kind, lost.probability) == ("lose_answer", 0.5)
    assert faults.active == [error, delay, quarter, half, lost]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- api: Produce", "fault 1: {'api': 'Produce'} does not say what goes wrong; say one of error, delay, stall"),
        ("- eror: NETWORK_EXCEPTION", "fault 1: .* does not say what goes wrong; did you mean error by eror"),
        ("- close: true\n- error: NOT_LEADER_OR_FOLOWER", "fault 2: .*did you mean NOT_LEADER_OR_FOLLOWER"),
        ("- {close: true, stall: true}", "fault 1: it has stall and close, which are a fault each; write 2 faults"),
        ("- close", "fault 1: 'close' is no mapping; write e.g. error: NAME, or close: true"),
        ("- delay: soon", "fault 1: a delay of 'soon' ms"),
        ("- stall: true\n- delay: true", "fault 2: a delay of True ms is none; pass a whole number"),
        ("- error: 5", "fault 1: there is no error 5; use Kafka's names"),
        ("- error: true", "fault 1: there is no error True; use Kafka's names"),
        ("- cut_answer: half", "fault 1: part='half'.* pass a number"),
        ("- close: false", "fault 1: close: False asks for nothing; write close: true"),
        ("- {close: true, times: two}", "fault 1: times='two': pass a whole number"),
        ("- {close: true, skip: true}", "fault 1: skip=True: pass a whole number"),
        ("- {close: true, probability: often}", "fault 1: probability='often': pass a number"),
        ("- {close: true, partition: '1'}", "fault 1: partition='1' fits nothing; pass a number"),
        ("- {close: true, api: 0}", "fault 1: api=0 fits nothing; pass Kafka's name"),
        ("- {close: true, 1: 2}", "fault 1: there is no condition 1"),
        ("close: true", "a list of mappings"),
        ("- {", "cannot be read as YAML"),
    ],
)
def test_a_file_with_a_mistake_adds_nothing(faults: Faults, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=rf"faults\.yaml: .*{said}"):
        faults.load(path)
    assert (faults.active, faults.made) == ([], [])
    with pytest.raises(ConfigError, match="cannot be read"):
        faults.load(tmp_path / "none.yaml")


def test_a_list_with_a_mistake_is_never_active_and_shifts_no_seed() -> None:
    """The first of them was added, struck, and was removed; what it was counted as shifted the seeds of later ones."""
    ran: list[object] = []

    def run(work: Callable[[], object]) -> object:
        ran.append(work)
        return work()

    faults, other = Faults(7, ["Produce"], run), Faults(7, ["Produce"], run)
    with pytest.raises(ConfigError, match="fault 2: a delay of -1 ms"):
        faults.load([{"close": True}, {"delay": -1}])
    assert (ran, faults.made) == ([], [])
    assert faults.close(probability=0.5).random.random() == other.close(probability=0.5).random.random()


def test_errors_have_kafkas_names() -> None:
    assert ERRORS["NOT_LEADER_OR_FOLLOWER"] is NotLeaderOrFollower
    assert {"UNKNOWN_TOPIC_OR_PARTITION", "COORDINATOR_NOT_AVAILABLE", "OFFSET_OUT_OF_RANGE"} <= ERRORS.keys()


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (
            ProduceRequest(topic_data=[
                TopicProduceData("a", [PartitionProduceData(0), PartitionProduceData(2)]),
                TopicProduceData("", [PartitionProduceData(1)], ID),
            ]),
            [("a", 0), ("a", 2), ("by-id", 1)],
        ),
        (FetchRequest(topics=[FetchTopic("a", [FetchPartition(partition=3)])]), [("a", 3)]),
        (MetadataRequest([MetadataRequestTopic("a")]), [("a", ANY_PARTITION)]),
        (
            CreateTopicsRequest([CreatableTopic("a", configs=[CreatableTopicConfig("retention.ms", "1")])]),
            [("a", ANY_PARTITION)],
        ),
        (
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("a", [1, 2])])]),
            [("a", 1), ("a", 2)],
        ),
    ],
)  # fmt: skip
def test_a_request_names_partitions(asked: object, named: list[tuple[str, int]]) -> None:
    assert partitions_named(asked, name_of) == [TopicPartition(*each) for each in named]


def test_a_fetch_session_is_followed() -> None:
    session = FetchSession()

    def follow(epoch: int, *partitions: int, forgotten: tuple[int, ...] = ()) -> list[int]:
        topics = [FetchTopic("a", [FetchPartition(partition=number) for number in partitions])]
        asked = FetchRequest(topics=topics if partitions else [], session_epoch=epoch)
        asked.forgotten_topics_data = [ForgottenTopic("a", list(forgotten))]
        named = partitions_named(asked, name_of)
        return [name.partition for name in session.follow(asked, named, name_of)]

    assert follow(0, 1, 2) == [1, 2]
    assert follow(1) == [1, 2]
    assert follow(2, 3, forgotten=(1,)) == [2, 3]
    assert follow(0, 9) == [9]
