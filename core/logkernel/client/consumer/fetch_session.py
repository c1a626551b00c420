"""The client's half of an incremental fetch session with one broker (KIP-227). Pure.

session epoch     the request names                                the next epoch, after an answer
0                 all wanted partitions                            1 under the id that the broker gave; 0 without
1 and above       what is new or changed, and what is not wanted   the next; 0 after an error or a lost connection
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from attrs import define, field

from logkernel.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from logkernel.requests.data import FetchPartition, FetchTopic, ForgottenTopic
from logkernel.vocabulary import TopicPartition

SESSION_ERRORS: Final = (FetchSessionIdNotFound.code, InvalidFetchSessionEpoch.code, FetchSessionTopicIdError.code)
"""After one of these errors the client opens a new session at once."""
LAST_EPOCH: Final = 2**31 - 1
NEAR_BYTES: Final = 4 << 20
"""The size of one request to a broker that answers at once: this much stays in the processor's caches."""
FAR_MS: Final = 5
"""If an answer takes longer than this, plus the time that its bytes need on a fast network, the broker counts as far
..."""
QUICK_BYTES_A_MS: Final = 512 << 10
"""... and the next request asks for twice as much, as each request costs a round trip."""
Wanted = tuple[int, int, int, UUID]
"""(fetch offset, maximum bytes, leader epoch, topic id) of a partition."""


@define(eq=False)
class FetchSessionHandler:
    """Decides what each fetch request to one broker names (Kafka's class of the same name)."""

    id: int = 0
    epoch: int = 0
    requested: dict[TopicPartition, Wanted] = field(factory=dict)
    """The partitions that the session holds, as the last request named them."""
    seen: dict[TopicPartition, tuple[int, int, int]] = field(factory=dict)
    """(high watermark, last stable offset, log start) of the last answer; the broker sends only what changed."""
    under_way: bool = False
    most_bytes: int = NEAR_BYTES
    """The fetch.max.bytes of one request, over all partitions."""

    def reset(self) -> None:
        self.id, self.epoch = 0, 0
        self.requested.clear()
        self.seen.clear()

    def ask(self, wanted: dict[TopicPartition, Wanted]) -> tuple[list[FetchTopic], list[ForgottenTopic]]:
        """Return the (topics, forgotten topics) of the next request, after which the session holds just `wanted`."""
        full, requested = self.epoch == 0, self.requested
        if not full and requested.keys() == wanted.keys():
            moved, same = {}, True
            for name, row in wanted.items():
                before = requested[name]
                if before[3] is not row[3] and before[3] != row[3]:
                    same = False
                if before != row:
                    moved[name] = row
            if same:
                self.requested = wanted
                return _topics(moved), []
        changed = {name: row for name, row in wanted.items() if full or requested.get(name) != row}
        dropped = {
            name: row[3]
            for name, row in requested.items()
            if not full and (name not in wanted or wanted[name][3] != row[3])
        }
        self.requested = wanted
        self.seen = {name: row for name, row in self.seen.items() if name in wanted and name not in dropped}
        return _topics(changed), _forgotten(dropped)

    def heard(self, asked_bytes: int, got_bytes: int, waited_ms: int, largest: int) -> None:
        """Adapt `most_bytes` to an answer after `waited_ms`; it never exceeds `largest`."""
        if got_bytes * 2 < asked_bytes:
            return  # there was no more
        if waited_ms > FAR_MS + got_bytes // QUICK_BYTES_A_MS:
            self.most_bytes = max(NEAR_BYTES, min(2 * self.most_bytes, largest))
        else:
            self.most_bytes = max(NEAR_BYTES, self.most_bytes // 2)

    def topic_of(self, topic_id: UUID) -> str:
        """Return the name of a topic in the session; empty if the id is not in it."""
        for name, row in self.requested.items():
            if row[3] is topic_id or row[3] == topic_id:
                return name.topic
        return ""

    def answered(self, full: bool, session_id: int) -> None:
        """Note an answer without an error. `full`: the request opened the session."""
        if full:
            self.id, self.epoch = session_id, int(session_id != 0)
        elif session_id != self.id:
            self.reset()
        else:
            self.epoch = self.epoch + 1 if self.epoch < LAST_EPOCH else 1


def _topics(rows: Mapping[TopicPartition, Wanted]) -> list[FetchTopic]:
    found: dict[str, FetchTopic] = {}
    for name, (offset, max_bytes, epoch, topic_id) in rows.items():
        topic = found.get(name.topic)
        if topic is None:
            topic = found[name.topic] = FetchTopic(name.topic, [], topic_id)
        topic.partitions.append(FetchPartition(name.partition, offset, max_bytes, -1, epoch))
    return list(found.values())


def _forgotten(rows: Mapping[TopicPartition, UUID]) -> list[ForgottenTopic]:
    found: dict[tuple[str, UUID], list[int]] = {}
    for name, topic_id in rows.items():
        found.setdefault((name.topic, topic_id), []).append(name.partition)
    return [ForgottenTopic(topic, indexes, topic_id) for (topic, topic_id), indexes in found.items()]
