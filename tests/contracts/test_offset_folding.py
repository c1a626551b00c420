"""The contract of folding the columns of committed offsets, run over plain Python and over the compiled loop, and one
against the other: it comes to the same as one record after the other, and believes no length."""

from __future__ import annotations

import importlib
import os
import random
import sys
from array import array
from struct import pack
from types import ModuleType
from typing import Any

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from logkernel.errors import CorruptMessage
from logkernel.plugins.services import groups
from logkernel.plugins.services.groups import loading, pure_folding
from logkernel.plugins.services.groups.coordinator import GroupCoordinator
from logkernel.plugins.services.groups.machine import GroupsMachine
from logkernel.plugins.services.groups.records import (
    USUAL_BYTES,
    CommittedOffset,
    encode_offset,
    group_key,
    offset_key,
)
from logkernel.record.batch import batches
from logkernel.record.decode import decode_columns
from logkernel.record.encode import encode_batch
from logkernel.record.layout import Columns
from logkernel.vocabulary import Record

GROUPS = ("a", "b", "é", "long" * 50)


def compiled() -> Any:
    module: Any = pytest.importorskip(
        "logkernel.plugins.services.groups._folding", reason="it was not built", exc_type=ImportError
    )
    return module.fold_columns


@pytest.fixture(params=["pure", "compiled"], scope="module")
def fold(request: pytest.FixtureRequest) -> Any:
    return pure_folding.fold_columns if request.param == "pure" else compiled()


def machine() -> GroupsMachine:
    return GroupsMachine(None, None, lambda: "id", {}, {})  # type: ignore[arg-type]


def state(found: GroupsMachine) -> list[tuple[str, Any]]:
    """In order, as that of groups, topics and partitions is told to clients."""
    return [
        (name, {**attrs.asdict(group), "order": [(topic, list(kept)) for topic, kept in group.offsets.items()]})
        for name, group in found.groups.items()
    ]


def columns_of(records: list[Record]) -> Columns:
    data = encode_batch(records, base_offset=records[0].offset, preserve_offsets=True)
    (facts,) = batches(data)
    return decode_columns(data, facts, lambda codec_id: None)  # type: ignore[arg-type,return-value]


def usual(offset: int = 1, topic_id: bytes = b"i" * 16) -> bytes:
    return encode_offset(CommittedOffset(offset, 3, "", 5, topic_id=topic_id))


def batch(keys: list[bytes], values: list[bytes | None] | None = None, first: int = 0) -> Columns:
    held = [usual(row) for row in range(len(keys))] if values is None else values
    rows = enumerate(zip(keys, held, strict=True), first)
    return columns_of([Record(key, value, (), 1, offset) for offset, (key, value) in rows])


def must_not(record: Record) -> None:
    raise AssertionError(f"{record} came to be replayed")


# ---------------------------------------------------------------- the same as one by one


@pytest.mark.parametrize("seed", range(30))
def test_the_same_as_one_by_one(fold: Any, seed: int) -> None:
    """Batches of usual commits, with holes as a cleaner leaves them, among others; now and then a value is odd."""
    chance = random.Random(seed)
    one, many, by_columns, offset = machine(), machine(), 0, 0
    for _ in range(40):
        groups = GROUPS[:2] if seed % 5 == 0 else (chance.choice(GROUPS),)
        records = []
        for partition in range(chance.randrange(1, 30)):
            entry = CommittedOffset(offset, 3, "", 5, topic_id=chance.choice((b"i" * 16, b"j" * 16)))
            key = offset_key(chance.choice(groups), chance.choice(("t", "u")), partition)
            value: bytes | None = encode_offset(entry)
            if seed % 3 == 1 and chance.random() < 0.1:
                value = encode_offset(CommittedOffset(7, 3, "m" * 18, 5))
                assert len(value) == USUAL_BYTES
            if seed % 3 == 2 and chance.random() < 0.05:
                key, value = chance.choice(((key, None), (group_key("a"), None), (b"\0\0" + key[2:], value)))
            offset += chance.choice((1, 1, 4))
            records.append(Record(key, value, (), 1, offset))
        for record in records:
            one.replay(record)
        if fold(many.coordinator, columns_of(records), many.replay):
            by_columns += 1
        else:
            many.replay_many(records)
        assert state(many) == state(one)
    assert by_columns > 3


