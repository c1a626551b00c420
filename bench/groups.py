"""Measures of consumer groups: rebalances, commits, and a start with many committed offsets."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import clients
import process
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

if TYPE_CHECKING:
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Barrier

    from rig import Rig, Samples
    from server import Server

MEMBERS, PARTITIONS = 10, 30
COMMIT_S, COMMIT_WARM_S = 4.0, 3.0
CLIENTS = 20
OFFSETS = 1_000_000
GROUPS, TOPICS = 10_000, 10
START_PARTITIONS = OFFSETS // GROUPS // TOPICS
BATCH_OFFSETS = 100
"""Offsets of one commit: a consumer of 100 partitions."""
ASKERS = 10
OFFSETS_TOPIC = "__consumer_offsets"
NO_COORDINATOR_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


def _name() -> str:
    return f"bench-{uuid.uuid4().hex[:10]}"


# ---------------------------------------------------------------- rebalance


class _Member:
    """One consumer in a thread of its own, which polls until it is told to end."""

    def __init__(self, bootstrap: str, topic: str, settings: dict[str, str]) -> None:
        self.owned: frozenset[int] = frozenset()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(bootstrap, topic, settings), daemon=True)
        self._thread.start()

    def _run(self, bootstrap: str, topic: str, settings: dict[str, str]) -> None:
        consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
        consumer.subscribe([topic])
        while not self._end.is_set():
            consumer.poll(0.05)
            self.owned = frozenset(part.partition for part in consumer.assignment())
        consumer.close()

    def end(self) -> None:
        self._end.set()

    def join(self) -> None:
        self._thread.join(60)


def _is_stable(members: Sequence[_Member], partitions: int) -> bool:
    """Whether everybody has its part and all partitions have one owner."""
    owned = [member.owned for member in members]
    return all(owned) and sum(map(len, owned)) == partitions == len(frozenset().union(*owned))


def _stable_ms(members: Sequence[_Member], partitions: int) -> float:
    """Wait until the group is stable."""
    begun = time.perf_counter()
    while not _is_stable(members, partitions):
        if time.perf_counter() > begun + clients.WAIT_S:
            raise TimeoutError(f"not stable: {[sorted(member.owned) for member in members]}")
        time.sleep(0.002)
    return (time.perf_counter() - begun) * 1000


def rebalance(rig: Rig) -> Samples:
    """A new group of ten, from the first to join until all have their parts, with Kafka's default first delay of 3 s
    at both; for the new protocol, which has none, with its default heartbeat of 5 s."""
    found: Samples = {}
    for protocol in ("classic", "consumer"):
        topic, group = _name(), _name()
        bootstrap = rig.shared.bootstrap
        clients.create_topic(bootstrap, topic, PARTITIONS)
        warm = _Member(bootstrap, topic, {"group.id": _name(), "group.protocol": protocol})
        _stable_ms([warm], PARTITIONS)  # the topic of the offsets is there from now on
        warm.end()
        warm.join()
        settings = {"group.id": group, "group.protocol": protocol}
        before = process.cpu_s(rig.shared.pid)
        members = [_Member(bootstrap, topic, settings) for _ in range(MEMBERS)]
        joined = _stable_ms(members, PARTITIONS)
        spent = process.cpu_s(rig.shared.pid) - before
        for member in members:
            member.end()
        for member in members:
            member.join()
        label = f"rebalance of {MEMBERS}, {protocol}"
        found |= {f"{label}, join to stable": joined, f"{label}, broker CPU": spent * 1000}
    return found


# ---------------------------------------------------------------- commits


def rate(number: int, seconds: float, step: Callable[[int], Callable[[], None]]) -> float:
    """How often a second `number` threads together take their steps; `step(thread)` makes each its own."""
    end: list[float] = []

    def begin() -> None:
        end.append(time.perf_counter() + seconds)

    def run(act: Callable[[], None]) -> int:
        count = 0
        while time.perf_counter() < end[0]:
            act()
            count += 1
        return count

    counts, took = _threads(number, step, begin, run)
    return sum(counts) / took


def together(number: int, times: int, step: Callable[[int], Callable[[], None]]) -> float:
    """Seconds in which each of `number` threads takes `times` steps."""

    def run(act: Callable[[], None]) -> int:
        for _ in range(times):
            act()
        return times

    return _threads(number, lambda index: _unstepped(step(index)), lambda: None, run)[1]


def _unstepped(act: Callable[[], None]) -> Callable[[], None]:
    """Its first call does nothing."""
    calls = iter([False])

    def later() -> None:
        if next(calls, True):
            act()

    return later


def _threads(
    number: int,
    step: Callable[[int], Callable[[], None]],
    begin: Callable[[], None],
    run: Callable[[Callable[[], None]], int],
) -> tuple[list[int], float]:
    """Have every thread take one step; then, begun together, what each counts, and the seconds until the last ended."""
    counts: list[int] = []
    failed: list[BaseException] = []
    gate = threading.Barrier(number, action=begin)
    begun: list[float] = []

    def work(index: int) -> None:
        try:
            act = step(index)
            act()
            gate.wait(60)
            begun.append(time.perf_counter())
            counts.append(run(act))
        except BaseException as error:
            failed.append(error)
            gate.abort()

    threads = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(clients.WAIT_S)
    if failed or len(counts) < number:
        raise RuntimeError(f"{number - len(counts)} of {number} threads did not finish: {failed[:1]}")
    return counts, time.perf_counter() - min(begun)


def _committer(bootstrap: str, topic: str) -> Callable[[int], Callable[[], None]]:
    def step(index: int) -> Callable[[], None]:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-{index}"})
        offsets = itertools.count(1)

        def act() -> None:
            place = TopicPartition(topic, index % PARTITIONS, next(offsets))
            (row,) = consumer.commit(offsets=[place], asynchronous=False)
            if row.error is not None:
                raise KafkaException(row.error)

        _until_coordinated(act)
        return act

    return step


def _until_coordinated(act: Callable[[], None]) -> None:
    """The first commit makes the offsets' topic, and its coordinators may not know of it yet."""
    deadline = time.perf_counter() + clients.WAIT_S
    while time.perf_counter() < deadline:
        try:
            act()
            return
        except KafkaException as error:
            if error.args[0].code() not in NO_COORDINATOR_YET:
                raise
        time.sleep(0.05)


