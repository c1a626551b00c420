"""What a running Apache Kafka kept of a Streams group, from its first member to its end (`record_streams.py`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest

from logkernel.contracts import ClusterView
from logkernel.plugins.services.groups import logkernel_service
from logkernel.plugins.services.groups.streams import records
from logkernel.plugins.services.groups.streams.records import Role
from logkernel.plugins.services.groups.streams.state import StreamsGroup
from logkernel.vocabulary import Record

LOG = [
    Record(bytes.fromhex(key), None if value == "-" else bytes.fromhex(value))
    for key, value in (
        line.split("\t") for line in Path(__file__).with_name("kafka-4.3.1-streams-log.tsv").read_text().splitlines()
    )
]
KINDS = records.OF_GROUP | records.OF_MEMBER
CODECS: dict[int, tuple[Callable[[bytes], Any], Callable[[Any], bytes]]] = {
    records.GROUP: (records.decode_group, records.encode_group),
    records.MEMBER: (records.decode_member, records.encode_member),
    records.TARGET_EPOCH: (records.decode_target_epoch, lambda pair: records.encode_target_epoch(*pair)),
    records.TARGET: (records.decode_target, records.encode_target),
    records.CURRENT: (records.decode_current, records.encode_current),
    records.TOPOLOGY: (records.decode_topology, records.encode_topology),
}
TASKS = {(subtopology, partition) for subtopology in ("0", "1") for partition in range(3)}
STATEFUL = {task for task in TASKS if task[0] == "1"}


def kind_of(record: Record) -> int:
    assert record.key is not None
    key = records.decode_key(bytes(record.key))
    assert key is not None
    return key.kind


def test_every_kind_is_recorded_with_a_value_and_a_tombstone() -> None:
    assert {kind_of(record) for record in LOG if record.value is not None} == KINDS
    assert {kind_of(record) for record in LOG if record.value is None} == KINDS


@pytest.mark.parametrize("number", range(len(LOG)))
def test_we_write_the_bytes_that_kafka_writes(number: int) -> None:
    record = LOG[number]
    assert record.key is not None
    key = records.decode_key(bytes(record.key))
    assert key is not None
    assert records.key(*key) == record.key
    if record.value is not None:
        decode, encode = CODECS[key.kind]
        assert encode(decode(bytes(record.value))) == record.value


def lives() -> Iterator[StreamsGroup | None]:
    """The group after each of its records."""
    service = logkernel_service(name="groups", settings={}, cluster=create_autospec(ClusterView, instance=True))
    machine: Any = service.machine(0, lambda: "id")
    for record in LOG:
        machine.replay(record)
        owner = machine.groups.get("app")
        yield owner.streams if owner is not None else None


def test_kafkas_log_folds_to_a_group_in_which_no_task_is_active_twice() -> None:
    states: list[str] = []
    for group in lives():
        if group is None:
            states.append("gone")
            continue
        states.append(group.state.value)
        held = Counter(
            place[1:]
            for member in group.members.values()
            for place in (*member.assigned, *member.revoking)
            if place[0] is Role.ACTIVE
        )
        assert all(count == 1 for count in held.values()), held
        if states[-1] == "Stable" and len(group.members) == 2:
            assert set(held) == TASKS
            standby = [
                place[1:] for member in group.members.values() for place in member.assigned if place[0] is Role.STANDBY
            ]
            assert sorted(standby) == sorted(STATEFUL)
    assert states[-1] == "gone"
    assert list(dict.fromkeys(states)) == ["Dead", "NotReady", "Assigning", "Reconciling", "Stable", "Empty", "gone"]
