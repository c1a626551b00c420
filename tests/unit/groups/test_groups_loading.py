"""Folding many records at once comes to the same as one by one."""

from __future__ import annotations

import random
from typing import Any

import attrs
import pytest

from logkernel.errors import CorruptMessage
from logkernel.plugins.services.groups.machine import GroupsMachine
from logkernel.plugins.services.groups.offset_key_cache import MAX_KEYS
from logkernel.plugins.services.groups.records import (
    CommittedOffset,
    GroupMetadata,
    encode_group,
    encode_offset,
    group_key,
    offset_key,
)
from logkernel.vocabulary import Record

GROUPS, TOPICS = ("a", "b", "é", "long" * 50), ("t", "u", "ü")


def machine() -> GroupsMachine:
    return GroupsMachine(None, None, lambda: "id", {}, {})  # type: ignore[arg-type]


def state(found: GroupsMachine) -> dict[str, Any]:
    return {name: attrs.asdict(group) for name, group in found.groups.items()}


def some_record(chance: random.Random) -> Record:
    group, topic, partition = chance.choice(GROUPS), chance.choice(TOPICS), chance.choice((0, 2**31 - 1))
    key = offset_key(group, topic, partition)
    kind = chance.randrange(-4, 12)
    if kind <= 0:
        return Record(key, None)
    if kind == 1:
        members = () if chance.random() < 0.7 else None
        value = None if members is None else encode_group(GroupMetadata("consumer", 1, None, None, 5, members))
        return Record(group_key(group), value)
    if kind == 2:
        return chance.choice((Record(None, b"?"), Record(b"\0\x63\0\1g", b"\0" * 42), Record(b"\0\2\0\1g", None)))
    entry = CommittedOffset(chance.randrange(2**62), chance.randrange(-1, 9), "", chance.randrange(2**40))
    if kind == 3:
        entry.metadata = "m" * chance.randrange(200)
    if kind == 4:
        entry.expire_ms = 7
    if kind != 5:
        entry.topic_id = chance.randbytes(16)
    if kind == 6:
        key = b"\0\0" + key[2:]  # version 0 says the same
    if kind == 7:
        key += b"trailing"
    return Record(key, encode_offset(entry))


@pytest.mark.parametrize("seed", range(30))
def test_the_same_as_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    records = [some_record(chance) for _ in range(400)]
    for offset, record in enumerate(records):
        record.offset = offset
    one, many = machine(), machine()
    for record in records:
        one.replay(record)
    first = 0
    while first < len(records):
        size = chance.randrange(1, 60)
        many.replay_many(records[first : first + size])
        first += size
    assert state(many) == state(one)
    assert list(many.groups) == list(one.groups)


def test_places_are_forgotten_with_their_groups() -> None:
    """A commit after the group's end is kept by the group that is there then."""
    found, value = machine(), encode_offset(CommittedOffset(1, topic_id=b"i" * 16))
    key = offset_key("g", "t", 0)
    for end in ([Record(key, None), Record(group_key("g"), None)], [Record(key, None)]):
        found.replay_many([Record(key, value)])
        found.replay_many(end)
        found.replay_many([Record(key, value)])
        assert found.groups["g"].offsets["t"][0].offset == 1


def test_places_do_not_grow_for_ever() -> None:
    found, value = machine(), encode_offset(CommittedOffset(1, topic_id=b"i" * 16))
    for number in range(MAX_KEYS + 10):
        found.replay_many([Record(offset_key(f"group-{number}", "t", 0), value)])
    assert len(found.coordinator.offset_keys.of_key) == 10
    assert len(found.groups) == MAX_KEYS + 10


@pytest.mark.parametrize(
    "key",
    [b"", b"\0", b"\0\1", b"\0\1\0\1", b"\0\1\0\1g\0\1", b"\0\1\xff\xffg\0\1t\0\0\0\0", b"\0\1\0\1\xff\0\1t\0\0\0\0"],
)
def test_a_key_that_cannot_be_read_is_refused(key: bytes) -> None:
    entry = CommittedOffset(1, topic_id=b"i" * 16)
    with pytest.raises(CorruptMessage):
        machine().replay(Record(key, encode_offset(entry)))
    with pytest.raises(CorruptMessage):
        machine().replay_many([Record(key, encode_offset(entry))])


def test_names_and_ids_are_kept_once() -> None:
    found = machine()
    value = encode_offset(CommittedOffset(1, topic_id=b"i" * 16))
    found.replay_many([Record(offset_key(group, "topic", 0), value) for group in "ab"])
    (one, first), (other, second) = (next(iter(found.groups[group].offsets.items())) for group in "ab")
    assert one is other
    assert first[0].topic_id is second[0].topic_id
