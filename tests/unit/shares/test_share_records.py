"""The bytes of share state and of share groups, and the partition that keeps them, against Apache Kafka's own.

GOLDEN and SHARDS were printed once by Java: the generated classes of kafka-share-coordinator and
kafka-group-coordinator 4.3.1, written with `MessageUtil.toVersionPrefixedByteBuffer` and
`toCoordinatorTypePrefixedByteBuffer`, and `Utils.abs(String.hashCode()) % 50` of the share-partition's text.
"""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

import pytest

from logkernel.errors import CorruptMessage, InvalidRequest
from logkernel.plugins.services.shares.members import records as members
from logkernel.plugins.services.shares.members.records import Kind
from logkernel.plugins.services.shares.state import records as state
from logkernel.plugins.services.shares.state.batches import Batch
from logkernel.plugins.services.shares.state.service import shard_key
from logkernel.requests.sharding import shard_of

GOLDEN = {
    "snapshot key": "0000000367c3a9112233445566778899aabbccddeeff0000000003",
    "update key": "0001000367c3a9112233445566778899aabbccddeeff0000000003",
    "snapshot": (
        "000000000004000000050000000600000000000000070000018bcfe568000000018bcfe56801030000000000000007000000000000"
        "000902000100000000000000000a000000000000000a0000040001000400000009"
    ),
    "snapshot, count not known": "0000000000000000000000000000ffffffffffffffff000000000000000100000000000000020100",
    "update": "00000000000400000006ffffffffffffffff02000000000000000700000000000000090400050001000400000002",
    "member key": "000a000367c3a900026d31",
    "group key": "000b000367c3a9",
    "target key": "000c000367c3a9",
    "target member key": "000d000367c3a900026d31",
    "current key": "000e000367c3a900026d31",
    "state key": "000f000367c3a9",
    "member": "0000027202630b2f3132372e302e302e31030261026200",
    "member without rack": "000000026302680100",
    "group": "000000000003fffffffffffffffb00",
    "target": "0000000000030100080000018bcfe56800",
    "target without time": "00000000000300",
    "target member": "000002112233445566778899aabbccddeeff000300000000000000020000",
    "current": "000000000003000000020002112233445566778899aabbccddeeff000300000000000000020000",
    "state": (
        "000002112233445566778899aabbccddeeff00026102000000010002112233445566778899aabbccddeeff00026103000000000000"
        "00020002112233445566778899aabbccddeeff00027a0000"
    ),
}
SHARDS = {
    ("g", 0): 6,
    ("g", 7): 49,
    ("gé", 0): 49,
    ("gé", 7): 42,
    ("😀", 0): 28,
    ("😀", 7): 35,
    ("orders-share", 0): 30,
    ("orders-share", 7): 23,
}
ID = UUID("11223344-5566-7788-99aa-bbccddeeff00")
KEY = state.Key("gé", ID, 3)
PLACES = {ID: (0, 2)}

STATE_VALUES: dict[str, Any] = {
    "snapshot": state.Snapshot(
        4, 5, 6, 7, 1_700_000_000_000, 1_700_000_000_001, (Batch(7, 9, 2, 1), Batch(10, 10, 0, 4)), 9
    ),
    "snapshot, count not known": state.Snapshot(0, 0, 0, -1, 1, 2),
    "update": state.Update(4, 6, -1, (Batch(7, 9, 4, 5),), 2),
}
MEMBER_KEYS = {
    "member key": (Kind.MEMBER, "m1"),
    "group key": (Kind.GROUP, ""),
    "target key": (Kind.TARGET, ""),
    "target member key": (Kind.TARGET_MEMBER, "m1"),
    "current key": (Kind.CURRENT, "m1"),
    "state key": (Kind.STATE, ""),
}
MEMBER_VALUES: dict[str, tuple[Kind, members.Value]] = {
    "member": (Kind.MEMBER, members.MemberValue("r", "c", "/127.0.0.1", ("a", "b"))),
    "member without rack": (Kind.MEMBER, members.MemberValue(None, "c", "h", ())),
    "group": (Kind.GROUP, members.GroupValue(3, -5)),
    "target": (Kind.TARGET, members.TargetValue(3, 1_700_000_000_000)),
    "target without time": (Kind.TARGET, members.TargetValue(3)),
    "target member": (Kind.TARGET_MEMBER, members.TargetMemberValue(PLACES)),
    "current": (Kind.CURRENT, members.CurrentValue(3, 2, PLACES)),
    "state": (Kind.STATE, members.StateValue({ID: ("a", (1,))}, {ID: ("a", (0, 2))}, {ID: "z"})),
}


