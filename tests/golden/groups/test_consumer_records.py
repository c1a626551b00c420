"""Records of KIP-848 groups, and what classic consumers carry, as Apache Kafka's own classes write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from golden.recorded import hex_rows

from logkernel.errors import CorruptMessage
from logkernel.plugins.services.groups.by_epochs.values import NO_TIME, MemberState, RecordKey
from logkernel.plugins.services.groups.consumer import records, wire
from logkernel.plugins.services.groups.consumer.records import (
    ClassicFacts,
    CurrentFacts,
    MemberFacts,
    ResolvedRegex,
)

GOLDEN = hex_rows(Path(__file__).with_name("kafka-4.3.1.tsv"))
STABLE, UNREVOKED, UNRELEASED, _ = MemberState
T, U = UUID(int=(1 << 64) | 2), UUID(int=(3 << 64) | 4)
G = "gé"
FULL = MemberFacts("i1", "r1", "c1", "/127.0.0.1", ("a", "orders"), "x.*", 300_000, "range")
CLASSIC = MemberFacts(None, None, "c1", "/h", ("a",), None, 60_000, None, ClassicFacts(45_000, (("range", b"\0\1\2"),)))
OWNED = (("a", 0), ("a", 2), ("orders", 1))

KEYS = [
    ("metadata key", RecordKey(records.GROUP, G)),
    ("partition metadata key", RecordKey(records.PARTITIONS, G)),
    ("member key", RecordKey(records.MEMBER, G, "m1")),
    ("target metadata key", RecordKey(records.TARGET_EPOCH, G)),
    ("target member key", RecordKey(records.TARGET, G, "m1")),
    ("current key", RecordKey(records.CURRENT, G, "m1")),
    ("regex key", RecordKey(records.REGEX, G, "orders.*")),
]
VALUES: list[tuple[str, Callable[[bytes], Any], Callable[..., bytes], tuple[Any, ...]]] = [
    ("metadata", records.decode_group, records.encode_group, (7, 0x1122334455667788)),
    ("metadata plain", records.decode_group, records.encode_group, (7, records.NO_HASH)),
    ("member", records.decode_member, records.encode_member, (FULL,)),
    ("member bare", records.decode_member, records.encode_member, (MemberFacts(),)),
    ("member classic", records.decode_member, records.encode_member, (CLASSIC,)),
    ("target metadata", records.decode_target_epoch, records.encode_target_epoch, (9, 1_700_000_000_000)),
    ("target metadata plain", records.decode_target_epoch, records.encode_target_epoch, (9, NO_TIME)),
    (
        "target member",
        records.decode_target,
        records.encode_target,
        (frozenset({(T, 0), (T, 1), (T, 5), (U, 2)}),),
    ),
    ("target member empty", records.decode_target, records.encode_target, (frozenset(),)),
    (
        "current",
        records.decode_current,
        records.encode_current,
        (CurrentFacts(9, 8, UNREVOKED, {(T, 0): 7, (T, 1): 9}, {(U, 3): 8}),),
    ),
    (
        "current left",
        records.decode_current,
        records.encode_current,
        (CurrentFacts(-2, 8, UNRELEASED, {}, {}),),
    ),
    (
        "regex",
        records.decode_regex,
        records.encode_regex,
        (ResolvedRegex(("orders1", "orders2"), 12, 1_700_000_000_000),),
    ),
]


@pytest.mark.parametrize(("name", "key"), KEYS, ids=[name for name, _ in KEYS])
def test_keys_are_kafkas_bytes(name: str, key: RecordKey) -> None:
    assert records.key(*key) == GOLDEN[name]
    assert records.decode_key(GOLDEN[name]) == key


@pytest.mark.parametrize(("name", "decode", "encode", "meant"), VALUES, ids=[row[0] for row in VALUES])
def test_values_are_kafkas_bytes(name: str, decode: Any, encode: Any, meant: tuple[Any, ...]) -> None:
    assert encode(*meant) == GOLDEN[name]
    assert decode(GOLDEN[name]) == (meant[0] if len(meant) == 1 else meant)
    for size in range(len(GOLDEN[name])):
        with pytest.raises(CorruptMessage):
            decode(GOLDEN[name][:size])
    with pytest.raises(CorruptMessage, match="version 1"):
        decode(b"\0\1" + GOLDEN[name][2:])


def test_a_value_of_an_older_kafka_has_no_epochs_of_assignments() -> None:
    assert records.decode_current(GOLDEN["current no epochs"]) == CurrentFacts(9, 8, STABLE, {(T, 0): 9, (T, 1): 9}, {})


def test_a_member_as_the_coordinator_writes_it() -> None:
    """No classic protocol by a tag that says so, and no expression by an empty one: the shard could not be loaded."""
    wanted = MemberFacts(None, None, "c1", "/h", ("a",), None, 300_000, None)
    assert records.decode_member(GOLDEN["member of the coordinator"]) == wanted
    assert records.decode_member(GOLDEN["member untagged"]) == wanted, "as this broker wrote it once"


def test_kinds_of_others_are_passed_over() -> None:
    for kind in (0, 1, 2, 9, 15, 17):
        assert records.decode_key(kind.to_bytes(2, "big") + b"\0\1g\0\1m") is None


@pytest.mark.parametrize("version", range(4))
def test_subscriptions_of_every_version_are_decoded(version: int) -> None:
    data = GOLDEN[f"subscription v{version}"]
    found = wire.decode_subscription(data)
    assert (found.version, found.topics) == (version, ("a", "orders"))
    assert found.owned == (OWNED if version else ())
    assert found.rack_id == ("r1" if version == 3 else None)
    later = wire.decode_subscription(b"\0\7" + GOLDEN["subscription v3"][2:] + b"more")
    assert (later.version, later.owned) == (3, OWNED)
    for size in range(len(data)):
        with pytest.raises(CorruptMessage):
            wire.decode_subscription(data[:size])


@pytest.mark.parametrize("version", range(4))
def test_assignments_of_every_version_are_kafkas_bytes(version: int) -> None:
    data = GOLDEN[f"assignment v{version}"]
    assert wire.encode_assignment(version, {"a": [0, 2], "orders": [1]}) == data
    assert wire.decode_assignment(data) == OWNED
    assert wire.decode_assignment(b"") == ()
