"""`ServiceHarness` keeps the order of the broker's service host: one service, the same inputs, the same history.

The inputs are drawn from a seed. A failure names it; `LOGKERNEL_HARNESS_SEED=N` runs that one alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Protocol

import pytest
from hand_clock import HandClock

from logkernel.attrs_lite import frozen
from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.contracts import Decision, RequestContext, ServiceDeclaration, ServiceTopic
from logkernel.errors import NotEnoughReplicas
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.record.batch import batches
from logkernel.record.decode import decode_batch
from logkernel.requests.cluster import DescribeClusterRequest, DescribeClusterResponse
from logkernel.requests.data import FetchPartition, FetchRequest, FetchTopic
from logkernel.requests.transactions import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from logkernel.testing import ClusterStub, ServiceHarness
from logkernel.vocabulary import Record

TOPIC, SHARDS, STEPS = "__probes", 3, 80
PRODUCERS = ((1_000, 0), (1_001, 3))
SEEDS = [int(os.environ["LOGKERNEL_HARNESS_SEED"])] if "LOGKERNEL_HARNESS_SEED" in os.environ else list(range(20))


@frozen
class Probe:
    """A request that says what its shard's machine decides."""

    shard: int = 0
    records: tuple[str, ...] = ()
    """Keys to count up."""
    producer: tuple[int, int] | None = None
    how: str = "answer"
    """The response leaves as an answer or as a reply, now, or later as either."""
    wait_ms: int = 0
    sends: int = 0
    parts: tuple[Probe, ...] = ()
    """What it is split into, instead."""


class Machine:
    """Counts keys, and notes all that it is told."""

    def __init__(self, shard: int, history: list[Any]) -> None:
        self.shard = shard
        self.counts: dict[str, int] = {}
        self.pending: dict[tuple[int, int], list[str]] = {}
        self.late: list[tuple[int, int, Probe]] = []
        self.history = history
        history.append(("new machine",))

    def on_request(self, request: Probe, context: RequestContext, ticket: int, wall_ms: int, mono_ms: int) -> Decision:
        self.history.append(("request", request, context.client_id, context.connection_id, wall_ms, mono_ms))
        if request.wait_ms:
            self.late.append((mono_ms + request.wait_ms, ticket, request))
            return Decision()
        return self._decide(ticket, request)

    def _decide(self, ticket: int, request: Probe) -> Decision:
        seen = sorted(self.counts.items())
        out = Decision([Record(key.encode(), b"%d" % self.counts.get(key, 0)) for key in request.records])
        out.producer = request.producer if out.records else None
        (out.answers if request.how == "answer" else out.replies).append((ticket, (request.how, self.shard, seen)))
        out.sends = [((self.shard, number), DescribeClusterRequest()) for number in range(request.sends)]
        return out

    def replay(self, record: Record) -> None:
        self.history.append(("replay", record.key, record.value, record.offset, record.timestamp_ms))
        assert record.key is not None
        self.counts[record.key.decode()] = self.counts.get(record.key.decode(), 0) + 1

    def replay_pending(self, record: Record, producer_id: int, producer_epoch: int) -> None:
        self.history.append(("pending", record.key, record.offset, producer_id, producer_epoch))
        assert record.key is not None
        self.pending.setdefault((producer_id, producer_epoch), []).append(record.key.decode())

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        self.history.append(("marker", producer_id, producer_epoch, committed))
        for key in self.pending.pop((producer_id, producer_epoch), []):
            self.counts[key] = self.counts.get(key, 0) + committed

    def on_loaded(self, wall_ms: int, mono_ms: int) -> Decision:
        self.history.append(("loaded", wall_ms, mono_ms))
        return Decision()

    def on_timer(self, wall_ms: int, mono_ms: int) -> Decision:
        self.history.append(("timer", wall_ms, mono_ms))
        due = [row for row in self.late if row[0] <= mono_ms]
        self.late = [row for row in self.late if row[0] > mono_ms]
        made = [self._decide(ticket, request) for _, ticket, request in due]
        producers = {one.producer for one in made if one.records}
        whole = made[0]
        for one in made[1:]:
            whole.records += one.records
            whole.answers += one.answers
            whole.replies += one.replies
            whole.sends += one.sends
        whole.producer = producers.pop() if len(producers) == 1 else None
        return whole

    def on_response(self, token: Any, response: Any, wall_ms: int, mono_ms: int) -> Decision:
        self.history.append(("response", token, type(response).__name__, wall_ms, mono_ms))
        return Decision([Record(b"response", b"")] if token[1] else [])

    def on_topics_changed(self, topics: Sequence[str], wall_ms: int, mono_ms: int) -> Decision:
        self.history.append(("changed", list(topics), wall_ms, mono_ms))
        return Decision()

    def on_topics_deleted(self, topics: Sequence[str], wall_ms: int, mono_ms: int) -> Decision:
        self.history.append(("deleted", list(topics), wall_ms, mono_ms))
        return Decision([Record(topic.encode(), None) for topic in topics if topic in self.counts])

    def on_disconnected(self, listener: str, connection_id: int, wall_ms: int, mono_ms: int) -> Decision:
        self.history.append(("disconnected", listener, connection_id, wall_ms, mono_ms))
        return Decision([Record(b"gone", b"")] if self.shard else [])

    def next_deadline(self) -> int | None:
        return min((row[0] for row in self.late), default=None)


