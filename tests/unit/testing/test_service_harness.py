"""The harness runs a service as the broker's host does: in order, at commit, from the log alone after a crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from logkernel.contracts import ClusterView, Decision, RequestContext
from logkernel.testing import ClusterStub, ServiceHarness
from logkernel.testing.service_harness import START_MS
from logkernel.vocabulary import Record


class Add:
    """Asks a counter to grow; `wait_ms` puts the answer off."""

    def __init__(self, key: str, wait_ms: int = 0, via: str = "") -> None:
        self.key, self.wait_ms, self.via = key, wait_ms, via


class Sum:
    """Asks for all counters of all shards."""


class Counters:
    """A machine: counts, answers late if asked to, and sends where a topic is named."""

    def __init__(self, shard: int, cluster: ClusterView, names: Callable[[], str]) -> None:
        self.counts: dict[str, int] = {}
        self.pending: dict[tuple[int, int], list[Record]] = {}
        self.late: list[tuple[int, int, int]] = []
        self.told: list[Any] = []
        self.cluster, self.shard, self.names = cluster, shard, names
        self.stuck = False

    def on_request(self, request: Any, context: RequestContext, ticket: int, wall_ms: int, mono_ms: int) -> Decision:
        if isinstance(request, Sum):
            return Decision(answers=[(ticket, sum(self.counts.values()))])
        count = self.counts.get(request.key, 0) + 1
        out = Decision(records=[Record(request.key.encode(), b"%d" % count)])
        if request.wait_ms:
            self.late.append((mono_ms + request.wait_ms, ticket, count))
        else:
            out.answers = [(ticket, count)]
        if request.via:
            out.sends = [(request.key, request.via)]
        if request.key == "twice":
            out.answers *= 2
        return out

    def replay(self, record: Record) -> None:
        assert record.key is not None
        if record.value is None:
            self.counts.pop(record.key.decode(), None)
        else:
            self.counts[record.key.decode()] = int(record.value)

    def replay_pending(self, record: Record, producer_id: int, producer_epoch: int) -> None:
        self.pending.setdefault((producer_id, producer_epoch), []).append(record)

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        for record in self.pending.pop((producer_id, producer_epoch), []):
            if committed:
                self.replay(record)

    def on_loaded(self, wall_ms: int, mono_ms: int) -> Decision:
        self.told.append("loaded")
        return Decision()

    def on_timer(self, wall_ms: int, mono_ms: int) -> Decision:
        due = [row for row in self.late if row[0] <= mono_ms]
        self.late = [row for row in self.late if row[0] > mono_ms]
        return Decision(replies=[(ticket, (count, wall_ms)) for _, ticket, count in due])

    def on_response(self, token: Any, response: Any, wall_ms: int, mono_ms: int) -> Decision:
        self.told.append((token, response))
        return Decision()

    def on_topics_changed(self, topics: Sequence[str], wall_ms: int, mono_ms: int) -> Decision:
        self.told.append((list(topics), [self.cluster.partition_count(topic) for topic in topics]))
        return Decision()

    def on_topics_deleted(self, topics: Sequence[str], wall_ms: int, mono_ms: int) -> Decision:
        return Decision(records=[Record(topic.encode(), None) for topic in topics if topic in self.counts])

    def on_disconnected(self, listener: str, connection_id: int, wall_ms: int, mono_ms: int) -> Decision:
        self.told.append(("gone", connection_id))
        return Decision()

    def next_deadline(self) -> int | None:
        return 0 if self.stuck else min((row[0] for row in self.late), default=None)


class CounterService:
    """`contracts.Service`: a key's shard is its length."""

    def __init__(self, cluster: ClusterView) -> None:
        self.cluster = cluster
        self.machines: dict[int, Counters] = {}

    def machine(self, shard: int, ids: Callable[[], str]) -> Counters:
        self.machines[shard] = Counters(shard, self.cluster, ids)
        return self.machines[shard]

    def split(self, request: Any, shards: int) -> Sequence[tuple[int, Any]]:
        if isinstance(request, Sum):
            return [(shard, Sum()) for shard in range(shards)]
        return [(len(request.key) % shards, request)] if request.key else []

    def join(self, request: Any, responses: Sequence[Any], context: RequestContext) -> Any:
        return ("joined", context.client_id, *responses)

    def refusal(self, request: Any, code: int) -> Any:
        return ("refused", code)


@pytest.fixture
def service() -> CounterService:
    return CounterService(ClusterStub({"orders": 2}))


@pytest.fixture
def harness(service: CounterService) -> ServiceHarness:
    return ServiceHarness(service, service.cluster, shards=2)  # type: ignore[arg-type]


def test_records_are_appended_and_replayed_before_the_answer(harness: ServiceHarness, service: CounterService) -> None:
    assert [harness.ask(Add("a")), harness.ask(Add("a")), harness.ask(Add("bb"))] == [1, 2, 1]
    assert [(record.key, record.value, record.offset) for record in harness.log(1)] == [
        (b"a", b"1", 0),
        (b"a", b"2", 1),
    ]
    assert harness.log(1)[0].timestamp_ms == START_MS
    assert service.machines[1].counts == {"a": 2}


def test_a_request_is_split_over_shards_and_its_parts_are_joined(harness: ServiceHarness) -> None:
    harness.ask(Add("a"))
    harness.ask(Add("bb"))
    assert harness.ask(Sum()) == ("joined", "harness", 1, 1)
    assert harness.ask(Add(""), RequestContext(client_id="me")) == ("joined", "me")


