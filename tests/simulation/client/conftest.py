"""One thread, one virtual clock: our producers and consumers over a network that fails, against the broker itself.

Time stands still while anything is done, and is set to the next thing that is due. Every turn of fate comes from the
seed: ids too. Who waits (a poll, a commit, a close) steps the world meanwhile.
"""

from __future__ import annotations

import heapq
import os
import time
import uuid
from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Any

import pytest
from attrs import define

import logkernel
from logkernel.client.consumer.base import consumer_settings, make_consumer_machine
from logkernel.client.consumer.consumer import Consumer
from logkernel.client.drivers.driver import Driver, closed_early, tell
from logkernel.client.drivers.embedded_driver import CAPABILITIES
from logkernel.client.producer.base import make_sender
from logkernel.client.producer.producer import Producer
from logkernel.client.settings.producer import load_producer
from logkernel.client.vocabulary import RebalanceListener
from logkernel.contracts import RequestContext
from logkernel.errors import (
    CoordinatorNotAvailable,
    IllegalGeneration,
    NetworkException,
    NotCoordinator,
    RebalanceInProgress,
    RequestTimedOut,
    StaleMemberEpoch,
    UnknownMemberId,
)
from logkernel.peer.network import Close, Connect, Transmit
from logkernel.requests.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from logkernel.requests.data import ProduceRequest
from logkernel.requests.groups import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    SyncGroupRequest,
    SyncGroupResponse,
)
from logkernel.vocabulary import TopicPartition

TOPIC = "t"
BROKER: dict[str, Any] = {
    "group_initial_rebalance_delay_ms": 0,
    "group_min_session_timeout_ms": 1000,
    "group_consumer_heartbeat_interval_ms": 200,
    "group_consumer_min_heartbeat_interval_ms": 200,
    "group_consumer_session_timeout_ms": 2500,
    "group_consumer_min_session_timeout_ms": 2500,
}
CONSUMER: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "max_poll_interval_ms": 3000,
    "request_timeout_ms": 900,
    "default_api_timeout_ms": 4000,
    "fetch_max_wait_ms": 100,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 100,
    "retry_backoff_ms": 10,
    "retry_backoff_max_ms": 200,
    "socket_connection_setup_timeout_ms": 300,
    "metadata_max_age_ms": 2000,
}
COMMIT_ERRORS = (RebalanceInProgress, UnknownMemberId, IllegalGeneration, StaleMemberEpoch, RequestTimedOut)


@define
class Faults:
    """How likely each misfortune is, a request, and how long anything may take."""

    lose_request: float = 0.0
    lose_answer: float = 0.0
    repeat_answer: float = 0.0
    connect_fails: float = 0.0
    late: float = 0.0
    """Beyond request.timeout.ms: the request arrives all the same."""
    longest_ms: int = 15


ROUGH = Faults(0.015, 0.015, 0.05, 0.1, 0.01, 40)
FAIR = Faults(longest_ms=3)


def refused(request: Any) -> Any:
    """The answer of a broker that is no coordinator any more; None for what is asked of others."""
    code = NotCoordinator.code
    if isinstance(request, FindCoordinatorRequest):
        row = Coordinator(request.key, -1, "", -1, CoordinatorNotAvailable.code)
        return FindCoordinatorResponse(coordinators=[row], error_code=row.error_code)
    if isinstance(request, OffsetFetchRequest):
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(one.group_id, [], code) for one in request.groups])
    if isinstance(request, OffsetCommitRequest):
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    topic.name, [OffsetCommitResponsePartition(row.partition_index, code) for row in topic.partitions]
                )
                for topic in request.topics
            ]
        )
    for kind, answer in (
        (JoinGroupRequest, JoinGroupResponse),
        (SyncGroupRequest, SyncGroupResponse),
        (HeartbeatRequest, HeartbeatResponse),
        (ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse),
    ):
        if isinstance(request, kind):
            return answer(error_code=code)
    return None


