"""The delay queue's machine: what is not due yet, and how far the watched topic was read. Pure.

key in __acme_delay_queue     value (JSON)
"at:<partition>"              the offset to read next
"wait:<partition>:<offset>"   {"due", "to", "key", "value", "headers"}; a tombstone once it was delivered

event                decision
loaded               a Fetch on every partition of ours, a Produce of all that is due
records came         they are kept, with the offset to read next; then the next Fetch
something is due     a Produce
it was produced      a tombstone
"""

from __future__ import annotations

import json
import logging
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any
from zlib import crc32

from attrs import define

from logkernel.contracts import ClusterView, Decision, RequestContext
from logkernel.record.batch import batches
from logkernel.record.decode import decode_batch
from logkernel.record.encode import encode_batch
from logkernel.requests.data import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from logkernel.vocabulary import READ_COMMITTED, BatchFacts, FileSlice, Record

log = logging.getLogger("acme.delay")

WAIT_MS = 60_000
RETRY_MS = 5_000
FETCH_BYTES = 1 << 20


@define
class Delayed:
    due_ms: int
    to: str
    record: Record


class Shard:
    """The watched partitions whose number, modulo the shards, is ours."""

    def __init__(self, shard: int, shards: int, topic: str, cluster: ClusterView) -> None:
        self._shard, self._shards, self._topic, self._cluster = shard, shards, topic, cluster
        self._next: dict[int, int] = {}
        self._waiting: dict[tuple[int, int], Delayed] = {}
        self._watched: set[int] = set()
        """Partitions on which a Fetch is under way."""
        self._heap: list[tuple[int, int, int]] = []
        """(wall ms, partition, offset) of what is to be tried then."""
        self._drift_ms = 0
        """Monotonic less wall time."""

    # ------------------------------------------------------------ the log

    def replay(self, record: Record) -> None:
        kind, _, place = (record.key or b"").decode().partition(":")
        if kind == "at":
            self._next[int(place)] = int(record.value or b"0")
            return
        partition, offset = (int(part) for part in place.split(":"))
        if record.value is None:
            self._waiting.pop((partition, offset), None)
        else:
            delayed = self._waiting[partition, offset] = _decode(record.value)
            heappush(self._heap, (delayed.due_ms, partition, offset))

    # ------------------------------------------------------------ events

    def on_loaded(self, wall_ms: int, mono_ms: int) -> Decision:
        return self.on_timer(wall_ms, mono_ms)

    def on_topics_changed(self, topics: Sequence[str], wall_ms: int, mono_ms: int) -> Decision:
        return self.on_timer(wall_ms, mono_ms)

    def on_topics_deleted(self, topics: Sequence[str], wall_ms: int, mono_ms: int) -> Decision:
        """A topic made anew is read from its beginning; what was kept is still delivered."""
        out = Decision()
        if self._topic in topics:
            out.records = [Record(b"at:%d" % partition, b"0") for partition in self._next]
        return out

    def on_timer(self, wall_ms: int, mono_ms: int) -> Decision:
        """Watch what is not watched yet; produce what is due."""
        self._drift_ms = mono_ms - wall_ms
        out = Decision()
        for partition in range(self._cluster.partition_count(self._topic) or 0):
            if partition % self._shards == self._shard and partition not in self._watched:
                self._watch(partition, out)
        while self._heap and self._heap[0][0] <= wall_ms:
            _, partition, offset = heappop(self._heap)
            delayed = self._waiting.get((partition, offset))
            if delayed is not None:
                out.sends.append((("produced", partition, offset), self._produce(delayed)))
        return out

    def on_response(self, token: Any, response: Any, wall_ms: int, mono_ms: int) -> Decision:
        self._drift_ms = mono_ms - wall_ms
        if token[0] == "fetched":
            return self._on_fetched(token[1], response.responses[0].partitions[0])
        _, partition, offset = token
        row = response.responses[0].partition_responses[0]
        if row.error_code == 0:
            return Decision(records=[Record(b"wait:%d:%d" % (partition, offset), None)])
        log.warning("not delivered: offset=%d partition=%d error_code=%d", offset, partition, row.error_code)
        heappush(self._heap, (wall_ms + RETRY_MS, partition, offset))
        return Decision()

    def on_request(self, request: Any, context: RequestContext, ticket: int, wall_ms: int, mono_ms: int) -> Decision:
        raise TypeError("a delay queue answers no requests")

    def next_deadline(self) -> int | None:
        return self._heap[0][0] + self._drift_ms if self._heap else None

    # ------------------------------------------------------------ inside

    def _watch(self, partition: int, out: Decision, offset: int | None = None) -> None:
        """A Fetch that the broker parks until something comes."""
        self._watched.add(partition)
        at = self._next.get(partition, 0) if offset is None else offset
        topics = [FetchTopic(self._topic, [FetchPartition(partition, at, FETCH_BYTES)])]
        request = FetchRequest(max_wait_ms=WAIT_MS, min_bytes=1, isolation_level=READ_COMMITTED, topics=topics)
        out.sends.append((("fetched", partition), request))

    def _on_fetched(self, partition: int, row: Any) -> Decision:
        out = Decision()
        self._watched.discard(partition)
        at = self._next.get(partition, 0)
        if row.error_code:
            offsets = self._cluster.offsets(self._topic, partition)
            if offsets is not None:  # what lay before was deleted: go on where the log begins
                out.records.append(Record(b"at:%d" % partition, b"%d" % offsets[0]))
                self._watch(partition, out, offsets[0])
            return out
        if row.records is not None:
            data = row.records.read() if isinstance(row.records, FileSlice) else row.records
            for facts in _committed(data, row.aborted_transactions or ()):
                for record in decode_batch(data, facts, _no_codec, verify_crc=True):
                    if record.offset >= at:
                        self._keep(partition, record, out)
            for facts in batches(data):
                at = facts.last_offset + 1
            out.records.append(Record(b"at:%d" % partition, b"%d" % at))
        self._watch(partition, out, at)
        return out

    def _keep(self, partition: int, record: Record, out: Decision) -> None:
        headers = {name: value or b"" for name, value in record.headers}
        try:
            to = headers["deliver-to"].decode()
            due_ms = int(headers.get("deliver-at-ms") or record.timestamp_ms + int(headers["delay-ms"]))
        except (KeyError, ValueError) as error:
            log.warning("not a delayed record: offset=%d partition=%d: %r", record.offset, partition, error)
            return
        out.records.append(Record(b"wait:%d:%d" % (partition, record.offset), _encode(Delayed(due_ms, to, record))))

    def _produce(self, delayed: Delayed) -> ProduceRequest:
        count = self._cluster.partition_count(delayed.to) or 1
        partition = crc32(delayed.record.key or b"") % count
        data = bytearray(encode_batch([delayed.record]))
        topic = TopicProduceData(delayed.to, [PartitionProduceData(partition, data)])
        return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


