"""A pure host for the transactions machine: an in-memory log, a clock moved by hand, partitions that take markers.

It does what the broker's shell does: append, replay, answer at commit, send, hand the response in as an event. An
append can be held before its commit and then fail; the machine is then rebuilt from what the log is left with. After
every event it checks that the machine is what its log folds to, and that everything that was decided is on its way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from attrs import define, evolve, field
from machine_host import MachineHost

from logkernel.contracts import Decision, RequestContext
from logkernel.plugins.services.transactions import logkernel_service
from logkernel.plugins.services.transactions.records import decode_key, decode_value
from logkernel.plugins.services.transactions.state import TRANSITIONS, State, Transaction
from logkernel.requests.producers import InitProducerIdRequest
from logkernel.requests.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from logkernel.vocabulary import Record, TopicPartition

V1: frozenset[str] = frozenset()
V2 = frozenset({"transactions_v2"})


@define
class Cluster:
    """A `ClusterView` of topics, producer ids and one feature."""

    topics: dict[str, int]
    level: int = 2
    next_id: int = 4000
    epoch: int = 0
    ids_fail: Exception | None = None
    untold: dict[str, int] = field(factory=dict)
    """Topics that the broker was not told of yet."""
    silent: Exception | None = None
    """What the coordination answers who asks it."""

    def partition_count(self, topic: str) -> int | None:
        return self.topics.get(topic)

    def find_partition_count(self, topic: str) -> int | None:
        if self.silent is not None:
            raise self.silent
        return self.untold.get(topic, self.topics.get(topic))

    def is_internal(self, topic: str) -> bool:
        return topic.startswith("__")

    def feature_level(self, name: str) -> int:
        assert name == "transaction.version"
        return self.level

    def leader_epoch(self, topic: str, partition: int) -> int:
        assert (topic, partition) == ("__transaction_state", 7)
        return self.epoch

    def next_producer_id(self) -> int:
        if self.ids_fail is not None:
            raise self.ids_fail
        self.next_id += 1
        return self.next_id - 1


@define
class Marker:
    """One marker in one partition, as it was written."""

    partition: TopicPartition
    producer_id: int
    epoch: int
    committed: bool
    coordinator_epoch: int
    version: int


@define(slots=False, eq=False)
class World(MachineHost):
    """One shard of the service in a host."""

    settings: dict[str, Any] = field(factory=dict)
    cluster: Cluster = field(factory=lambda: Cluster({"orders": 4, "bills": 2, "__consumer_offsets": 50}))
    hold_commits: bool = False
    """Appends are replayed, and their commit waits for `commit` or `fail`."""
    hold_sends: bool = False
    """Markers wait for `carry`."""
    fail_next: int = 0
    """Error code with which the next append fails at once."""
    fail_all: int = 0
    """As `fail_next`, for all appends."""
    marker_codes: dict[TopicPartition, list[int]] = field(factory=dict)
    """Error codes with which a partition answers its next markers."""
    accept: Callable[[Any, TopicPartition], int] | None = None
    """What a partition thinks of a marker: an error code, 0 to take it."""
    heard: Callable[[int, Any], None] | None = None
    """Told of each answer (ticket, response) as it goes out, instead of `answers`."""

    def __attrs_post_init__(self) -> None:
        self.log: list[Record] = []
        self.failures = 0
        self.decided: list[Record] = []
        """The records of the request that came last."""
        self.unseen: set[int] = set()
        """Offsets of records whose append was reported as failed and which lie in the log all the same."""
        self.committed = 0
        """Records of `log` that are committed."""
        self.answers: dict[int, Any] = {}
        self.parked: dict[int, Any] = {}
        self.written: list[Marker] = []
        self.sends: deque[tuple[Any, Any]] = deque()
        self.under_way: deque[tuple[Decision, int]] = deque()
        """Decisions with the length that the log must be committed to."""
        self.at_hand: list[Any] = []
        """Markers that are being written right now."""
        self.tickets = 0
        self.load()

    # ------------------------------------------------------------ the host

    def load(self) -> None:
        """Build the machine from the log alone."""
        self.service = logkernel_service(name="transactions", settings=self.settings, cluster=self.cluster)
        self.machine = self.fresh()
        self.sends.clear()
        self.under_way.clear()
        self.run(self.machine.on_loaded(self.wall_ms, self.mono_ms))

    def fresh(self) -> Any:
        machine = self.service.machine(7, lambda: "")
        for record in self.log:
            if record.offset not in self.unseen:
                machine.replay(record)
        return machine

    def crash(self, keep: int | None = None) -> None:
        """The broker is gone and comes back; of what was not committed only the first `keep` records are left."""
        self.parked.clear()
        self.committed = len(self.log) if keep is None else max(keep, self.committed)
        del self.log[self.committed :]
        self.cluster.epoch += 1
        self.unseen.clear()
        self.load()

    def run(self, decision: Decision) -> None:
        if decision.records and (self.fail_next or self.fail_all):
            self.failures += 1
            self.fail(self.fail_next or self.fail_all)
            return
        for record in decision.records:
            record.offset = len(self.log)
            self.log.append(record)
            self.machine.replay(record)
        for ticket, response in decision.replies:
            self._deliver(ticket, response)
        self.under_way.append((decision, len(self.log)))
        if self.hold_commits:
            self.release()
        else:
            self.commit()
        self.check()

    def commit(self, count: int = 1_000_000) -> None:
        """Commit the first `count` appends under way."""
        ends = [end for decision, end in self.under_way if decision.records]
        if ends and count:
            self.committed = ends[min(count, len(ends)) - 1]
        self.release()

    def release(self) -> None:
        """Let out what waited for records that are committed now."""
        while self.under_way and self.under_way[0][1] <= self.committed:
            decision, _ = self.under_way.popleft()
            for ticket, response in decision.answers:
                self._deliver(ticket, response)
            self.sends.extend(decision.sends)
        if not self.hold_sends:
            self.carry()

    def fail(self, code: int, keep: int = 0, *, unseen: bool = False) -> None:
        """The appends under way fail; the log is left with the first `keep` records of them.

        Those may lie above the watermark, `unseen` by the machine that is rebuilt, until they are read after a crash.
        """
        self.fail_next = 0
        before = self.committed
        self.under_way.clear()
        self.committed = min(self.committed + keep, len(self.log))
        del self.log[self.committed :]
        if unseen:
            self.unseen.update(range(before, self.committed))
        refused = list(self.parked.items())
        self.load()
        for ticket, request in refused:
            self._deliver(ticket, self.service.refusal(request, code))

    def _deliver(self, ticket: int, response: Any) -> None:
        if ticket in self.parked:  # else its connection died with the broker
            del self.parked[ticket]
            if self.heard is not None:
                self.heard(ticket, response)
            else:
                self.answers[ticket] = response

    def carry(self) -> None:
        """Let the markers that were sent reach their partitions, and the answers come back."""
        while self.sends and not self.at_hand:
            token, request = self.sends.popleft()
            self.at_hand.append(token)
            response = self.write(request)
            decision = self.machine.on_response(token, response, self.wall_ms, self.mono_ms)
            self.run(decision)
            self.at_hand.remove(token)

    def write(self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        results = []
        for marker in request.markers:
            topics = []
            for topic in marker.topics:
                rows = [self._mark(marker, TopicPartition(topic.name, index)) for index in topic.partition_indexes]
                topics.append(WritableTxnMarkerTopicResult(topic.name, rows))
            results.append(WritableTxnMarkerResult(marker.producer_id, topics))
        return WriteTxnMarkersResponse(results)

    def _mark(self, marker: Any, name: TopicPartition) -> WritableTxnMarkerPartitionResult:
        codes = self.marker_codes.get(name)
        code = codes.pop(0) if codes else 0
        if not code and not 0 <= name.partition < self.cluster.topics.get(name.topic, 0):
            code = 3
        if not code and self.accept is not None:
            code = self.accept(marker, name)
        if not code:
            self.written.append(
                Marker(
                    name,
                    marker.producer_id,
                    marker.producer_epoch,
                    marker.transaction_result,
                    marker.coordinator_epoch,
                    marker.transaction_version,
                )
            )
        return WritableTxnMarkerPartitionResult(name.partition, code)

    def send(self, request: Any, capabilities: frozenset[str] = V2, *, internal: bool = False) -> int:
        self.tickets += 1
        ticket = self.tickets
        parts = self.service.split(request, 50)
        context = RequestContext("c", capabilities=capabilities, internal=internal)
        assert len(parts) <= 1
        self.parked[ticket] = request
        if parts:
            decision = self.machine.on_request(parts[0][1], context, ticket, self.wall_ms, self.mono_ms)
            self.decided = list(decision.records)
            self.run(decision)
        else:
            self._deliver(ticket, self.service.join(request, (), context))
        return ticket

    def ask(self, request: Any, capabilities: frozenset[str] = V2, *, internal: bool = False) -> Any:
        """The answer, which must come at once."""
        return self.answers.pop(self.send(request, capabilities, internal=internal))

    # ------------------------------------------------------------ invariants

    def check(self) -> None:
        coordinator, fresh = self.machine.coordinator, self.fresh()
        assert self.machine.transactions == fresh.transactions
        assert coordinator.ongoing == {
            name for name, txn in coordinator.transactions.items() if txn.state is State.ONGOING
        }
        assert set(coordinator.endings) == {name for name, txn in coordinator.transactions.items() if txn.is_ending}
        assert coordinator.waiting == {
            name for name, ending in coordinator.endings.items() if ending.due_ms is not None
        }
        assert not coordinator._last_epochs, "something was decided and never replayed"
        deadline = self.machine.next_deadline()
        if coordinator.ongoing or coordinator.waiting:
            assert deadline is not None
        asked = {token for token, _ in self.sends} | set(self.at_hand)
        asked |= {token for held, _ in self.under_way for token, _ in held.sends}
        for name, ending in coordinator.endings.items():
            assert ending.left or ending.due_ms is not None
            on_its_way = (name, ending.producer_id, ending.epoch) in asked
            assert on_its_way or ending.due_ms is not None, f"nobody carries {name} out"

    def states(self) -> list[str]:
        """The states in the log, in order, checked against the table."""
        found: list[str] = []
        last: dict[str | None, State] = {}
        for record in self.log:
            assert record.key is not None
            name = decode_key(record.key)
            state = State.DEAD if record.value is None else decode_value(record.value).state
            before = last.get(name, State.EMPTY)
            before = State.EMPTY if before is State.DEAD else before
            nexts = {after for (at, _), after in TRANSITIONS.items() if at is before}
            assert state in nexts, f"{name}: {before} → {state}"
            last[name] = state
            found.append(state.value)
        return found

    # ------------------------------------------------------------ what clients say

    def txn(self, name: str = "tx") -> Transaction | None:
        found: Transaction | None = self.machine.transactions.get(name)
        return found

    @property
    def state(self) -> str:
        txn = self.txn()
        return txn.state.value if txn else "Dead"

    def init(self, name: str = "tx", producer_id: int = -1, epoch: int = -1, timeout_ms: int = 60_000) -> Any:
        """(producer id, epoch), or the error code."""
        answer = self.ask(InitProducerIdRequest(name, timeout_ms, producer_id, epoch))
        return answer.error_code or (answer.producer_id, answer.producer_epoch)

    def adding(
        self, who: tuple[int, int], *partitions: tuple[str, int], name: str = "tx", verify: bool = False
    ) -> AddPartitionsToTxnRequest:
        topics = [AddPartitionsToTxnTopic(topic, [number]) for topic, number in partitions or [("orders", 0)]]
        return AddPartitionsToTxnRequest([AddPartitionsToTxnTransaction(name, *who, verify, topics)])

    def add(
        self,
        who: tuple[int, int],
        *partitions: tuple[str, int],
        name: str = "tx",
        verify: bool = False,
        capabilities: frozenset[str] = V1,
        internal: bool = False,
    ) -> Any:
        """Error codes of the partitions; one code where all have the same."""
        request = self.adding(who, *partitions, name=name, verify=verify)
        (result,) = self.ask(request, capabilities, internal=internal).results_by_transaction
        codes = [row.partition_error_code for topic in result.topic_results for row in topic.results_by_partition]
        return codes[0] if len(set(codes)) == 1 else codes

    def add_offsets(self, who: tuple[int, int], group: str, name: str = "tx") -> int:
        return int(self.ask(AddOffsetsToTxnRequest(name, *who, group)).error_code)

    def end(self, who: tuple[int, int], committed: bool = True, *, name: str = "tx", v2: bool = False) -> Any:
        """The error code; of v2 the (producer id, epoch) to go on with."""
        answer = self.ask(EndTxnRequest(name, *who, committed), V2 if v2 else V1)
        return answer.error_code or ((answer.producer_id, answer.producer_epoch) if v2 else 0)

    def marks(self) -> list[tuple[str, int, bool]]:
        """(partition, epoch, committed) of the markers since the last look, sorted by partition."""
        found = sorted((str(mark.partition), mark.epoch, mark.committed) for mark in self.written)
        self.written.clear()
        return found


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def make_world() -> Callable[..., World]:
    return World


def used_up(world: World, names: Iterable[str] = ("tx",)) -> None:
    """Bring transactional ids to the last epoch that a producer is given."""
    for name in names:
        txn = evolve(world.machine.transactions[name], epoch=32_766)
        world.machine.coordinator.begin(world.wall_ms, world.mono_ms)
        world.machine.coordinator.append(name, txn)
        world.run(world.machine.coordinator.finish())


@pytest.fixture
def use_up() -> Callable[..., None]:
    return used_up
