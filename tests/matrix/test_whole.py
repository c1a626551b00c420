"""All plugins of a combination on one topic."""

from __future__ import annotations

import matrix_records as filling
from brokers_by_transport import BITS, Brokers
from kafka.partitioner import murmur2

PARTITIONS = (0, 1)
REPLICAS = [1, 2]


def test_a_topic_with_all_of_them(
    election: str, codec: str, cleanup: str, partitioner: str, brokers: Brokers, topic: str
) -> None:
    """Records are placed, compressed, cleaned, and kept or given up with the replica that alone has the last ones."""
    settings = {
        **filling.SETTINGS[cleanup], "election": election, "partitioner": partitioner,
        "compression_type": "uncompressed" if codec == "none" else codec,
    }  # fmt: skip
    brokers.create(topic, dict.fromkeys(PARTITIONS, REPLICAS), **settings)
    told = filling.fill(brokers, topic, PARTITIONS)
    old = [row for row in told if row.key != b"new"]
    if partitioner == "round_robin":
        placed = [row.partition for row in old[: len(filling.OLD)]]
        assert placed in ([0, 1] * 3, [1, 0] * 3)
    else:
        assert all(row.partition == (murmur2(row.key) & 0x7FFFFFFF) % len(PARTITIONS) for row in old)
    wanted = filling.left(cleanup, told)
    filling.until_left(brokers, topic, wanted)

    brokers.stop(2)
    brokers.until_in_sync(topic, 1)
    last = filling.write(brokers, topic, [(b"last", b"on one")], 0, 0)
    brokers.kill(1)
    brokers.start(2)
    if election == "unclean":
        for partition in PARTITIONS:
            assert brokers.until_led(topic, partition, other_than=1) == 2
    brokers.start(1)
    brokers.until_in_sync(topic)
    if election == "clean":
        wanted = sorted(wanted + last)
    filling.until_left(brokers, topic, wanted)  # who leads now may have to clean first
    for node in REPLICAS:
        for partition in PARTITIONS:
            assert {batch.codec for batch in brokers.batches(node, topic, partition)} == {BITS[codec]}
