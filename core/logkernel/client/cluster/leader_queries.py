"""Questions about partitions that only their leaders answer: offsets by time, ends of epochs. Pure.

One question covers many partitions. Each is asked of its leader as the metadata has it, again after a retriable
error with a growing wait, until it is answered, refused for good, or the deadline has passed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define

from logkernel.client.cluster.calls import ClientCore
from logkernel.client.cluster.permissions import explained
from logkernel.errors import KafkaError, NetworkException, RequestTimedOut, UnsupportedVersion, error_for
from logkernel.peer.backoff import Backoff
from logkernel.requests.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from logkernel.vocabulary import TopicPartition

EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1
Rows = Iterable[tuple[TopicPartition, int, Any]]


@define(eq=False)
class _Asked:
    """Takes one leader's answer."""

    question: LeaderQuery
    partitions: tuple[TopicPartition, ...]

    def complete(self, response: Any, error: Exception | None, now_ms: int) -> None:
        self.question.answered(self.partitions, response, error, now_ms)


class LeaderQuery(ABC):
    """See the module. `found` grows as answers come; `errors` has what was refused for good."""

    def __init__(
        self, core: ClientCore, wanted: Mapping[TopicPartition, Any], deadline_ms: int, settings: Mapping[str, Any]
    ) -> None:
        self.core = core
        self.wanted = dict(wanted)
        self.found: dict[TopicPartition, Any] = {}
        self.errors: dict[TopicPartition, Exception] = {}
        self.deadline_ms = deadline_ms
        self._settings = settings
        self._open: dict[TopicPartition, None] = dict.fromkeys(self.wanted)
        self._failures = 0
        self._refusals = core.refusals
        self._retry_ms = 0
        self._why: Exception | None = None
        self._backoff = Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"], core.random)

    @property
    def done(self) -> bool:
        return len(self.found) + len(self.errors) == len(self.wanted)

    def step(self, now_ms: int) -> int | None:
        """Ask what can be asked; returns when to come again."""
        if self.done:
            return None
        if now_ms >= self.deadline_ms:
            for partition in self.wanted.keys() - self.found.keys() - self.errors.keys():
                why = f" ({self._why!r})" if self._why is not None else ""
                said = f"{partition}: its leader did not answer in time{why}; try again"
                self.errors[partition] = RequestTimedOut(said)
            self._open.clear()
            return None
        if self._refusals != self.core.refusals:
            self._refused()
        if now_ms < self._retry_ms:
            return min(self._retry_ms, self.deadline_ms)
        by_node: dict[int, list[TopicPartition]] = {}
        for partition in self._open:
            info = self.core.metadata.want(partition.topic, now_ms)
            leader = self.core.metadata.leader(*partition)
            if leader >= 0:
                by_node.setdefault(leader, []).append(partition)
            elif info.leaders and partition.partition >= len(info.leaders):
                self.core.metadata.request_update()
        for node, partitions in by_node.items():
            if self.core.network.ready(node, now_ms):
                for partition in partitions:
                    del self._open[partition]
                token = _Asked(self, tuple(partitions))
                left_ms = min(self._settings["request.timeout.ms"], self.deadline_ms - now_ms)
                self.core.network.send(node, self.request(partitions), token, now_ms, left_ms)
        return self.deadline_ms

    def _refused(self) -> None:
        """A broker refused a connection: leave the partitions that it leads, or may lead."""
        self._refusals = self.core.refusals
        for partition in list(self._open):
            error = self.core.refusal_for(self.core.metadata.leader(*partition))
            if error is not None:
                del self._open[partition]
                self.errors[partition] = error

    def answered(
        self, partitions: tuple[TopicPartition, ...], response: Any, error: Exception | None, now_ms: int
    ) -> None:
        if error is not None:
            for partition in partitions:
                self._failed(partition, error, now_ms)
            return
        rows = {partition: (code, row) for partition, code, row in self.rows(response)}
        for partition in partitions:
            code, row = rows.get(partition, (NetworkException.code, None))
            if code:
                self._failed(partition, explained(error_for(code, about=partition), "ListOffsets"), now_ms)
            else:
                self.found[partition] = row

    def _failed(self, partition: TopicPartition, error: Exception, now_ms: int) -> None:
        if partition in self.errors:
            return
        if not isinstance(error, KafkaError) or not error.retriable or isinstance(error, UnsupportedVersion):
            self.errors[partition] = error
            return
        self._why = error
        self._open[partition] = None
        self.core.metadata.request_update()
        if now_ms >= self._retry_ms:
            self._retry_ms = now_ms + self._backoff.delay_ms(self._failures)
            self._failures += 1

    # ------------------------------------------------------------ each its own

    @abstractmethod
    def request(self, partitions: list[TopicPartition]) -> Any:
        """What their leader is asked."""

    @abstractmethod
    def rows(self, response: Any) -> Rows:
        """(partition, error code, answer) of each that it has."""

    def epoch(self, partition: TopicPartition) -> int:
        info = self.core.metadata.topics.get(partition.topic)
        return -1 if info is None or partition.partition >= len(info.epochs) else info.epochs[partition.partition]


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        found.setdefault(partition.topic, []).append(partition)
    return found


class LeaderOffsetQuery(LeaderQuery):
    """`wanted`: partition → timestamp, also -1 (end) and -2 (first); `found`: rows with offset, timestamp, epoch."""

    isolation = 0

    def request(self, partitions: list[TopicPartition]) -> ListOffsetsRequest:
        topics = [
            ListOffsetsTopic(
                topic, [ListOffsetsPartition(row.partition, self.wanted[row], self.epoch(row)) for row in rows]
            )
            for topic, rows in by_topic(partitions).items()
        ]
        return ListOffsetsRequest(-1, topics, self.isolation, self._settings["request.timeout.ms"])

    def rows(self, response: Any) -> Rows:
        for topic in response.topics:
            for row in topic.partitions:
                yield TopicPartition(topic.name, row.partition_index), row.error_code, row


class LeaderEpochQuery(LeaderQuery):
    """`wanted`: partition → leader epoch; `found`: rows with leader_epoch and end_offset, -1 where there is none."""

    def request(self, partitions: list[TopicPartition]) -> OffsetForLeaderEpochRequest:
        topics = [
            OffsetForLeaderTopic(
                topic, [OffsetForLeaderPartition(row.partition, self.epoch(row), self.wanted[row]) for row in rows]
            )
            for topic, rows in by_topic(partitions).items()
        ]
        return OffsetForLeaderEpochRequest(topics, replica_id=-1)

    def rows(self, response: Any) -> Rows:
        for topic in response.topics:
            for row in topic.partitions:
                yield TopicPartition(topic.topic, row.partition), row.error_code, row