def _commit_apart(bootstrap: str, topic: str, index: int, gate: Barrier, told: Queue[float]) -> None:
    """One client in a process of its own: after a time to warm up, tells how often a second it committed."""
    act = _committer(bootstrap, topic)(index)
    count, begun = 0, 0.0
    for seconds in (COMMIT_WARM_S, COMMIT_S):
        gate.wait(clients.WAIT_S)
        count, begun = 0, time.perf_counter()
        while time.perf_counter() < begun + seconds:
            act()
            count += 1
    told.put(count / (time.perf_counter() - begun))


def _rate_apart(number: int, bootstrap: str, topic: str, broker: int) -> tuple[float, float]:
    """Commits a second of `number` clients together, and the broker's CPU seconds a second."""
    spawning = multiprocessing.get_context("spawn")
    gate, told = spawning.Barrier(number + 1), spawning.Queue()
    apart = [
        spawning.Process(target=_commit_apart, args=(bootstrap, topic, index, gate, told), daemon=True)
        for index in range(number)
    ]
    for each in apart:
        each.start()
    try:
        for _ in (COMMIT_WARM_S, COMMIT_S):
            gate.wait(clients.WAIT_S)
        before, begun = process.cpu_s(broker), time.perf_counter()
        reached = sum(told.get(timeout=clients.WAIT_S) for _ in apart)
        return reached, (process.cpu_s(broker) - before) / (time.perf_counter() - begun)
    finally:
        for each in apart:
            each.join(clients.WAIT_S)


def commits(rig: Rig) -> Samples:
    """Commits a second, each answered before the same client's next; each client has a group of its own."""
    topic, bootstrap = _name(), rig.shared.bootstrap
    clients.create_topic(bootstrap, topic, PARTITIONS)
    found: Samples = {}
    for number in (1, CLIENTS):
        reached, spent = _rate_apart(number, bootstrap, topic, rig.shared.pid)
        label = f"commits, {number} client{'s' if number > 1 else ''}"
        found |= {f"{label}, a second": reached, f"{label}, broker CPU": spent / reached * 1e6}
    return found


# ---------------------------------------------------------------- start


def _topic_ids(bootstrap: str, topics: Sequence[str]) -> dict[str, bytes]:
    admin, mask, ids = AdminClient({"bootstrap.servers": bootstrap}), (1 << 64) - 1, {}
    for name, future in admin.describe_topics(TopicCollection(list(topics))).items():
        found = future.result(30).topic_id
        bits = (found.get_most_significant_bits() & mask) << 64 | found.get_least_significant_bits() & mask
        ids[name] = bits.to_bytes(16, "big")
    return ids


def _offset_of(group: int, topic: int, partition: int) -> int:
    return group * 1_000_000 + topic * 1_000 + partition


