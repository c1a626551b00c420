"""Share groups in a whole broker with a clock that is moved by hand: what clients say, and what they are told.

    world.join("a"); world.fetch("a") == "0-2:1"      offsets 0 to 2, delivered for the first time
    world.ack("a", "0-1 accept, 2 release") == ""     every word held
    world.crash()                                      the process is gone, its files stay as they are

A fetch that has to wait is a `Waiting`, whose `got` is None until the broker answers.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define
from hand_clock import HandClock

from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.contracts import RequestContext
from logkernel.record.encode import encode_batch
from logkernel.requests.configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from logkernel.requests.data import PartitionProduceData, ProduceRequest, TopicProduceData
from logkernel.requests.offsets import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from logkernel.requests.share_delivery import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgePartitionAcknowledgementBatch,
    AcknowledgeTopic,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)
from logkernel.requests.share_groups import ShareGroupHeartbeatRequest
from logkernel.requests.share_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from logkernel.vocabulary import FileSlice, Record

TYPES = {"gap": 0, "accept": 1, "release": 2, "reject": 3, "renew": 4}
MEMBERS = ("a", "b", "c")
SETTINGS = (
    "offsets.topic.num.partitions=1",
    "share.coordinator.state.topic.num.partitions=1",
    "group.share.assignment.interval.ms=0",
    "group.share.min.record.lock.duration.ms=1000",
    "log.cleaner.enable=false",
)


@define
class Waiting:
    """An answer that may not be there yet."""

    response: Any = None

    @property
    def got(self) -> str | None:
        """Acquired records as `0-2:1`, errors as `!code`, acknowledgements that failed as `?code`."""
        return None if self.response is None else told(self.response)


def told(response: Any) -> str:
    if response.error_code:
        return f"!{response.error_code}"
    parts = []
    for topic in response.responses:
        for row in topic.partitions:
            if row.error_code:
                parts.append(f"!{row.error_code}")
            if getattr(row, "acknowledge_error_code", 0):
                parts.append(f"?{row.acknowledge_error_code}")
            parts += [f"{one.first_offset}-{one.last_offset}:{one.delivery_count}" for one in rows_of(row)]
    return " ".join(parts)


def rows_of(row: Any) -> list[Any]:
    return list(getattr(row, "acquired_records", ()))


class World:
    group = "g"
    topic = "t"

    def __init__(self, folder: Path, *settings: str) -> None:
        self._folder = folder
        self._settings = settings
        self._lives = 0
        self.clock = HandClock(1_000)
        self.epochs: dict[str, int] = {}
        self.broker = self._open(folder / "life-0")
        self.broker.create_topic(self.topic, 1, {})
        self.configure(**{"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "1000"})

    def _open(self, folder: Path) -> Broker:
        broker = build(None, [f"log.dirs={folder}", *SETTINGS, *self._settings], clock=self.clock)
        broker.start()
        return broker

    def close(self) -> None:
        self.broker.close()

    def crash(self) -> None:
        """A new process finds the files as the old one left them, without a word of goodbye."""
        old = self._folder / f"life-{self._lives}"
        self._lives += 1
        new = self._folder / f"life-{self._lives}"
        shutil.copytree(old, new, ignore=shutil.ignore_patterns(".lock"))
        self.broker.close()
        self.broker = self._open(new)
        self.epochs.clear()

    # ------------------------------------------------------------ asking

    def disconnect(self, member: str) -> None:
        """The member's connection is gone; each member has one of its own."""
        self.broker.disconnected("", MEMBERS.index(member) + 1)
        self.broker.step()

    def submit(self, request: Any, **context: Any) -> Waiting:
        waiting = Waiting()

        def take(response: Any) -> None:
            waiting.response = response

        member = getattr(request, "member_id", None)
        number = MEMBERS.index(member) + 1 if member in MEMBERS else 0
        self.broker.submit(
            request, RequestContext(client_id="c", client_host="/127.0.0.1", connection_id=number, **context), take
        )
        self.broker.step()
        return waiting

    def ask(self, request: Any, **context: Any) -> Any:
        response = self.submit(request, **context).response
        assert response is not None, f"no answer to {request}"
        return response

    def wait(self, ms: int) -> None:
        """Time passes, timer by timer."""
        end = self.clock.now_ms + ms
        while True:
            due = self.broker.runtime.timers.next_deadline()
            if due is None or due > end:
                break
            self.clock.now_ms = max(self.clock.now_ms, due)
            self.broker.step()
        self.clock.now_ms = end
        self.broker.step()

    def configure(self, **settings: str) -> None:
        rows = [IncrementalAlterConfigsAlterableConfig(name, 0, value) for name, value in settings.items()]
        resource = IncrementalAlterConfigsAlterConfigsResource(32, self.group, rows)
        response = self.ask(IncrementalAlterConfigsRequest([resource]))
        assert response.responses[0].error_code == 0, response.responses[0].error_message

    def produce(self, count: int = 1, *, batches: int = 1, partition: int = 0) -> None:
        for _ in range(batches):
            rows = [Record(b"k", b"v", timestamp_ms=self.clock.wall_ms()) for _ in range(count)]
            data = bytearray(encode_batch(rows))
            topic = TopicProduceData(self.topic, [PartitionProduceData(partition, data)])
            response = self.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]))
            assert response.responses[0].partition_responses[0].error_code == 0

    def delete_records(self, offset: int) -> None:
        self.ask(DeleteRecordsRequest([DeleteRecordsTopic(self.topic, [DeleteRecordsPartition(0, offset)])], 1000))

    # ------------------------------------------------------------ what clients say

    @property
    def topic_id(self) -> Any:
        return self.broker.cluster.topic_id(self.topic)

    def beat(self, member: str, epoch: int, topics: list[str] | None = None, group: str | None = None) -> Any:
        return self.ask(ShareGroupHeartbeatRequest(group or self.group, member, epoch, None, topics))

    def join(self, member: str, *topics: str) -> Any:
        return self.beat(member, 0, list(topics or (self.topic,)))

    def session(self, member: str, epoch: int | None) -> int:
        if epoch is None:
            epoch = self.epochs.get(member, 0)
        self.epochs[member] = epoch + 1
        return epoch

    def fetching(
        self,
        member: str,
        *,
        words: str = "",
        wait_ms: int = 0,
        max_records: int = 100,
        epoch: int | None = None,
        partitions: tuple[int, ...] = (0,),
        mode: int = 0,
        renew: bool = False,
        min_bytes: int = 1,
        forget: bool = False,
    ) -> Waiting:
        rows = [FetchPartition(partition, batches_of(words, AcknowledgementBatch)) for partition in partitions]
        request = ShareFetchRequest(
            self.group, member, self.session(member, epoch), wait_ms, min_bytes, 1 << 20, max_records, 0, mode, renew,
            [FetchTopic(self.topic_id, rows)], [ForgottenTopic(self.topic_id, list(partitions))] if forget else [],
        )  # fmt: skip
        return self.submit(request)

    def fetch(self, member: str, **more: Any) -> str:
        got = self.fetching(member, **more).got
        assert got is not None, "the fetch waits"
        return got

    def acking(self, member: str, words: str, *, epoch: int | None = None, renew: bool = False) -> Waiting:
        row = AcknowledgePartition(0, batches_of(words, AcknowledgePartitionAcknowledgementBatch))
        topics = [AcknowledgeTopic(self.topic_id, [row])] if words else []
        request = ShareAcknowledgeRequest(self.group, member, self.session(member, epoch), renew, topics)
        return self.submit(request)

    def ack(self, member: str, words: str, **more: Any) -> str:
        """ "" where all held, else `!code`."""
        got = self.acking(member, words, **more).got
        assert got is not None, "the acknowledgement waits"
        return got

    # ------------------------------------------------------------ what operators say

    def offsets(self, partition: int = 0) -> tuple[int, int]:
        """(start offset, lag) as DescribeShareGroupOffsets tells it."""
        request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(self.group, None)])
        group = self.ask(request).groups[0]
        assert group.error_code == 0, group.error_message
        row = next(row for topic in group.topics for row in topic.partitions if row.partition_index == partition)
        return row.start_offset, row.lag

    def alter(self, offset: int) -> int:
        rows = [AlterShareGroupOffsetsRequestPartition(0, offset)]
        response = self.ask(
            AlterShareGroupOffsetsRequest(self.group, [AlterShareGroupOffsetsRequestTopic(self.topic, rows)])
        )
        code: int = response.error_code or response.responses[0].partitions[0].error_code
        return code


def batches_of(words: str, kind: Callable[..., Any]) -> list[Any]:
    """`0-1 accept, 2 release`; several types for one batch as `0-1 accept/reject`."""
    found = []
    for word in filter(None, words.split(", ")):
        span, types = word.split(" ")
        first, _, last = span.partition("-")
        found.append(kind(int(first), int(last or first), [TYPES[name] for name in types.split("/")]))
    return found


def records(response: Any) -> bytes:
    """The bytes of the first partition's records."""
    found = response.responses[0].partitions[0].records
    return found.read() if isinstance(found, FileSlice) else bytes(found)


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def make(*settings: str) -> World:
        made.append(World(tmp_path / f"world-{len(made)}", *settings))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(worlds: Callable[..., World]) -> World:
    return worlds()