def test_an_answer_may_come_later(harness: ServiceHarness) -> None:
    reply = harness.submit(Add("a", wait_ms=500))
    harness.advance(499)
    assert not reply.done
    with pytest.raises(AssertionError, match="not answered yet"):
        _ = reply.response
    harness.advance(1)
    assert reply.response == (1, START_MS + 500)
    harness.advance(10_000)
    assert harness.mono_ms == 10_500


def test_held_commits_hold_answers_and_what_rests_on_them(harness: ServiceHarness, service: CounterService) -> None:
    harness.hold_commits()
    first, second = harness.submit(Add("a", via="note")), harness.submit(Sum())
    assert service.machines[1].counts == {"a": 1}
    assert not first.done
    assert not second.done
    assert not harness.sent
    harness.commit()
    assert first.response == 1
    assert second.response == ("joined", "harness", 0, 1)
    assert [sent.request for sent in harness.sent] == ["note"]


def test_a_failed_append_rebuilds_the_machine_and_refuses_who_waits(
    harness: ServiceHarness, service: CounterService
) -> None:
    waits = harness.submit(Add("a", wait_ms=100))
    before = service.machines[1]
    harness.fail_append(7)
    failed = harness.submit(Add("a", via="never sent"))
    assert waits.response == failed.response == ("refused", 7)
    assert service.machines[1] is not before
    assert service.machines[1].counts == {"a": 1}
    assert not harness.sent
    assert harness.ask(Add("a")) == 2


def test_a_restart_knows_what_the_log_says(harness: ServiceHarness, service: CounterService) -> None:
    harness.ask(Add("a", via="note"))
    harness.ask(Add("a"))
    (sent,) = harness.sent
    harness.restart()
    assert not harness.sent
    assert service.machines[1].counts == {"a": 2}
    assert service.machines[1].told == ["loaded"]
    assert not sent.answered


def test_a_compacted_log_says_the_same(harness: ServiceHarness, service: CounterService) -> None:
    for _ in range(3):
        harness.ask(Add("a"))
    harness.ask(Add("ccc"))
    harness.delete_topics("a")
    harness.compact()
    assert [record.key for record in harness.log(1)] == [b"ccc"]
    harness.restart()
    assert service.machines[1].counts == {"ccc": 1}
    assert harness.ask(Add("a")) == 1
    assert harness.log(1)[-1].offset == 5


def test_sends_are_answered_by_the_test_or_by_a_broker(service: CounterService) -> None:
    harness = ServiceHarness(service, broker=lambda request: None if request == "open" else f"did {request}")
    harness.ask(Add("x", via="work"))
    harness.ask(Add("y", via="open"))
    assert service.machines[0].told == ["loaded", ("x", "did work")]
    (sent,) = harness.sent
    harness.respond(sent, "late")
    assert service.machines[0].told[-1] == ("y", "late")
    with pytest.raises(AssertionError, match="answered already"):
        harness.respond(sent, "again")


def test_topics_and_connections_are_told(harness: ServiceHarness, service: CounterService) -> None:
    harness.create_topics(mails=3)
    harness.disconnect(4)
    assert service.machines[0].told == ["loaded", (["mails"], [3]), ("gone", 4)]


def test_records_of_a_transaction_hold_when_it_is_committed(harness: ServiceHarness, service: CounterService) -> None:
    machine = service.machines[1]

    def pending(value: bytes) -> Any:
        return lambda *_: Decision(records=[Record(b"a", value)], producer=(9, 0), answers=[(_[2], "held")])

    machine.on_request = pending(b"5")  # type: ignore[method-assign]
    assert harness.ask(Add("a")) == "held"
    assert machine.counts == {}
    harness.end_transaction(9, 0, committed=True, shard=1)
    assert machine.counts == {"a": 5}
    machine.on_request = pending(b"7")  # type: ignore[method-assign]
    harness.ask(Add("a"))
    harness.end_transaction(9, 0, committed=False, shard=1)
    assert machine.counts == {"a": 5}
    harness.restart()
    assert service.machines[1].counts == {"a": 5}


def test_breaches_of_the_contract_are_named(harness: ServiceHarness, service: CounterService) -> None:
    with pytest.raises(AssertionError, match="no request waits under ticket"):
        harness.ask(Add("twice"))
    service.machines[0].stuck = True
    with pytest.raises(AssertionError, match="on_timer leaves a deadline that is due"):
        harness.advance(1)


def test_ids_are_the_same_each_time(harness: ServiceHarness, service: CounterService) -> None:
    assert [service.machines[0].names(), service.machines[1].names()] == ["id-1", "id-2"]


def test_a_topic_made_anew_has_another_id() -> None:
    cluster = ClusterStub({"t": 1})
    first = cluster.topic_id("t")
    assert cluster.topic_name(first) == "t"
    cluster.delete("t")
    assert cluster.topic_id("t") is None
    cluster.topics["t"] = 1
    assert cluster.topic_id("t") != first
    assert cluster.offsets("t", 0) == (0, 0, 0)
    assert cluster.offsets("t", 1) is None


def test_the_stub_has_all_that_a_cluster_shows() -> None:
    shown = {name for name in vars(ClusterView) if not name.startswith("_")}
    assert shown <= set(dir(ClusterStub))