@pytest.mark.parametrize("version", range(-1, 6))
@pytest.mark.parametrize("size", [0, 1, 2, 255])
@pytest.mark.parametrize("tag", [b"\1\0\x10", b"\1\1\x10", b"\1\0\x0f", b"\0\0\x10", b"\2\0\x10"])
def test_a_value_in_the_middle_that_is_not_the_usual(fold: Any, version: int, size: int, tag: bytes) -> None:
    odd = pack(">hqiBq3s16s", version, 2**63 - 1, -1, size, -(2**63), tag, b"j" * 16)
    keys = [offset_key("g", "t", row) for row in range(5)]
    same(fold, batch(keys, [usual(0), usual(1), odd, odd, usual(4)]))


def same(fold: Any, columns: Columns) -> None:
    """It comes to what one record after the other does, and, also where one is refused, to what plain Python does."""
    ours, plain, one = machine(), machine(), machine()
    found, expected = outcome(fold, ours, columns), outcome(pure_folding.fold_columns, plain, columns)
    assert found == expected
    assert state(ours) == state(plain)
    assert places(ours.coordinator) == places(plain.coordinator)
    error = None
    try:
        for record in records_of(columns):
            one.replay(record)
    except Exception as refused:
        error = refused
    assert found[0] == (True if error is None else (type(error), str(error)))
    if error is None:
        assert state(ours) == state(one)


def outcome(fold: Any, into: GroupsMachine, columns: Columns) -> tuple[Any, list[Record]]:
    """What it answered or raised, and what it left to others."""
    replayed: list[Record] = []

    def replay(record: Record) -> None:
        replayed.append(record)
        into.replay(record)

    try:
        return fold(into.coordinator, columns, replay), replayed
    except Exception as error:
        return (type(error), str(error)), replayed


def places(coordinator: GroupCoordinator) -> Any:
    kept = coordinator.offset_keys
    return kept.of_key, kept.head, None if kept.group is None else kept.group.group_id, kept.texts, kept.ids


def records_of(columns: Columns) -> list[Record]:
    stride = len(columns.keys) // columns.rows
    return [
        Record(columns.keys[row * stride : (row + 1) * stride], columns.values[row * 42 : row * 42 + 42], offset=offset)
        for row, offset in enumerate(array("q", columns.offsets))
    ]


HEADS = (b"\0\1\0\1g", b"\0\1\0\1h", b"\0\1\0\0", b"\0\1\0\2\xc3\xa9", b"\0\1\0\1\xff", b"\0\0\0\1g", b"\0\2\0\1g")
LIES = (b"\0\1\xff\xffg", b"\0\1\x7f\xffg", b"\0\1\0\5g", b"\0\1\0", b"\0\x0b\0\1g", b"\0\1\0\3g\0\1", b"\xff\xff\0\1g")
TOPICS = (b"\0\1t", b"\0\1u", b"\0\0", b"\0\2tt", b"\0\3t", b"\0\0t", b"\xff\xfft", b"\x7f\xfft", b"\0\1\xff", b"\0")
keys = st.builds(lambda *parts: b"".join(parts), st.sampled_from(HEADS + LIES), st.sampled_from(TOPICS), st.binary())
keys |= st.binary()
values = st.builds(
    lambda version, offset, size, tag, topic_id: pack(">hqiBq3s16s", version, offset, 3, size, 5, tag, topic_id),
    st.sampled_from((4, 4, 4, 3, 1)),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from((1, 1, 1, 0, 2)),
    st.sampled_from((b"\1\0\x10",) * 3 + (b"\1\1\x10", b"\0\0\0")),
    st.sampled_from((b"i" * 16, b"j" * 16)),
)


