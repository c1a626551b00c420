"""A fetch session with one broker (KIP-227): each side tells the other what has changed. Pure.

session epoch     request                                          an answer leads to
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
"""A session that fails so begins anew, at once."""
LAST_EPOCH: Final = 2**31 - 1
NEAR_BYTES: Final = 4 << 20
"""What is asked for at once of a broker that answers at once: it goes through the processor's caches."""
FAR_MS: Final = 5
"""Who waits longer than this, and than so many bytes take on a quick network, asks a broker that is far or slow ..."""
QUICK_BYTES_A_MS: Final = 512 << 10
"""... for twice as much: each question costs the way there and back."""
Wanted = tuple[int, int, int, UUID]
"""(offset, most bytes, leader epoch, topic id) of a partition, as the broker was told."""


@define(eq=False)
class Session:
    """See the module."""

    id: int = 0
    epoch: int = 0
    told: dict[TopicPartition, Wanted] = field(factory=dict)
    seen: dict[TopicPartition, tuple[int, int, int]] = field(factory=dict)
    """(high watermark, last stable offset, log start) as the broker last told them: it tells again what changes."""
    under_way: bool = False
    most_bytes: int = NEAR_BYTES
    """What one request asks for, in all its partitions."""

    def reset(self) -> None:
        self.id, self.epoch = 0, 0
        self.told.clear()
        self.seen.clear()

    def ask(self, wanted: dict[TopicPartition, Wanted]) -> tuple[list[FetchTopic], list[ForgottenTopic]]:
        """What a request says, so that just these are asked for from then on."""
        full, told = self.epoch == 0, self.told
        if not full and told.keys() == wanted.keys():
            moved, same = {}, True
            for name, row in wanted.items():
                before = told[name]
                if before[3] is not row[3] and before[3] != row[3]:
                    same = False
                if before != row:
                    moved[name] = row
            if same:
                self.told = wanted
                return _topics(moved), []
        changed = {name: row for name, row in wanted.items() if full or told.get(name) != row}
        dropped = {
            name: row[3] for name, row in told.items() if not full and (name not in wanted or wanted[name][3] != row[3])
        }
        self.told = wanted
        self.seen = {name: row for name, row in self.seen.items() if name in wanted and name not in dropped}
        return _topics(changed), _forgotten(dropped)

    def heard(self, asked_bytes: int, got_bytes: int, waited_ms: int, largest: int) -> None:
        """An answer came for which somebody waited; `largest` bounds what is asked for."""
        if got_bytes * 2 < asked_bytes:
            return  # there was no more
        if waited_ms > FAR_MS + got_bytes // QUICK_BYTES_A_MS:
            self.most_bytes = max(NEAR_BYTES, min(2 * self.most_bytes, largest))
        else:
            self.most_bytes = max(NEAR_BYTES, self.most_bytes // 2)

    def topic_of(self, topic_id: UUID) -> str:
        """The name that this id was asked for under; empty where it was not."""
        for name, row in self.told.items():
            if row[3] is topic_id or row[3] == topic_id:
                return name.topic
        return ""

    def answered(self, full: bool, session_id: int) -> None:
        """A request was answered without an error; `full`: the one that named all."""
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
