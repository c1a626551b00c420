"""The bytes of __consumer_offsets, and the partition that keeps a group, against Apache Kafka's own.

GOLDEN and HASHES were printed once by Java: the generated classes `OffsetCommitKey`, `OffsetCommitValue`,
`GroupMetadataKey` and `GroupMetadataValue` of kafka-group-coordinator 4.3.1, written with
`MessageUtil.toVersionPrefixedByteBuffer(version, message)`, and `String.hashCode()` on Java 17.
"""

from __future__ import annotations

import pytest

from logkernel.errors import CorruptMessage, InvalidRequest
from logkernel.plugins.services.groups.records import (
    CommittedOffset,
    GroupKey,
    GroupMetadata,
    MemberMetadata,
    OffsetKey,
    decode_group,
    decode_key,
    decode_offset,
    encode_group,
    encode_offset,
    group_key,
    offset_key,
)
from logkernel.requests.sharding import java_hash, shard_of

GOLDEN = {
    "offset key": "0001000367c3a900066f726465727300000007",
    "group key": "0002000367c3a9",
    "offset value v0": "00000000011f71fb04cb00046e6f74650000018bcfe56800",
    "offset value v1": "00010000011f71fb04cb00046e6f74650000018bcfe568000000018bcfe65260",
    "offset value v2": "00020000011f71fb04cb00046e6f74650000018bcfe56800",
    "offset value v3": "00030000011f71fb04cb0000000500046e6f74650000018bcfe56800",
    "offset value v4": "00040000011f71fb04cb00000005056e6f74650000018bcfe5680001001000000000000000010000000000000002",
    "offset value v4 no id": "00040000000000000009ffffffff01000000000000000300",
    "group value v0": (
        "00000008636f6e73756d657200000003000572616e676500026d310000000200026d3100026331000a2f3132372e302e"
        "302e310000afc8000000020102000000010300026d3200026332000a2f3132372e302e302e310000afc8000000020102"
        "00000000"
    ),
    "group value v1": (
        "00010008636f6e73756d657200000003000572616e676500026d310000000200026d3100026331000a2f3132372e302e"
        "302e31000493e00000afc8000000020102000000010300026d3200026332000a2f3132372e302e302e31000493e00000"
        "afc800000002010200000000"
    ),
    "group value v2": (
        "00020008636f6e73756d657200000003000572616e676500026d310000018bcfe568010000000200026d310002633100"
        "0a2f3132372e302e302e31000493e00000afc8000000020102000000010300026d3200026332000a2f3132372e302e30"
        "2e31000493e00000afc800000002010200000000"
    ),
    "group value v3": (
        "00030008636f6e73756d657200000003000572616e676500026d310000018bcfe568010000000200026d310002693100"
        "026331000a2f3132372e302e302e31000493e00000afc8000000020102000000010300026d32ffff00026332000a2f31"
        "32372e302e302e31000493e00000afc800000002010200000000"
    ),
    "group value v4": (
        "000409636f6e73756d6572000000030672616e6765036d310000018bcfe5680103036d310369310363310b2f3132372e"
        "302e302e31000493e00000afc8030102020300036d32000363320b2f3132372e302e302e31000493e00000afc8030102"
        "010000"
    ),
    "group value empty v3": "00030008636f6e73756d657200000004ffffffff0000018bcfe5680200000000",
}

HASHES = [
    ("", 0, 0),
    ("a", 97, 47),
    ("my-group", -1906497762, 12),
    ("g\u00e9", 3426, 26),
    ("polygenelubricants", -2147483648, 0),
    ("\ud83d\ude00-group", -1198440043, 43),
    ("caf\u00e9-\ud83d\udc69\u200d\ud83d\udcbb", -933765389, 39),
    ("console-consumer-12345", 158455506, 6),
    ("\uffff\ud83d\ude80", 64752162, 12),
    ("zookeeper-\u65e5\u672c", -1109386232, 32),
    ("DESIGNING WORKHOUSES", -2147483648, 0),
]
"""(group id, hashCode, partition of 50)."""

OFFSET_MS, STATE_MS = 1_700_000_000_000, 1_700_000_000_001


def golden(name: str) -> bytes:
    return bytes.fromhex(GOLDEN[name])