class SimDriver(Driver):
    """Steps a machine in the world's time; who waits steps the world."""

    def __init__(self, world: World, machine: Any, settings: Any) -> None:
        super().__init__(machine, settings)
        self.world = world
        self.due_ms: int | None = world.now_ms
        self.links: dict[int, int] = {}
        """Connection → the time before which nothing more arrives on it: order is kept."""
        self.user: User | None = None
        world.drivers.append(self)

    def wake(self) -> None:
        self.due_ms = self.world.now_ms

    def happened(self, event: Callable[[int], None]) -> None:
        self._events.append(event)
        self.wake()

    def perform(self, action: Any) -> None:
        network, number, world = self.machine.core.network, action.number, self.world
        if isinstance(action, Close):
            self.links.pop(number, None)
        elif isinstance(action, Connect):
            if world.chance(world.faults.connect_fails):
                world.later(lambda: self.happened(lambda now: network.on_lost(number, NetworkException("no"), now)))
            else:
                world.later(lambda: self.connected(number))
        elif isinstance(action, Transmit) and number in self.links:
            world.transmit(self, action)

    def connected(self, number: int) -> None:
        self.links[number] = 0
        self.happened(lambda now: self.machine.core.network.on_connected(number, {}, now))

    def cut(self, number: int) -> None:
        if self.links.pop(number, None) is not None:
            self.happened(lambda now: self.machine.core.network.on_lost(number, NetworkException("cut"), now))

    def wait(self, ready: Callable[[], bool], deadline_s: float | None, under_way: bool = False) -> bool:
        until_ms = self.world.now_ms + 600_000 if deadline_s is None else int(deadline_s * 1000)
        self.wake()
        while not ready() and self.world.now_ms < until_ms:
            self.world.turn(until_ms)
        return ready()

    def wait_outcome(self, pending: Any, deadline_s: float | None) -> bool:
        return self.wait(lambda: bool(pending.done), deadline_s)

    def end(self, deadline_s: float | None) -> None:
        self.wait(lambda: not self.machine.busy, deadline_s)
        self.closed = True
        self.world.drivers.remove(self)
        self.machine.abandon(closed_early(self.machine))
        finished, _ = self._take_finished()
        for found in finished:
            tell(found)

    def end_soon(self) -> None:
        raise AssertionError("nobody is forgotten here")


