"""The hash of the topics that a group reads; that it is Kafka's, see tests/golden/groups/test_racks.py."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from logkernel.plugins.services.topic_hashes import NO_HASH, TopicHashes, group_hash, topic_hash
from logkernel.testing.cluster_stub import ClusterStub

T, U = UUID(int=1 << 127 | 5), UUID(int=5)


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