class Probes:
    """The service; as an object it is also the plugin that brings it."""

    def __init__(self) -> None:
        self.histories: dict[int, list[Any]] = {shard: [] for shard in range(SHARDS)}

    @hookimpl
    def logkernel_services(self) -> Iterable[ServiceDeclaration]:
        config = {
            "cleanup.policy": "delete",
            "flush.messages": "1",
        }  # a flush before each commit, which a test may hold
        return [ServiceDeclaration("probes", ("Probe",), ServiceTopic(TOPIC, "num.partitions", config))]

    @hookimpl
    def logkernel_service(self, name: str, settings: Any, cluster: Any) -> Any:
        return self if name == "probes" else None

    def machine(self, shard: int, ids: Callable[[], str]) -> Machine:
        return Machine(shard, self.histories[shard])

    def split(self, request: Probe, shards: int) -> Sequence[tuple[int, Probe]]:
        if request.shard < 0:
            return [(part.shard, part) for part in request.parts]
        return [(request.shard, request)]

    def join(self, request: Probe, responses: Sequence[Any], context: RequestContext) -> Any:
        return ("joined", context.client_id, *responses)

    def refusal(self, request: Probe, code: int) -> Any:
        return ("refused", request.shard, code)


class World(Protocol):
    """What runs the service."""

    service: Probes

    def submit(self, request: Probe, context: RequestContext) -> None: ...
    def submit_failing(self, request: Probe, context: RequestContext) -> None:
        """The append that it leads to is refused."""

    def advance(self, ms: int) -> None: ...
    def create_topic(self, name: str) -> None: ...
    def delete_topic(self, name: str) -> None: ...
    def disconnect(self, connection_id: int) -> None: ...
    def hold_commits(self) -> None: ...
    def commit(self) -> None: ...
    def end_transaction(self, producer: tuple[int, int], committed: bool, shard: int) -> None: ...
    def restart(self) -> None: ...
    def responses(self) -> list[Any]:
        """To all requests so far; None to those without."""

    def log(self, shard: int) -> list[Record]: ...


class InHarness:
    def __init__(self) -> None:
        self.service = Probes()
        self._harness = ServiceHarness(
            self.service,  # type: ignore[arg-type]
            ClusterStub(),
            shards=SHARDS,
            broker=lambda request: DescribeClusterResponse(),
        )
        self._replies: list[Any] = []
        self.advance = self._harness.advance
        self.delete_topic = self._harness.delete_topics
        self.disconnect = self._harness.disconnect
        self.hold_commits, self.commit = self._harness.hold_commits, self._harness.commit
        self.restart, self.log = self._harness.restart, self._harness.log

    def submit(self, request: Probe, context: RequestContext) -> None:
        self._replies.append(self._harness.submit(request, context))

    def submit_failing(self, request: Probe, context: RequestContext) -> None:
        self._harness.fail_append(NotEnoughReplicas.code)
        self.submit(request, context)

    def create_topic(self, name: str) -> None:
        self._harness.create_topics(**{name: 1})

    def end_transaction(self, producer: tuple[int, int], committed: bool, shard: int) -> None:
        self._harness.end_transaction(*producer, committed=committed, shard=shard)

    def responses(self) -> list[Any]:
        return [reply.response if reply.done else None for reply in self._replies]