def test_keys_of_share_state() -> None:
    for kind, name in ((state.SNAPSHOT, "snapshot key"), (state.UPDATE, "update key")):
        assert state.encode_key(kind, KEY).hex() == GOLDEN[name]
        assert state.decode_key(bytes.fromhex(GOLDEN[name])) == (kind, KEY)
    assert state.decode_key(b"\x00\x02\x00\x00") is None


@pytest.mark.parametrize("name", STATE_VALUES)
def test_values_of_share_state(name: str) -> None:
    snapshot = name.startswith("snapshot")
    encode: Any = state.encode_snapshot if snapshot else state.encode_update
    decode: Any = state.decode_snapshot if snapshot else state.decode_update
    assert encode(STATE_VALUES[name]).hex() == GOLDEN[name]
    assert decode(bytes.fromhex(GOLDEN[name])) == STATE_VALUES[name]


@pytest.mark.parametrize("name", MEMBER_KEYS)
def test_keys_of_share_groups(name: str) -> None:
    kind, member = MEMBER_KEYS[name]
    key = members.Key(kind, "gé", member)
    assert members.encode_key(key).hex() == GOLDEN[name]
    assert members.decode_key(bytes.fromhex(GOLDEN[name])) == key


@pytest.mark.parametrize("name", MEMBER_VALUES)
def test_values_of_share_groups(name: str) -> None:
    kind, value = MEMBER_VALUES[name]
    assert members.encode_value(value).hex() == GOLDEN[name]
    assert members.decode_value(kind, bytes.fromhex(GOLDEN[name])) == value


@pytest.mark.parametrize(("group", "partition"), SHARDS)
def test_the_shard_of_a_share_partition(group: str, partition: int) -> None:
    assert shard_of(shard_key(state.Key(group, ID, partition)), 50) == SHARDS[group, partition]


def test_other_kinds_of_group_are_known_by_their_keys() -> None:
    assert members.decode_key(b"\x00\x02\x00\x01g") == members.Key(2, "g")
    assert members.decode_key(b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00") is None


@pytest.mark.parametrize("name", [*STATE_VALUES, *MEMBER_VALUES])
def test_whatever_is_cut_off_is_corrupt(name: str) -> None:
    data = bytes.fromhex(GOLDEN[name])
    decode: Any = state.decode_update if name == "update" else state.decode_snapshot
    if name in MEMBER_VALUES:
        decode = partial(members.decode_value, MEMBER_VALUES[name][0])
    for size in range(len(data)):
        with pytest.raises(CorruptMessage):
            decode(data[:size])


def test_an_unknown_version_and_an_impossible_count_are_corrupt() -> None:
    with pytest.raises(CorruptMessage, match="version 1"):
        state.decode_update(bytes.fromhex("0001" + GOLDEN["update"][4:]))
    with pytest.raises(CorruptMessage, match="elements"):
        members.decode_value(Kind.TARGET_MEMBER, bytes.fromhex("0000ffffffff0f"))


def test_a_text_that_cannot_be_kept() -> None:
    with pytest.raises(InvalidRequest):
        members.encode_key(members.Key(Kind.GROUP, "x" * 32_768))
