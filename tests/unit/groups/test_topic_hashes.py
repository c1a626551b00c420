"""The hash of the topics that a group reads; that it is Kafka's, see tests/golden/groups/test_racks.py."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import pytest

from logkernel.plugins.services.topic_hashes import NO_HASH, TopicHashes, group_hash, topic_hash
from logkernel.plugins.services.xxh3 import xxh3_64
from logkernel.testing.cluster_stub import ClusterStub

T, U = UUID(int=1 << 127 | 5), UUID(int=5)
BY_SIZE = [
    (0, 0x2D06800538D394C2),
    (1, 0xC44BDFF4074EECDB),
    (3, 0x37892F624F40B19C),
    (4, 0x5206B2E6B553FE7E),
    (8, 0xBCFE131FA6CB6952),
    (9, 0x95A8B7572F430FEF),
    (16, 0xF36D1380FC3D25FD),
    (17, 0x85B86FB76A78E347),
    (32, 0xC25EEB0879EBBFBF),
    (33, 0xE5D79F1EBB9D1991),
    (64, 0xC5A96DB31A91EE2D),
    (65, 0x6D3A9036EC6103A8),
    (96, 0x7AEC52D9B5F8B485),
    (97, 0x42E0EAABA00E5271),
    (128, 0xA05397602C0D7380),
    (129, 0xB0BE8561055FB150),
    (143, 0xDE80D0ED1100A0F3),
    (240, 0x2599F7836101B7C7),
    (241, 0xFA3E3F950B821A67),
    (256, 0x5D47B716AE4E6CC9),
    (1024, 0xA3115476086F73F1),
    (1025, 0x66B070BD27327C00),
    (1088, 0xC1E20C0FD2599AF8),
    (1089, 0x157CA606B29F7400),
    (2048, 0x5EDE5A805924185A),
    (2049, 0xDAB872B3402E3B55),
    (5000, 0x924C0D5E41418245),
]
"""Of the reference's library, of each way that an input can be mixed and of its borders."""


@pytest.mark.parametrize(("size", "value"), BY_SIZE)
def test_xxh3_as_its_reference_has_it(size: int, value: int) -> None:
    assert xxh3_64(bytes(number * number % 251 for number in range(size))) == value


def test_a_topic_is_told_by_its_name_id_size_and_racks() -> None:
    found = [
        topic_hash("t", T, 2, []),
        topic_hash("s", T, 2, []),
        topic_hash("t", U, 2, []),
        topic_hash("t", T, 3, []),
        topic_hash("t", T, 2, [["a"], []]),
        topic_hash("t", T, 2, [[], ["a"]]),
        topic_hash("t", T, 2, [["a", "a"], []]),
        topic_hash("t", T, 2, [["a"], ["a"]]),
        topic_hash("t", T, 2, [["a", "b"], []]),
    ]
    assert len(set(found)) == len(found)


def test_the_order_of_a_partitions_racks_does_not_count() -> None:
    """Kafka compares 16 bits at a time: the smile, of two surrogates, comes before U+FF5E."""
    ordered = topic_hash("t", T, 1, [["\U0001f642", "\uff5e"]])
    assert topic_hash("t", T, 1, [["\uff5e", "\U0001f642"]]) == ordered


def test_a_group_is_told_by_its_topics_in_order() -> None:
    assert group_hash([]) == NO_HASH
    assert group_hash([1, 2]) != group_hash([2, 1])
    assert {number >> 63 for number in (group_hash([number]) for number in range(20))} == {0, -1}, "it is signed"


class Asked(ClusterStub):
    """Counts what it is asked."""

    def __init__(self, topics: dict[str, int]) -> None:
        super().__init__(topics)
        self.asked: Counter[str] = Counter()

    def racks(self, topic: str) -> list[tuple[str, ...]]:
        self.asked[topic] += 1
        return [tuple(racks) for racks in super().racks(topic)]


def test_a_topic_is_hashed_once_until_it_changes() -> None:
    cluster = Asked({"t": 2, "u": 1})
    hashes = TopicHashes(cluster)
    first = hashes.of(["u", "t", "gone"])
    assert hashes.of(["t", "u"]) == first
    assert cluster.asked == {"t": 1, "u": 1}
    cluster.partition_racks["t"] = [["a"], ["b"]]
    assert hashes.of(["t", "u"]) == first, "nobody said so yet"
    hashes.forget(["t", "gone"])
    second = hashes.of(["t", "u"])
    assert second != first
    assert cluster.asked == {"t": 2, "u": 1}


def test_a_topic_that_comes_counts_at_once() -> None:
    cluster = ClusterStub({"t": 2})
    hashes = TopicHashes(cluster)
    alone = hashes.of(["t", "u"])
    cluster.topics["u"] = 1
    assert hashes.of(["t", "u"]) != alone
