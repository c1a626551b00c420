"""Acknowledgements: checked, put to their share-partitions, answered when all of them are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from logkernel.errors import InvalidRecordState, InvalidRequest, KafkaError, UnknownTopicId

from ..state.records import Key
from .leader import Phase, SharePartitionLeader
from .partition import Event

RENEW = Event.RENEW


class Acks:
    """The word of one member in one request; `done` is called once, when the fate of every partition is known."""

    def __init__(self, done: Callable[[], None]) -> None:
        self.results: dict[tuple[UUID, int], tuple[int, str | None]] = {}
        """(topic id, partition) → error code and text, in the order of the request."""
        self._missing = 1
        self._done = done

    def take(
        self,
        group_id: str,
        member: str,
        topics: Iterable[Any],
        leaders: dict[Key, SharePartitionLeader],
        known: Callable[[UUID], bool],
        most: int,
        renews: bool,
        now_ms: int,
    ) -> list[SharePartitionLeader]:
        """Put every batch to its share-partition; returns those that have something to write now.

        `most` is the largest type that this request may have; `renews`: whether the group's locks can be renewed.
        """
        touched: list[SharePartitionLeader] = []
        for topic in topics:
            for row in topic.partitions:
                if not row.acknowledgement_batches:
                    continue
                place = (topic.topic_id, row.partition_index)
                self.results[place] = (0, None)
                try:
                    check(row.acknowledgement_batches, most)
                    if not renews and any(RENEW in batch.acknowledge_types for batch in row.acknowledgement_batches):
                        raise InvalidRecordState("share.renew.acknowledge.enable=false: locks are not renewed")
                    if not known(topic.topic_id):
                        raise UnknownTopicId(f"no topic has id {topic.topic_id}")
                    leader = leaders.get(Key(group_id, *place))
                    if leader is None or leader.phase is not Phase.READY:
                        raise InvalidRecordState("nothing of this share-partition is acquired")
                    if put(leader, member, row.acknowledgement_batches, now_ms):
                        self._missing += 1
                        leader.wait(self._slot(place))
                    touched.append(leader)
                except KafkaError as error:
                    self.results[place] = (error.code, str(error))
        return touched

    def _slot(self, place: tuple[UUID, int]) -> Callable[[int], None]:
        def kept(code: int) -> None:
            if code:
                self.results[place] = (code, "the acknowledgement could not be kept")
            self.part_known()

        return kept

    def part_known(self) -> None:
        """One of those that were waited for is known; the request itself counts as one, so that it is read first."""
        self._missing -= 1
        if not self._missing:
            self._done()


def put(leader: SharePartitionLeader, member: str, batches: Iterable[Any], now_ms: int) -> bool:
    """All batches, or none where one is refused. Returns whether there is something to wait for."""
    mark = leader.partition.mark()
    try:
        for batch in batches:
            leader.partition.acknowledge(member, batch.first_offset, batch.last_offset, batch.acknowledge_types, now_ms)
    except KafkaError:
        leader.partition.undo(mark)
        raise
    return leader.partition.mark() > mark


def check(batches: Iterable[Any], most: int) -> None:
    """The form alone. Raises `InvalidRequest`."""
    before = -1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if not before < first <= last:
            raise InvalidRequest(f"acknowledged offsets {first} to {last} are not ascending after {before}")
        if len(types) not in (1, last - first + 1):
            raise InvalidRequest(f"{len(types)} acknowledge types for {last - first + 1} offsets; give 1, or one each")
        if not all(0 <= kind <= most for kind in types):
            raise InvalidRequest(f"acknowledge types {sorted(set(types))}: not all of them are allowed here")
        before = last