class InBroker:
    def __init__(self, folder: Path) -> None:
        self.service = Probes()
        self._folder = folder
        self._clock = HandClock()
        self._replies: list[list[Any]] = []
        self._flushes: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []
        self._holding = False
        self._broker = self._start()
        self._broker.governance.create_internal(TOPIC)

    def _start(self) -> Broker:
        settings = [f"log.dirs={self._folder}", f"num.partitions={SHARDS}", "auto.create.topics.enable=false"]
        broker = build(None, settings, kernel=Kernel(plugins=[self.service]), clock=self._clock)
        broker.runtime.run_flush = self._flush
        broker.start()
        return broker

    def _flush(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        if self._holding:
            self._flushes.append((work, done))
        else:
            work()
            done(None)

    def _ask(self, request: Any, context: RequestContext | None = None) -> list[Any]:
        answers: list[Any] = []
        self._broker.submit(request, context or RequestContext(), answers.append)
        return answers

    def submit(self, request: Probe, context: RequestContext) -> None:
        self._replies.append(self._ask(request, context))

    def submit_failing(self, request: Probe, context: RequestContext) -> None:
        leaders = [replica.leader for replica in self._broker.replicas.of_topic(TOPIC)]
        for leader in leaders:
            leader.isr = ()
        self.submit(request, context)
        for leader in leaders:
            leader.isr = (leader.node_id,)

    def advance(self, ms: int) -> None:
        end = self._clock.now_ms + ms
        while (due := self._broker.step()) is not None and due <= end:
            self._clock.now_ms = max(self._clock.now_ms, due)
        self._clock.now_ms = end
        self._broker.step()

    def create_topic(self, name: str) -> None:
        self._broker.create_topic(name, 1, {})
        self._broker.step()

    def delete_topic(self, name: str) -> None:
        self._broker.delete_topic(name)
        self._broker.step()

    def disconnect(self, connection_id: int) -> None:
        self._broker.disconnected("", connection_id)

    def hold_commits(self) -> None:
        self._holding = True

    def commit(self) -> None:
        self._holding = False
        while self._flushes:
            work, done = self._flushes.pop(0)
            work()
            done(None)
            self._broker.step()

    def end_transaction(self, producer: tuple[int, int], committed: bool, shard: int) -> None:
        marker = WritableTxnMarker(*producer, committed, [WritableTxnMarkerTopic(TOPIC, [shard])], 0, 1)
        self._ask(WriteTxnMarkersRequest([marker]))

    def restart(self) -> None:
        self._replies = [[*answers] for answers in self._replies]  # what a close answers is heard by nobody
        holding, self._holding = self._holding, False
        self._broker.close()
        self._flushes.clear()
        self._broker = self._start()
        self._holding = holding

    def responses(self) -> list[Any]:
        assert all(len(answers) <= 1 for answers in self._replies)
        return [answers[0] if answers else None for answers in self._replies]

    def log(self, shard: int) -> list[Record]:
        topics = [FetchTopic(TOPIC, [FetchPartition(shard, 0, 1 << 24)])]
        (answer,) = self._ask(FetchRequest(max_bytes=1 << 24, topics=topics))
        found = answer.responses[0].partitions[0].records
        data = b"" if found is None else found.read()
        codec_for = self._broker.runtime.kernel.codec_for
        return [
            record
            for batch in batches(data)
            if not batch.is_control
            for record in decode_batch(data, batch, codec_for, verify_crc=True)
        ]

    def close(self) -> None:
        self._broker.close()


Step = tuple[str, tuple[Any, ...]]
FIRST: Step = ("submit", (Probe(-1, parts=tuple(map(Probe, range(SHARDS)))), RequestContext(client_id="first")))
"""A broker loads a shard at the first request that concerns it, the harness at once."""


def a_probe(chance: Random, shard: int) -> Probe:
    keys = tuple(chance.choices("abct", k=chance.choice((0, 0, 1, 2))))
    return Probe(
        shard,
        keys,
        chance.choice(PRODUCERS) if keys and chance.random() < 0.3 else None,
        chance.choice(("answer", "answer", "reply")),
        chance.choice((0, 0, 0, 1, 5, 20)),
        chance.choice((0, 0, 0, 1, 2)),
    )


def steps(chance: Random) -> Iterable[Step]:
    """What happens to the service."""
    topics: list[str] = []
    yield FIRST
    for number in range(STEPS):
        context = RequestContext(client_id=f"client-{number}", connection_id=number % 4)
        shard = chance.randrange(SHARDS)
        what = chance.random()
        if what < 0.5:
            yield "submit", (a_probe(chance, shard), context)
        elif what < 0.6:
            parts = [a_probe(chance, chance.randrange(SHARDS)) for _ in range(chance.randrange(4))]
            yield "submit", (Probe(-1, parts=tuple(parts)), context)
        elif what < 0.72:
            yield "advance", (chance.choice((0, 1, 3, 10, 50)),)
        elif what < 0.78:
            yield chance.choice(("hold_commits", "commit")), ()
        elif what < 0.84:
            yield "end_transaction", (chance.choice(PRODUCERS), chance.random() < 0.5, shard)
        elif what < 0.88:
            probe = Probe(shard, ("a",), None, chance.choice(("answer", "reply")), 0, 1)
            yield "submit_failing", (probe, context)
        elif what < 0.92:
            topics.append(chance.choice("tuv"))
            yield ("create_topic" if topics.count(topics[-1]) % 2 else "delete_topic"), (topics[-1],)
        elif what < 0.96:
            yield "disconnect", (number % 4,)
        else:
            yield "restart", ()
            yield FIRST
    yield "commit", ()
    yield "advance", (100,)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_harness_runs_a_service_as_the_broker_does(seed: int, tmp_path: Path) -> None:
    harness, broker = InHarness(), InBroker(tmp_path)
    worlds: list[World] = [harness, broker]
    try:
        done: list[Step] = []
        for name, arguments in steps(Random(seed)):
            done.append((name, arguments))
            for world in worlds:
                getattr(world, name)(*arguments)
            if name != "restart":
                for shard in range(SHARDS):
                    ours, theirs = (world.service.histories[shard] for world in worlds)
                    assert ours == theirs, f"seed {seed}, shard {shard}, after {done[-3:]}"
                    ours.clear(), theirs.clear()
                assert harness.responses() == broker.responses(), f"seed {seed}, after {done[-3:]}"
        for shard in range(SHARDS):
            assert [facts(record) for record in harness.log(shard)] == [facts(record) for record in broker.log(shard)]
    finally:
        broker.close()


def facts(record: Record) -> tuple[Any, ...]:
    return record.key, record.value, record.offset, record.timestamp_ms