@given(
    stride=st.integers(5, 16),
    rows=st.lists(st.tuples(keys, values), min_size=1, max_size=8),
    repeats=st.lists(st.integers(1, 4), min_size=8, max_size=8),
)
@example(stride=12, rows=[(b"\0\1\0\1g\0\1t\0\0\0\0", usual()), (b"\0\2\0\1g\0\1t\0\0\0\0", usual())], repeats=[2] * 8)
@settings(deadline=None, max_examples=400)
def test_whatever_the_keys_and_values_are(
    fold: Any, stride: int, rows: list[tuple[bytes, bytes]], repeats: list[int]
) -> None:
    made = [
        (key.ljust(stride, b"\0")[:stride], value)
        for (key, value), times in zip(rows, repeats, strict=False)
        for _ in range(times)
    ]
    same(fold, batch([key for key, _ in made], [value for _, value in made]))


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("head", HEADS + LIES)
def test_a_key_among_others(fold: Any, head: bytes, topic: bytes) -> None:
    """Also directly behind one of the group and topic that it could be taken for."""
    key = head + topic + b"\0\0\0\7"
    for name in (b"g", b"h"):
        room = len(key) - 11
        if room < 0:
            other = b"\0" * len(key)
        else:
            other = b"\0\1\0\1" + name + pack(">h", room) + b"t" * room + b"\0\0\0\1"
        if len(key) > 4:
            same(fold, batch([other, key, other, key, key]))


# ---------------------------------------------------------------- places and names


def test_usual_offsets_are_left_to_nobody(fold: Any) -> None:
    found = machine()
    keys = [offset_key(group, topic, row) for group in "gh" for topic in ("t", "u") for row in range(3)]
    assert fold(found.coordinator, batch(keys, first=2**40), must_not) is True
    assert list(found.groups["g"].offsets["u"]) == [0, 1, 2]
    assert found.groups["h"].offsets["t"][2] == CommittedOffset(8, 3, "", 5, -1, b"i" * 16, 2**40 + 8)
    assert found.groups["h"].is_known


def test_names_and_ids_are_kept_once(fold: Any) -> None:
    found = machine()
    for group in "abc":
        assert fold(found.coordinator, batch([offset_key(group, topic, 0) for topic in ("topic", "other")]), must_not)
    kept = [list(found.groups[group].offsets.items()) for group in "abc"]
    assert kept[0][0][0] is kept[1][0][0] is kept[2][0][0]
    assert kept[0][0][1][0].topic_id is kept[1][1][1][0].topic_id


def test_who_replays_may_take_all_away(fold: Any) -> None:
    """What is folded behind such a record is kept by the groups that are there then."""
    found = machine()

    def replay(record: Record) -> None:
        found.coordinator.groups.clear()
        found.coordinator.offset_keys.forget()

    keys = [offset_key("g", topic, row) for row, topic in enumerate("tutut")]
    values = [usual(), usual(), b"\0" * USUAL_BYTES, usual(), usual()]
    assert fold(found.coordinator, batch(keys, list(values)), replay)
    assert {topic: list(kept) for topic, kept in found.groups["g"].offsets.items()} == {"u": [3], "t": [4]}


def test_a_record_that_is_refused_ends_the_fold(fold: Any) -> None:
    found = machine()
    keys = [offset_key("g", "t", 0), b"\0\1\0\7g\0\1t\0\0\0\0", offset_key("g", "t", 2)]
    with pytest.raises(CorruptMessage):
        fold(found.coordinator, batch(keys), found.replay)
    assert list(found.groups["g"].offsets["t"]) == [0]


# ---------------------------------------------------------------- columns that are not for it