def member(number: int, instance_id: str | None, assignment: bytes, rebalance_ms: int = 300_000) -> MemberMetadata:
    host = "/127.0.0.1"
    return MemberMetadata(f"m{number}", instance_id, f"c{number}", host, rebalance_ms, 45_000, b"\1\2", assignment)


GROUP = GroupMetadata("consumer", 3, "range", "m1", STATE_MS, (member(1, "i1", b"\3"), member(2, None, b"")))


def test_keys_are_kafkas() -> None:
    assert offset_key("gé", "orders", 7) == golden("offset key")
    assert group_key("gé") == golden("group key")
    assert decode_key(golden("offset key")) == OffsetKey("gé", "orders", 7)
    assert decode_key(golden("group key")) == GroupKey("gé")


@pytest.mark.parametrize("version", [3, 4, 17])
def test_keys_of_other_kinds_of_group_are_not_ours(version: int) -> None:
    assert decode_key(version.to_bytes(2, "big") + b"\0\1g") is None


def test_offset_values_are_written_as_kafka_writes_them() -> None:
    entry = CommittedOffset(1_234_567_890_123, 5, "note", OFFSET_MS)
    assert encode_offset(entry) == golden("offset value v3")
    entry.expire_ms = OFFSET_MS + 60_000
    assert encode_offset(entry) == golden("offset value v1")


@pytest.mark.parametrize("version", range(5))
def test_offset_values_of_every_version_are_read(version: int) -> None:
    expire_ms = OFFSET_MS + 60_000 if version == 1 else -1
    expected = CommittedOffset(1_234_567_890_123, 5 if version >= 3 else -1, "note", OFFSET_MS, expire_ms)
    assert decode_offset(golden(f"offset value v{version}")) == expected


def test_offset_value_4_without_a_topic_id_is_read() -> None:
    assert decode_offset(golden("offset value v4 no id")) == CommittedOffset(9, -1, "", 3)


def test_group_values_are_written_as_kafka_writes_them() -> None:
    assert encode_group(GROUP) == golden("group value v3")
    empty = GroupMetadata("consumer", 4, None, None, OFFSET_MS + 2, ())
    assert encode_group(empty) == golden("group value empty v3")
    assert decode_group(golden("group value empty v3")) == empty


@pytest.mark.parametrize("version", range(5))
def test_group_values_of_every_version_are_read(version: int) -> None:
    found = decode_group(golden(f"group value v{version}"))
    rebalance_ms = 300_000 if version >= 1 else 45_000
    members = (member(1, "i1" if version >= 3 else None, b"\3", rebalance_ms), member(2, None, b"", rebalance_ms))
    assert found == GroupMetadata("consumer", 3, "range", "m1", STATE_MS if version >= 2 else -1, members)


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_whatever_is_cut_off_is_corrupt(name: str) -> None:
    whole = golden(name)
    read = decode_key if "key" in name else decode_offset if "offset" in name else decode_group
    for size in range(len(whole)):
        with pytest.raises(CorruptMessage):
            read(whole[:size])


def test_counts_and_versions_are_not_believed() -> None:
    head = golden("group value empty v3")[:-4]
    for count in (-1, 1, 2**31 - 1):
        with pytest.raises(CorruptMessage):
            decode_group(head + count.to_bytes(4, "big", signed=True))
    for version in (-1, 5):
        with pytest.raises(CorruptMessage, match="of version"):
            decode_offset(version.to_bytes(2, "big", signed=True) + bytes(30))
    with pytest.raises(CorruptMessage, match="UTF-8"):
        decode_key(b"\0\2\0\1\xff")
    with pytest.raises(CorruptMessage, match="null"):
        decode_key(b"\0\2\xff\xff")


def test_a_text_that_does_not_fit_is_refused() -> None:
    assert len(group_key("x" * 32_767)) == 2 + 2 + 32_767
    with pytest.raises(InvalidRequest):
        group_key("x" * 32_768)


@pytest.mark.parametrize(("group_id", "expected", "shard"), HASHES)
def test_a_group_lies_where_kafka_puts_it(group_id: str, expected: int, shard: int) -> None:
    assert java_hash(group_id) == expected
    assert shard_of(group_id, 50) == shard
