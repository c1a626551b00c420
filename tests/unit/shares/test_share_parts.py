"""The smaller parts of share groups: sessions, the assignor, reading of batches, tables, refusals, settings."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from logkernel.config.broker import BrokerConfig
from logkernel.config.durations import duration_ms
from logkernel.config.groups import group_value, validate_group
from logkernel.errors import (
    BY_CODE,
    InvalidConfig,
    InvalidShareSessionEpoch,
    ShareSessionLimitReached,
    ShareSessionNotFound,
)
from logkernel.kernel import Kernel
from logkernel.plugins.services import shares
from logkernel.plugins.services.shares.members import group
from logkernel.plugins.services.shares.members.assignor import assign
from logkernel.plugins.services.shares.members.records import Key, Kind, MemberValue
from logkernel.plugins.services.shares.partitions.partition import Acquired, Stretch
from logkernel.plugins.services.shares.partitions.reading import Batch, cut, read
from logkernel.plugins.services.shares.partitions.sessions import MAX_EPOCH, Holder, ShareSessions
from logkernel.record.control import encode_marker
from logkernel.record.encode import encode_batch
from logkernel.requests import share_delivery, share_groups, share_offsets, share_state
from logkernel.requests.data import AbortedTransaction
from logkernel.vocabulary import FileSlice, Record

CONFIG = BrokerConfig.load(None, (), Kernel(allow=()).declarations())

A, B = Holder("g", "a"), Holder("g", "b")
T, U = UUID(int=1), UUID(int=2)


# ---------------------------------------------------------------- sessions


def test_a_session_goes_from_epoch_to_epoch() -> None:
    sessions = ShareSessions(10)
    sessions.begin(A, 0)
    sessions.go_on(A, 1, 0)
    with pytest.raises(InvalidShareSessionEpoch):
        sessions.go_on(A, 1, 0)
    sessions.get(A).epoch = MAX_EPOCH
    assert sessions.go_on(A, MAX_EPOCH, 0).epoch == 1
    sessions.end(A)
    with pytest.raises(ShareSessionNotFound):
        sessions.go_on(A, 2, 0)


def test_an_idle_session_makes_room() -> None:
    sessions = ShareSessions(1)
    sessions.begin(A, 0)
    with pytest.raises(ShareSessionLimitReached):
        sessions.begin(B, 119_999)
    assert sessions.begin(A, 119_999) is None, "a member may always begin anew"
    assert sessions.begin(B, 239_999) == A


def test_turns_begin_with_another_partition_each_time() -> None:
    sessions = ShareSessions(1)
    sessions.begin(A, 0)
    session = sessions.get(A)
    session.partitions = {(T, 0): None, (T, 1): None, (T, 2): None}
    firsts = [sessions.go_on(A, epoch, 0).rotated()[0] for epoch in range(1, 4)]
    assert sorted(firsts) == [(T, 0), (T, 1), (T, 2)]


# ---------------------------------------------------------------- assignor


@pytest.mark.parametrize(
    ("subscriptions", "expected"),
    [
        ({"a": ["t"]}, {"a": {T: (0, 1, 2)}}),
        ({"a": ["t"], "b": ["t"]}, {"a": {T: (0, 2)}, "b": {T: (1,)}}),
        ({name: ["t"] for name in "abcd"}, {"a": {T: (0,)}, "b": {T: (1,)}, "c": {T: (2,)}, "d": {T: (0,)}}),
        ({"a": ["t", "u"], "b": ["t", "u"]}, {"a": {T: (0, 2)}, "b": {T: (1,), U: (0,)}}),
        ({"a": ["t"], "b": ["u"], "c": ["none"]}, {"a": {T: (0, 1, 2)}, "b": {U: (0,)}, "c": {}}),
        ({}, {}),
    ],
)
def test_the_simple_assignor_spreads_partitions(subscriptions: Any, expected: Any) -> None:
    assert assign(subscriptions, {"t": (T, (0, 1, 2)), "u": (U, (0,))}) == expected


# ---------------------------------------------------------------- reading


def batch(base: int, count: int, **more: Any) -> bytes:
    return encode_batch([Record(b"k", b"v" * 40, timestamp_ms=1)] * count, base_offset=base, **more)


class Bytes:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.asked = 0

    def read(self, position: int, size: int) -> bytes:
        self.asked += size
        return self.data[position : position + size]


def test_batches_of_a_slice_are_read_by_their_headers() -> None:
    data = b"".join(batch(base, 50) for base in range(0, 50_000, 50))
    file = Bytes(b"xyz" + data)
    slice_ = FileSlice(-1, 3, len(data) - 10, file)
    found = read(slice_, ())
    assert [one.stretch for one in found] == [Stretch(base, base + 49) for base in range(0, 49_950, 50)]
    part = cut(slice_, found, [Acquired(120, 130, 1), Acquired(140, 160, 2)])
    assert isinstance(part, FileSlice)
    assert part.read() == batch(100, 50) + batch(150, 50)


def test_a_batch_larger_than_a_chunk() -> None:
    big = encode_batch([Record(None, b"v" * 200_000, timestamp_ms=1)], base_offset=0)
    data = big + batch(1, 2)
    assert [one.stretch for one in read(FileSlice(-1, 0, len(data), Bytes(data)), ())] == [Stretch(0, 0), Stretch(1, 2)]
    assert read(None, ()) == []
    assert cut(data, read(data, ()), [Acquired(1, 2, 1)]) == batch(1, 2)


def test_markers_and_aborted_batches_are_not_deliverable() -> None:
    transactional = {"producer_id": 9, "producer_epoch": 0, "transactional": True}
    marker = bytearray(encode_marker(9, 0, committed=False, coordinator_epoch=0, timestamp_ms=1))
    marker[:8] = (3).to_bytes(8, "big")
    data = batch(0, 1) + batch(1, 2, **transactional) + bytes(marker) + batch(4, 1, **transactional)
    spans = [(one.stretch.base, one.stretch.deliverable) for one in read(data, [AbortedTransaction(9, 1)])]
    assert spans == [(0, True), (1, False), (3, False), (4, True)]
    assert [one.stretch.deliverable for one in read(data, ())] == [True, True, False, True]


def test_a_batch_says_where_it_lies() -> None:
    data = batch(0, 1) + batch(1, 1)
    assert read(data, ())[1] == Batch(Stretch(1, 1), len(batch(0, 1)), len(batch(1, 1)))


# ---------------------------------------------------------------- the services


def test_every_request_can_be_refused_with_every_code() -> None:
    class Off:
        def feature_level(self, name: str) -> int:
            return 0

    rooms = (share_groups, share_delivery, share_state, share_offsets)
    for declaration in shares.logkernel_services():
        service = shares.logkernel_service(declaration.name, CONFIG, Off())  # type: ignore[arg-type]
        assert service is not None
        for name in declaration.requests:
            (kind,) = (vars(room)[name] for room in rooms if name in vars(room))
            request = kind()
            for code in BY_CODE:
                service.refusal(request, code)
    assert shares.logkernel_service("other", {}, None) is None


def test_a_share_group_is_stable_while_it_has_members() -> None:
    one, first, second = group.Group("g"), Key(Kind.MEMBER, "g", "a"), Key(Kind.MEMBER, "g", "b")
    member = MemberValue(None, "client", "host", ("t",))
    states = [one.state.value]
    for key, value in [(first, member), (second, member), (first, None), (second, None)]:
        one.fold(key, value)
        states.append(one.state.value)
    assert states == ["Empty", "Stable", "Stable", "Stable", "Empty"]


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("PT1S", 1_000),
        ("P1D", 86_400_000),
        ("P1DT2H3M4.567S", 93_784_567),
        ("pt0.5s", 500),
        ("PT", None),
        ("P", None),
        ("-PT1S", None),
        ("PT1", None),
        ("1h", None),
    ],
)
def test_iso_durations_are_parsed(text: str, ms: int | None) -> None:
    if ms is None:
        with pytest.raises(ValueError, match="is not an ISO 8601 duration"):
            duration_ms(text)
    else:
        assert duration_ms(text) == ms


def test_a_groups_own_settings() -> None:
    assert group_value(CONFIG, {}, "share.record.lock.duration.ms") == 30_000
    assert group_value(CONFIG, {"share.record.lock.duration.ms": "20000"}, "share.record.lock.duration.ms") == 20_000
    assert group_value(CONFIG, {"share.record.lock.duration.ms": "90000"}, "share.record.lock.duration.ms") == 60_000
    assert group_value(CONFIG, {}, "share.auto.offset.reset") == "latest"
    with pytest.raises(KeyError):
        group_value(CONFIG, {}, "retention.ms")


@pytest.mark.parametrize(
    "own",
    [
        {"share.record.lock.duration.ms": "14999"},
        {"share.record.lock.duration.ms": "60001"},
        {"share.record.lock.duration.ms": "x"},
        {"share.auto.offset.reset": "none"},
        {"share.auto.offset.reset": "by_duration:-PT1S"},
        {"share.isolation.level": "dirty"},
        {"share.sesion.timeout.ms": "45000"},
        {"streams.num.standby.replicas": "3"},
        {"streams.num.standby.replicas": "-1"},
        {"streams.session.timeout.ms": "1000"},
    ],
)
def test_settings_that_are_refused(own: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig):
        validate_group(CONFIG, own)


def test_the_bounds_are_settings() -> None:
    bounded = [row for row in CONFIG.definitions.group.values() if row.between is not None]
    assert len(bounded) == 13
    for row in bounded:
        assert row.between is not None
        low, high = row.between
        assert (CONFIG.get(low) if low else 0) < CONFIG.get(high)
    validate_group(CONFIG, {"share.auto.offset.reset": "by_duration:P1D", "share.isolation.level": "read_committed"})