def test_keys_or_values_of_more_than_one_length(fold: Any) -> None:
    key = offset_key("g", "t", 0)
    for columns in (
        batch([key, offset_key("g", "tt", 0)]),
        batch([key, key + b"\0" * 12]),  # as long as three keys
        batch([key, key], [usual(), encode_offset(CommittedOffset(1))]),
        batch([key, key], [None, usual()]),
        batch([key, key], [None, None]),
        columns_of([Record(None, usual(), (), 1, 0), Record(key + key, usual(), (), 1, 1)]),
        batch([b"", b""]),
        batch([b"\0\1\0\0", b"\0\1\0\0"]),
    ):
        found = machine()
        assert fold(found.coordinator, columns, must_not) is False
        assert not found.groups


WHOLE = batch([offset_key("g", topic, row) for row, topic in enumerate("tuvw")])


@pytest.mark.parametrize("rows", [-(2**70), -(2**31), -4, -1, 0, 1, 3, 5, 8, 2**29, 2**31, 2**61, 2**63, 2**70])
def test_another_number_of_rows_than_there_are(fold: Any, rows: int) -> None:
    assert fold(machine().coordinator, WHOLE._replace(rows=rows), must_not) is False


@pytest.mark.parametrize("name", ["offsets", "keys", "key_ends", "values", "value_ends"])
def test_a_column_that_is_shorter_or_longer_than_its_rows(fold: Any, name: str) -> None:
    column: bytes = getattr(WHOLE, name)
    for cut in range(len(column)):
        assert fold(machine().coordinator, WHOLE._replace(**{name: column[:cut]}), must_not) is False
    for more in (1, 4, 8, 12, USUAL_BYTES, len(column)):
        assert fold(machine().coordinator, WHOLE._replace(**{name: column + bytes(more)}), must_not) is False


@pytest.mark.parametrize("name", ["key_ends", "value_ends"])
def test_ends_that_lie(fold: Any, name: str) -> None:
    ends = array("i", getattr(WHOLE, name))
    for at in range(len(ends)):
        for lie in (-1, 1, -(2**31), 2**31 - 1, 0):
            if ends[at] != lie:
                lying = array("i", ends)
                lying[at] = lie
                assert fold(machine().coordinator, WHOLE._replace(**{name: lying.tobytes()}), must_not) is False


def test_no_rows_at_all(fold: Any) -> None:
    nothing = Columns(0, b"", b"", b"", bytes(4), b"", b"", bytes(4), b"", bytes(4), b"")
    assert fold(machine().coordinator, nothing, must_not) is False
    assert fold(machine().coordinator, nothing._replace(key_ends=b"", value_ends=b""), must_not) is False


@pytest.mark.parametrize("name", ["offsets", "keys", "values"])
def test_what_is_no_column(fold: Any, name: str) -> None:
    with pytest.raises(TypeError):
        fold(machine().coordinator, WHOLE._replace(**{name: None}), must_not)


# ---------------------------------------------------------------- which one it is


def test_the_compiled_one_is_in_use_where_it_was_built() -> None:
    compiled()
    assert (os.environ.get("LOGKERNEL_PURE", "") in ("", "0")) == loading.COMPILED


def test_the_environment_asks_for_python(monkeypatch: pytest.MonkeyPatch) -> None:
    other = compiled()
    try:
        for asked, function in (("1", pure_folding.fold_columns), ("0", other), ("", other)):
            monkeypatch.setenv("LOGKERNEL_PURE", asked)
            importlib.reload(loading)
            assert loading.COMPILED is (function is other)
            assert loading.fold_columns is function
    finally:
        monkeypatch.undo()
        importlib.reload(loading)


def test_that_of_a_copy_of_the_package_is_left_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes offsets of the copy's class."""
    other = ModuleType("logkernel.plugins.services.groups._folding")
    other.made_of = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, other.__name__, other)
    monkeypatch.setattr(groups, "_folding", other, raising=False)
    monkeypatch.delenv("LOGKERNEL_PURE", raising=False)
    assert loading._load() == (pure_folding.fold_columns, False)
