"""Requests for the state of share-partitions that no broker of good will sends, and how they are answered.

Apache Kafka is asked by `record.py`, our broker by tests/scenarios/shares/test_state_beside_kafka.py: the same
requests, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from logkernel.requests import share_state as s
from logkernel.requests.groups import FindCoordinatorRequest
from logkernel.vocabulary import NO_ID, format_id

TOPIC, UNKNOWN = "orders", UUID(int=77)
LAST, LAST_I32 = 2**63 - 1, 2**31 - 1

Ask = Callable[[Any], Any]
Batches = tuple[tuple[int, int, int, int], ...]


def initialize(topic: UUID, group: str = "g", partition: int = 0, state: int = 5, start: int = 0) -> Any:
    row = s.InitializeStateDataPartitionData(partition, state, start)
    return s.InitializeShareGroupStateRequest(group, [s.InitializeStateData(topic, [row])])


def write(
    topic: UUID, *batches: tuple[int, int, int, int], group: str = "g", partition: int = 0, state: int = 5,
    leader: int = 5, start: int = -1, complete: int = 0,
) -> Any:  # fmt: skip
    rows = [s.WriteStateDataPartitionDataStateBatch(*batch) for batch in batches]
    row = s.WriteStateDataPartitionData(partition, state, leader, start, complete, rows)
    return s.WriteShareGroupStateRequest(group, [s.WriteStateData(topic, [row])])


def read(topic: UUID, group: str = "g", partition: int = 0, leader: int = 5) -> Any:
    row = s.ReadStateDataPartitionData(partition, leader)
    return s.ReadShareGroupStateRequest(group, [s.ReadStateData(topic, [row])])


def summary(topic: UUID, group: str = "g", partition: int = 0, leader: int = -1) -> Any:
    row = s.ReadStateSummaryDataPartitionData(partition, leader)
    return s.ReadShareGroupStateSummaryRequest(group, [s.ReadStateSummaryData(topic, [row])])


def delete(topic: UUID, group: str = "g", partition: int = 0) -> Any:
    row = s.DeleteStateDataPartitionData(partition)
    return s.DeleteShareGroupStateRequest(group, [s.DeleteStateData(topic, [row])])


def coordinators(topic: UUID) -> FindCoordinatorRequest:
    """Has a broker make the topic of the states."""
    return FindCoordinatorRequest(key_type=2, coordinator_keys=[f"g:{format_id(topic)}:0"])


def is_ready(ask: Ask, topic: UUID) -> bool:
    """Whether the coordinator has loaded its states."""
    return not ask(summary(topic, "none")).results[0].partitions[0].error_code


def cases(topic: UUID) -> Iterator[tuple[str, Any]]:
    for make in (initialize, write, read, summary, delete):
        name = make.__name__
        yield f"{name} without a state", make(topic, "none") if make is not write else write(topic, group="none")
        yield f"{name} of no group", make(topic, group="")
        yield f"{name} of no topic id", make(NO_ID)
        yield f"{name} of an unknown topic id", make(UNKNOWN)
        yield f"{name} of an unknown partition", make(topic, partition=7)
        yield f"{name} of the last partition", make(topic, partition=LAST_I32)
        yield f"{name} of a negative partition", make(topic, partition=-1)
    yield "no topics", s.ReadShareGroupStateRequest("g")
    yield "no partitions", s.ReadShareGroupStateRequest("g", [s.ReadStateData(topic)])
    yield "initialize", initialize(topic)
    yield "initialize again", initialize(topic)
    yield "initialize older", initialize(topic, state=4)
    yield "initialize negative state epoch", initialize(topic, state=-1)
    yield "initialize negative state epoch of none", initialize(topic, "h", state=-1)
    yield "initialize start -1", initialize(topic, "i", start=-1)
    yield "initialize start -2", initialize(topic, "j", start=-2)
    yield "initialize last start", initialize(topic, "k", start=LAST)
    yield "write", write(topic, (0, 9, 2, 1))
    yield "write negative leader epoch", write(topic, leader=-1)
    yield "write negative state epoch", write(topic, state=-1)
    yield "write leader epoch -2", write(topic, leader=-2)
    yield "write older leader epoch", write(topic, leader=4)
    yield "write older state epoch", write(topic, state=4)
    yield "write newer state epoch", write(topic, (10, 10, 2, 1), state=6)
    yield "write after a newer state epoch", write(topic, (11, 11, 2, 1))
    yield "write start -2", write(topic, start=-2)
    yield "write back", write(topic, start=0)
    yield "write complete -2", write(topic, complete=-2)
    for name, batch in BATCHES.items():
        group = f"batch {name}"
        yield f"{group}: initialize", initialize(topic, group)
        yield f"{group}: write", write(topic, *batch, group=group)
        yield f"{group}: read", read(topic, group)
    yield "read newer leader epoch", read(topic, leader=LAST_I32)
    yield "write after a newer leader epoch", write(topic)
    yield "read negative leader epoch", read(topic, leader=-1)
    yield "read leader epoch -2", read(topic, leader=-2)
    yield "read older leader epoch", read(topic, leader=3)
    yield "summary older leader epoch", summary(topic, leader=3)
    yield "summary leader epoch -2", summary(topic, leader=-2)
    yield "initialize newer", initialize(topic, state=LAST_I32, start=3)
    yield "read after it", read(topic, leader=LAST_I32)
    yield "delete", delete(topic)
    yield "delete again", delete(topic)
    yield "read after delete", read(topic)


BATCHES: dict[str, Batches] = {
    "first behind last": ((9, 3, 2, 1),),
    "negative": ((-5, -2, 2, 1),),
    "from a negative": ((-5, 3, 2, 1),),
    "before the start": ((0, 3, 2, 1),),
    "at the end": ((LAST - 1, LAST, 2, 1),),
    "all": ((0, LAST, 2, 1),),
    "twice": ((0, 9, 2, 1), (0, 9, 2, 1)),
    "contradicting": ((0, 9, 2, 1), (0, 9, 4, 1)),
    "overlapping": ((0, 9, 2, 1), (5, 14, 0, 2)),
    "descending": ((10, 19, 2, 1), (0, 9, 0, 1)),
    "unknown state": ((0, 9, 77, 1),),
    "negative state": ((0, 9, -1, 1),),
    "acquired": ((0, 9, 1, 1),),
    "negative deliveries": ((0, 9, 2, -1),),
    "most deliveries": ((0, 9, 0, 32767),),
}


def told(response: Any) -> str:
    """What an answer says, without the texts of its errors."""
    rows = [row for result in response.results for row in result.partitions]
    return " ".join(_told(row) for row in rows) or "nothing"


def _told(row: Any) -> str:
    if row.error_code:
        return str(row.error_code)
    words = ["0"]
    for field in ("state_epoch", "leader_epoch", "start_offset", "delivery_complete_count"):
        if hasattr(row, field):
            words.append(f"{field}={getattr(row, field)}")
    batches = [
        f"{batch.first_offset}-{batch.last_offset}:{batch.delivery_state}x{batch.delivery_count}"
        for batch in getattr(row, "state_batches", ())
    ]
    return " ".join(words + batches)


def table(ask: Ask, topic: UUID) -> Iterator[str]:
    for name, request in cases(topic):
        yield f"{name}: {told(ask(request))}"