class DelayQueue:
    """`logkernel.contracts.Service`."""

    def __init__(self, topic: str, shards: int, cluster: ClusterView) -> None:
        self._topic, self._shards, self._cluster = topic, shards, cluster

    def machine(self, shard: int, ids: Callable[[], str]) -> Shard:
        return Shard(shard, self._shards, self._topic, self._cluster)

    def split(self, request: Any, shards: int) -> Sequence[tuple[int, Any]]:
        return ()

    def join(self, request: Any, responses: Sequence[Any], context: RequestContext) -> Any:
        raise TypeError("a delay queue answers no requests")

    def refusal(self, request: Any, code: int) -> Any:
        raise TypeError("a delay queue answers no requests")


def _committed(data: Any, aborted: Iterable[AbortedTransaction]) -> Iterator[BatchFacts]:
    """The batches of records, without those of aborted transactions."""
    waiting = sorted(aborted, key=lambda one: one.first_offset)
    active: set[int] = set()
    for facts in batches(data):
        while waiting and waiting[0].first_offset <= facts.last_offset:
            active.add(waiting.pop(0).producer_id)
        if facts.is_control:
            active.discard(facts.producer_id)
        elif facts.codec_id:
            log.error("compressed, passed over: offset=%d; set compression.type=uncompressed", facts.base_offset)
        elif not (facts.is_transactional and facts.producer_id in active):
            yield facts


def _no_codec(codec_id: int) -> Any:
    raise AssertionError(f"a batch of codec {codec_id} was not passed over")


def _encode(delayed: Delayed) -> bytes:
    record = delayed.record
    rest = [(name, _text(value)) for name, value in record.headers if name not in ("deliver-at-ms", "delay-ms")]
    row = {"due": delayed.due_ms, "to": delayed.to, "key": _text(record.key), "value": _text(record.value)}
    return json.dumps({**row, "headers": rest}).encode()


def _decode(data: bytes) -> Delayed:
    row = json.loads(data)
    headers = tuple((name, _bytes(value)) for name, value in row["headers"] if name != "deliver-to")
    return Delayed(row["due"], row["to"], Record(_bytes(row["key"]), _bytes(row["value"]), headers, row["due"]))


def _text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)
