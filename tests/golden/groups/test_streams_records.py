"""Records of Streams groups as Apache Kafka's own classes write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from golden.recorded import hex_rows

from logkernel.errors import CorruptMessage
from logkernel.plugins.services.groups.by_epochs.values import NO_TIME, MemberState, RecordKey
from logkernel.plugins.services.groups.streams import records
from logkernel.plugins.services.groups.streams.records import (
    CurrentFacts,
    GroupFacts,
    MemberFacts,
    Role,
)
from logkernel.plugins.services.groups.streams.topology import CopartitionGroup, InternalTopic, Subtopology, Topology

GOLDEN = hex_rows(Path(__file__).with_name("kafka-4.3.1-streams.tsv"))
UNREVOKED = MemberState.UNREVOKED
G = "gé"
A, S, W = Role
STANDBYS = (("num.standby.replicas", "1"),)
REPARTITION = "app-by-word-repartition"
TOPOLOGY = Topology(
    3,
    (
        Subtopology("0", ("in", "more"), ("x.*",), (), (REPARTITION,), (), (CopartitionGroup((0, 1), (0,), ()),)),
        Subtopology(
            "1",
            state_changelog_topics=(InternalTopic("app-store-changelog", 0, 1, (("cleanup.policy", "compact"),)),),
            repartition_source_topics=(InternalTopic(REPARTITION, 4),),
        ),
    ),
)

KEYS = [
    ("group key", RecordKey(records.GROUP, G)),
    ("member key", RecordKey(records.MEMBER, G, "m1")),
    ("target epoch key", RecordKey(records.TARGET_EPOCH, G)),
    ("target key", RecordKey(records.TARGET, G, "m1")),
    ("current key", RecordKey(records.CURRENT, G, "m1")),
    ("topology key", RecordKey(records.TOPOLOGY, G)),
]
VALUES: list[tuple[str, Callable[[bytes], Any], Callable[..., bytes], tuple[Any, ...]]] = [
    ("group", records.decode_group, records.encode_group, (GroupFacts(7, 0x1122334455667788, 3, STANDBYS),)),
    ("group not ready", records.decode_group, records.encode_group, (GroupFacts(7),)),
    (
        "member",
        records.decode_member,
        records.encode_member,
        (MemberFacts("i1", "r1", "c1", "/127.0.0.1", 300_000, 3, "p1", ("h", 65_000), (("zone", "z1"),)),),
    ),
    ("member bare", records.decode_member, records.encode_member, (MemberFacts(),)),
    ("target epoch", records.decode_target_epoch, records.encode_target_epoch, (9, 1_700_000_000_000)),
    ("target epoch plain", records.decode_target_epoch, records.encode_target_epoch, (9, NO_TIME)),
    (
        "target",
        records.decode_target,
        records.encode_target,
        (frozenset({(A, "0", 0), (A, "0", 2), (A, "1", 1), (S, "1", 0), (W, "1", 2)}),),
    ),
    ("target empty", records.decode_target, records.encode_target, (frozenset(),)),
    (
        "current",
        records.decode_current,
        records.encode_current,
        (
            CurrentFacts(
                9,
                8,
                UNREVOKED,
                {(A, "0", 0): 7, (A, "0", 2): 9, (S, "1", 0): 0},
                {(A, "1", 1): 8, (W, "1", 2): 0},
            ),
        ),
    ),
]


@pytest.mark.parametrize(("name", "key"), KEYS, ids=[name for name, _ in KEYS])
def test_keys_are_kafkas_bytes(name: str, key: RecordKey) -> None:
    assert records.key(*key) == GOLDEN[name]
    assert records.decode_key(GOLDEN[name]) == key


@pytest.mark.parametrize(("name", "decode", "encode", "meant"), VALUES, ids=[row[0] for row in VALUES])
def test_values_are_kafkas_bytes(name: str, decode: Any, encode: Any, meant: tuple[Any, ...]) -> None:
    assert encode(*meant) == GOLDEN[name]
    found = decode(GOLDEN[name])
    assert (found if len(meant) > 1 else (found,)) == meant


def test_a_topology_is_kafkas_bytes() -> None:
    assert records.encode_topology(TOPOLOGY) == GOLDEN["topology"]
    found = records.decode_topology(GOLDEN["topology"])
    assert found.is_same(TOPOLOGY)
    assert not found.is_same(evolve(TOPOLOGY, epoch=4))
    assert not found.is_same(evolve(TOPOLOGY, subtopologies=TOPOLOGY.subtopologies[:1]))


def test_what_kafka_42_left_out_is_read() -> None:
    assert records.decode_group(GOLDEN["group of 4.2"]) == GroupFacts(7, 5, 0)
    assert records.decode_current(GOLDEN["current no epochs"]).assigned == {(A, "0", 0): 9, (A, "1", 2): 9}


@pytest.mark.parametrize("name", [*(row[0] for row in VALUES), "topology"])
def test_cut_values_are_refused(name: str) -> None:
    decode = {row[0]: row[1] for row in VALUES}.get(name, records.decode_topology)
    value = GOLDEN[name]
    for size in range(len(value)):
        with pytest.raises(CorruptMessage):
            decode(value[:size])
    with pytest.raises(CorruptMessage, match="version 1"):
        decode(b"\0\1" + value[2:])


def test_epochs_that_do_not_fit_their_tasks_are_refused() -> None:
    value = GOLDEN["current"].replace(bytes.fromhex("0009030000000700000009"), bytes.fromhex("00050200000007"))
    assert value != GOLDEN["current"]
    with pytest.raises(CorruptMessage, match="1 epochs of 2 tasks"):
        records.decode_current(value)
