"""The hash that a running Apache Kafka kept of groups' topics, before and after a move (`record_racks.py`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from logkernel.plugins.services.groups.consumer import records as consumer_records
from logkernel.plugins.services.groups.streams import records as streams_records
from logkernel.plugins.services.shares.members import records as share_records
from logkernel.plugins.services.topic_hashes import group_hash, topic_hash

ROWS = [line.split("\t") for line in Path(__file__).with_name("kafka-4.3.1-racks.tsv").read_text("utf-8").splitlines()]
RACK_OF = {int(row[1]): row[2] for row in ROWS if row[0] == "broker" and row[2] != "-"}
TOPICS = {(step, name): (UUID(topic_id), places) for kind, step, name, topic_id, places in
          (row for row in ROWS if row[0] == "topic")}  # fmt: skip
GROUPS = {(step, kind): (topics.split(","), bytes.fromhex(value)) for _, step, kind, topics, value in
          (row for row in ROWS if row[0] == "group")}  # fmt: skip


def of_share(value: bytes) -> int:
    found = share_records.decode_value(share_records.Kind.GROUP, value)
    assert isinstance(found, share_records.GroupValue)
    return found.metadata_hash


HASH_IN: dict[str, Callable[[bytes], int]] = {
    "consumer": lambda value: consumer_records.decode_group(value)[1],
    "share": of_share,
    "streams": lambda value: streams_records.decode_group(value).metadata_hash,
}


def ours(step: str, topic: str) -> int:
    topic_id, places = TOPICS[step, topic]
    rows = [[RACK_OF[node] for node in map(int, row.split(",")) if node in RACK_OF] for row in places.split(";")]
    return topic_hash(topic, topic_id, len(rows), rows)


def test_each_kind_of_groups_is_recorded_before_and_after() -> None:
    assert GROUPS.keys() == {(step, kind) for step in ("1", "2") for kind in HASH_IN}


@pytest.mark.parametrize(("step", "kind"), GROUPS)
def test_our_hash_is_kafkas(step: str, kind: str) -> None:
    topics, value = GROUPS[step, kind]
    assert group_hash([ours(step, topic) for topic in sorted(topics)]) == HASH_IN[kind](value)


@pytest.mark.parametrize("kind", HASH_IN)
def test_a_move_alone_made_a_new_one(kind: str) -> None:
    before, after = (GROUPS[step, kind][1] for step in ("1", "2"))
    assert HASH_IN[kind](before) != HASH_IN[kind](after)
    assert {TOPICS["1", name][0] for name in GROUPS["1", kind][0]} == {
        TOPICS["2", name][0] for name in GROUPS["2", kind][0]
    }