def _write_offsets(data: Path, ids: dict[str, bytes], shards: int) -> None:
    """A million offsets into the logs of the offsets' topic, as if a hundred at a time had been committed."""
    from logkernel.config.topic import TopicSettings
    from logkernel.partition.producers import ProducerStates
    from logkernel.plugins.services.groups.records import CommittedOffset, encode_offset, offset_key
    from logkernel.record.batch import batches
    from logkernel.record.encode import encode_batch
    from logkernel.requests.sharding import shard_of
    from logkernel.storage.disk import RealDisk
    from logkernel.storage.log import Log
    from logkernel.vocabulary import Record

    now_ms = time.time_ns() // 1_000_000
    logs: dict[int, Log] = {}
    own: dict[int, bytes] = {}
    for group in range(GROUPS):
        number = shard_of(f"group-{group}", shards)
        if number not in logs:
            home = data / f"{OFFSETS_TOPIC}-{number}"
            own[number] = (home / "partition.metadata").read_bytes()  # the topic id is the broker's own
            shutil.rmtree(home)
            logs[number] = Log.open(
                RealDisk(), str(data), OFFSETS_TOPIC, number, TopicSettings(), producers=ProducerStates()
            )
        log, made = logs[number], []
        for topic, (name, topic_id) in enumerate(ids.items()):
            for partition in range(START_PARTITIONS):
                entry = CommittedOffset(_offset_of(group, topic, partition), 0, "", now_ms)
                entry.topic_id = topic_id
                made.append(Record(offset_key(f"group-{group}", name, partition), encode_offset(entry), (), now_ms))
        for first in range(0, len(made), BATCH_OFFSETS):
            batch = encode_batch(made[first : first + BATCH_OFFSETS], base_offset=log.end_offset, leader_epoch=0)
            log.append(batch, list(batches(batch)), now_ms)
    for number, log in logs.items():
        log.close()
        (data / f"{OFFSETS_TOPIC}-{number}" / "partition.metadata").write_bytes(own[number])


_filled: dict[tuple[str, int], Server] = {}


def _with_offsets(rig: Rig, shards: int) -> Server:
    """A stopped broker with a million committed offsets; made once, as a start leaves it as it was."""
    known = _filled.get((rig.shared.name, shards))
    if known is not None:
        return known
    server = rig.make(rig.folder / f"offsets-{time.monotonic_ns()}", {"offsets.topic.num.partitions": str(shards)})
    server.prepare()
    server.start()
    try:
        topics = [f"bench-start-{number}" for number in range(TOPICS)]
        for topic in topics:
            clients.create_topic(server.bootstrap, topic, START_PARTITIONS)
        consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "first"})
        _until_coordinated(lambda: consumer.commit(offsets=[TopicPartition(topics[0], 0, 1)], asynchronous=False))
        consumer.close()
        ids = _topic_ids(server.bootstrap, topics)
    finally:
        server.stop()
    _write_offsets(server.data, ids, shards)
    _filled[rig.shared.name, shards] = server
    return server


def _ask(bootstrap: str, group: int) -> None:
    """Return when the last partition's offset of a group has been answered right; the client asks until it is."""
    topic, partition = TOPICS - 1, START_PARTITIONS - 1
    settings = {"bootstrap.servers": bootstrap, "group.id": f"group-{group}", **clients.FAST_RECONNECT}
    consumer = Consumer(settings)
    place = TopicPartition(f"bench-start-{topic}", partition)
    deadline = time.perf_counter() + clients.WAIT_S
    while True:
        try:
            (row,) = consumer.committed([place], timeout=clients.WAIT_S)
            break
        except KafkaException:
            if time.perf_counter() > deadline:
                raise
    consumer.close()
    if row.offset != _offset_of(group, topic, partition):
        raise RuntimeError(f"group-{group}: {row.offset}")


def offsets_start(rig: Rig) -> Samples:
    """From exec to the first committed offset, and to one of each shard, with a million of them in the log: spread
    over the 50 partitions that its topic has by default, and all in one."""
    from logkernel.requests.sharding import shard_of

    found: Samples = {}
    for shards in (50, 1):
        server = _with_offsets(rig, shards)
        first_of = {shard_of(f"group-{group}", shards): group for group in reversed(range(GROUPS))}
        begun = time.perf_counter()
        server.start()
        try:
            _ask(server.bootstrap, GROUPS - 1)
            first, spent = time.perf_counter() - begun, process.cpu_s(server.pid)
            with ThreadPoolExecutor(ASKERS) as askers:
                list(askers.map(functools.partial(_ask, server.bootstrap), first_of.values()))
            where = f"offsets in {shards} partition{'s' if shards > 1 else ''}"
            found[f"start, {OFFSETS:,} {where}, first answer"] = first
            found[f"until then, {where}, broker CPU"] = spent
            if shards > 1:
                found[f"start, {OFFSETS:,} {where}, all answered"] = time.perf_counter() - begun
            found[f"resident, {where}"] = process.resident_mib(server.pid)
        finally:
            server.stop()
    return found