class World:
    """See the module."""

    def __init__(self, seed: int, partitions: int) -> None:
        self.random = Random(seed)
        self.now_ms = 1_000_000
        self.faults = FAIR
        self.drivers: list[SimDriver] = []
        self.users: list[User] = []
        self.moving_until_ms = 0
        self.partitions = partitions
        self.high = dict.fromkeys(self.names(), 0)
        """One past the highest offset that anybody was given."""
        self.given: dict[tuple[TopicPartition, int], bytes] = {}
        self.acked: dict[tuple[TopicPartition, int], bytes] = {}
        self.deliveries = 0
        self.failed_commits = 0
        self.failed: list[Exception] = []
        self.seen_requests: dict[str, int] = {}
        self._order = count()
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self.log: logkernel.EmbeddedLog = None  # type: ignore[assignment]
        self.producer: Producer = None  # type: ignore[assignment]

    def start(self) -> None:
        self.log = logkernel.open(**BROKER)
        self.log.create_topic(TOPIC, self.partitions)
        values = load_producer({"request_timeout_ms": 900, "retry_backoff_ms": 10, "linger_ms": 5})
        driver = SimDriver(self, make_sender(values, [("broker", 1)], self.log.kernel), values)
        self.producer = Producer(driver, self.log.kernel, values)

    def names(self) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, index) for index in range(self.partitions)]

    # ------------------------------------------------------------ time

    def later(self, what: Callable[[], None], at_ms: int | None = None) -> None:
        when = self.now_ms + self.random.randint(0, self.faults.longest_ms) if at_ms is None else at_ms
        heapq.heappush(self._heap, (when, next(self._order), what))

    def chance(self, likely: float) -> bool:
        return self.random.random() < likely

    def turn(self, until_ms: int) -> None:
        """Do what is due, or set the clock to what is due next."""
        idle = True
        while self._heap and self._heap[0][0] <= self.now_ms:
            heapq.heappop(self._heap)[2]()
            idle = False
        broker_ms = self.log.step()
        times = [until_ms] if broker_ms is None else [until_ms, broker_ms]
        for driver in list(self.drivers):
            if driver.due_ms is not None and driver.due_ms <= self.now_ms:
                driver.due_ms = None
                next_ms = driver.turn()
                if next_ms is not None and driver.due_ms is None:
                    driver.due_ms = max(next_ms, self.now_ms + 1)
                idle = False
            if driver.due_ms is not None:
                times.append(driver.due_ms)
        if idle:
            times += [self._heap[0][0]] if self._heap else []
            self.now_ms = max(self.now_ms + 1, min(times))

    def run(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while self.now_ms < end_ms:
            self.turn(end_ms)

    # ------------------------------------------------------------ the network

    def transmit(self, driver: SimDriver, action: Transmit) -> None:
        number, request = action.number, action.request
        kind = type(request).__name__
        self.seen_requests[kind] = self.seen_requests.get(kind, 0) + 1
        if isinstance(request, OffsetCommitRequest) and driver.user is not None:
            driver.user.check_commit(request)
        if isinstance(request, ProduceRequest):
            for topic in request.topic_data:
                for row in topic.partition_data:
                    row.records = bytes(row.records or b"")  # as it is now: on a wire it cannot change
        delay_ms = self.random.randint(0, self.faults.longest_ms)
        if self.chance(self.faults.late):
            delay_ms += 1500
        at_ms = max(driver.links[number], self.now_ms + delay_ms)
        driver.links[number] = at_ms
        lost = self.chance(self.faults.lose_request)
        self.later(lambda: driver.cut(number) if lost else self.arrived(driver, action), at_ms)

    def arrived(self, driver: SimDriver, action: Transmit) -> None:
        """Also where the client has gone: bytes were under way."""
        request = action.request
        answer = refused(request) if self.now_ms < self.moving_until_ms else None
        if answer is not None:
            self.answered(driver, action, answer)
            return
        context = RequestContext(
            client_id="sim", software_name="logkernel", capabilities=CAPABILITIES - action.withheld
        )
        self.log.broker.submit(request, context, lambda response: self.answered(driver, action, response))

    def answered(self, driver: SimDriver, action: Transmit, response: Any) -> None:
        number, network = action.number, driver.machine.core.network
        if number not in driver.links or driver.closed:
            return
        if self.chance(self.faults.lose_answer):
            self.later(lambda: driver.cut(number))
            return
        times = 2 if self.chance(self.faults.repeat_answer) else 1
        at_ms = max(driver.links[number], self.now_ms + self.random.randint(0, self.faults.longest_ms))
        driver.links[number] = at_ms

        def back() -> None:
            if number in driver.links:
                for _ in range(times):
                    driver.happened(lambda now: network.on_response(number, action.request_id, response, now))

        self.later(back, at_ms)

    def move_coordinator(self) -> None:
        self.moving_until_ms = self.now_ms + self.random.randint(20, 800)

    # ------------------------------------------------------------ what happens

    def send(self, number: int) -> None:
        name = TopicPartition(TOPIC, self.random.randrange(self.partitions))
        value = b"%06d" % number

        def told(metadata: Any, error: Exception | None) -> None:
            if error is not None:
                self.failed.append(error)
            else:
                self.acked[(name, metadata.offset)] = value

        at_ms = time.time_ns() // 1_000_000
        self.producer.send(TOPIC, value, partition=name.partition, timestamp_ms=at_ms, on_delivery=told)

    def join(self, **settings: Any) -> User:
        user = User(self, settings)
        self.users.append(user)
        return user

    def settle(self) -> None:
        """Fair weather, until all that was written was read."""
        self.faults, self.moving_until_ms = FAIR, 0
        self.producer.flush()
        ends = {name: self.log.end_offset(*name) for name in self.names()}
        end_ms = self.now_ms + 300_000
        while any(self.high[name] < ends[name] for name in ends) or any(user.lags() for user in self.users):
            assert self.now_ms < end_ms, (self.high, ends, [user.consumer.lag for user in self.users])
            for user in self.users:
                user.poll()
            self.run(20)
        for user in list(self.users):
            user.close()
        self.producer.close()

    def check(self) -> int:
        """What was acknowledged lies there once and in order; all of it was given, as it lies there."""
        assert self.failed == []
        total = 0
        for name in self.names():
            rows = list(self.log.read(TOPIC, partition=name.partition))
            values = [row.value for row in rows]
            assert values == sorted(set(values)), "order, and once"
            for row in rows:
                assert self.acked[(name, row.offset)] == row.value
                assert self.given[(name, row.offset)] == row.value, "nothing is skipped"
            total += len(rows)
        assert total == len(self.acked)
        return total


class User(RebalanceListener):
    """Somebody with a consumer of the group, who polls when he likes, and holds what he is given against it."""

    def __init__(self, world: World, settings: dict[str, Any]) -> None:
        self.world = world
        self.held: set[TopicPartition] = set()
        self.next: dict[TopicPartition, int] = {}
        """What must come next of those that gave something since they were assigned."""
        self.rewound = False
        self.busy_until_ms = 0
        values = consumer_settings((), "g", {**CONSUMER, **settings})
        self.driver = SimDriver(world, make_consumer_machine(values, [("broker", 1)], world.log.kernel), values)
        self.driver.user = self
        self.consumer = Consumer(self.driver, world.log.kernel, values)
        self.consumer.subscribe([TOPIC], self)

    # ------------------------------------------------------------ what he hears

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        assert not self.held & set(partitions), "assigned twice"
        self.held.update(partitions)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        assert self.held >= set(partitions)
        if not self.consumer.settings["enable.auto.commit"]:
            self.commit()
        self.on_partitions_lost(partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self.held.difference_update(partitions)
        for name in partitions:
            self.next.pop(name, None)

    # ------------------------------------------------------------ what he does

    def poll(self) -> None:
        world = self.world
        for row in self.consumer.poll(0, world.random.randint(1, 30)):
            name = TopicPartition(row.topic, row.partition)
            assert name in self.held, f"{name} is not his"
            before = self.next.get(name)
            if before is None:
                assert row.offset <= world.high[name], f"{name} begins at {row.offset}: some were skipped"
            else:
                assert row.offset == before, f"{name}: {row.offset} after {before - 1}"
            self.next[name] = row.offset + 1
            world.deliveries += 1
            world.high[name] = max(world.high[name], row.offset + 1)
            assert world.given.setdefault((name, row.offset), row.value) == row.value

    def commit(self) -> None:
        try:
            self.consumer.commit(timeout_s=0.8)
        except COMMIT_ERRORS:
            self.world.failed_commits += 1

    def rewind(self) -> None:
        known = sorted(self.next.keys() & self.consumer.assignment())
        if known:
            self.rewound = True
            name = self.world.random.choice(known)
            self.next[name] = self.world.random.randint(0, self.next[name])
            self.consumer.seek(name, self.next[name])

    def check_commit(self, request: OffsetCommitRequest) -> None:
        """Nothing is committed that was not handed out."""
        for topic in request.topics:
            for row in topic.partitions:
                name = TopicPartition(topic.name, row.partition_index)
                assert row.committed_offset <= self.world.high[name]
                if name in self.next and not self.rewound:
                    assert row.committed_offset <= self.next[name]

    def lags(self) -> bool:
        return any(lag != 0 for lag in self.consumer.lag.values())

    def close(self) -> None:
        self.world.users.remove(self)
        self.consumer.close()


@pytest.fixture
def make_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    """Makes a world of a seed; its clock and its chances are the process's while it stands."""
    made: list[World] = []

    def make(seed: int, partitions: int = 4) -> World:
        world = World(seed, partitions)
        ids = Random(seed + 1)
        monkeypatch.setattr(time, "monotonic", lambda: world.now_ms / 1000)
        monkeypatch.setattr(time, "monotonic_ns", lambda: world.now_ms * 1_000_000)
        monkeypatch.setattr(time, "time_ns", lambda: (1_700_000_000_000 + world.now_ms) * 1_000_000)
        monkeypatch.setattr(os, "urandom", ids.randbytes)
        monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=ids.getrandbits(128), version=4))
        world.start()
        made.append(world)
        return world

    yield make
    for world in made:
        for user in list(world.users):
            user.close()
        world.log.close()
