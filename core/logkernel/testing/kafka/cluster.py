"""Several brokers for a test of a program that talks to Kafka: what `Kafka` has, and leaders that move and die.

    with KafkaCluster(topics={"orders": 3}) as kafka:
        with kafka.faults.move_leader(api="Produce", topic="orders"):
            run_the_program(kafka.bootstrap_servers)
        kafka.assert_produced("orders", key="ann", value={"id": 7}, within=5)

The brokers are those of `logkernel.open_cluster`, each with the watched connections of `Kafka`, and one clock for all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from logkernel.attrs_lite import frozen
from logkernel.cluster.cluster import Cluster
from logkernel.cluster.managed_broker import Environment
from logkernel.cluster.snapshot import ClusterSnapshot
from logkernel.config.listeners import ANY_HOST, address, following
from logkernel.config.sources import RawSetting, from_keywords
from logkernel.errors import ConfigError, LogkernelError, RequestTimedOut, UnknownTopicOrPartition
from logkernel.testing.kafka.apis import APIS
from logkernel.testing.kafka.broker import no_snapshot
from logkernel.testing.kafka.clock import LentClock
from logkernel.testing.kafka.cluster_log import ClusterLog
from logkernel.testing.kafka.disk import TestDisk
from logkernel.testing.kafka.due_work import do_due_work
from logkernel.testing.kafka.faults import MOVE_LEADER, RESTART, Fault, Faults
from logkernel.testing.kafka.here import settings_of
from logkernel.testing.kafka.kafka import LISTEN
from logkernel.testing.kafka.requests import ClientRequest, KeptRequests, RequestLog
from logkernel.testing.kafka.security import ListenerSecurity, Users
from logkernel.testing.kafka.view import WITHIN_S, KafkaView, Topics
from logkernel.testing.kafka.waiting import wait_for
from logkernel.testing.kafka.watch import BrokerWatch
from logkernel.testing.kafka.watched import WatchPlugin
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker

T = TypeVar("T")
FOR_CLUSTERS: Final = {
    "replica.fetch.wait.max.ms": 50, "replica.fetch.backoff.ms": 10, "auto.leader.rebalance.enable": False,
}  # fmt: skip
"""What differs from Kafka's defaults: a follower that waits for records of one partition, or whose fetch timed out by
a jump of the clock, soon asks for another. Leaders move where a test says so: if a jump moved them, the next leader and
coordinator would know nothing of what it made due."""
HERE: Final = (
    "the brokers of a KafkaCluster run in the test's process; leave out process (kill(node) ends one as kill -9 would),"
    " or run logkernel test-server --brokers"
)
ACTS_S: Final = 10.0
"""How long `close` waits for what faults do to the cluster."""
REPLICATES_S: Final = 5.0
"""How long `clock.advance` waits for replicas, before and behind the jump."""


@frozen
class KafkaClusterSnapshot:
    """What `KafkaCluster.save` saved; for the same `KafkaCluster`."""

    cluster: ClusterSnapshot
    ahead_ms: int


class KafkaCluster(KafkaView):
    """Brokers that listen on free ports of 127.0.0.1, numbered from 1. Use it as a context manager, or call `close`.

    Topics have as many replicas as there are brokers, if nothing else is said.
    """

    clock: LentClock
    faults: Faults

    def __init__(
        self,
        brokers: int = 3,
        *,
        topics: Topics = (),
        settings: Mapping[str, Any] | None = None,
        plugins: Iterable[object] = (),
        path: str | Path | None = None,
        racks: Mapping[int, str] | None = None,
        session_timeout_ms: int = 2_000,
        as_version: str | None = None,
        seed: int = 0,
        faults: str | Path | Iterable[Mapping[str, Any]] = (),
        process: bool = False,
        listen: str = LISTEN,
        advertised: str | None = None,
        security_protocol: str = "PLAINTEXT",
        users: Users = (),
        security_folder: str | None = None,
    ) -> None:
        """Start brokers in memory, or in the folder `path`.

        `racks` and `session_timeout_ms` are those of `logkernel.open_cluster`, the others those of `Kafka`, for all
        brokers; ports of `listen` and `advertised` follow one another, from that one on. A topic's settings may have
        `replication.factor`. Brokers are in this process: `process` is refused.
        Raises `ConfigError`, `PluginError`.
        """
        if process:
            raise ConfigError(f"process=True: {HERE}")
        self._requests = RequestLog()
        nodes = range(1, brokers + 1)
        self.faults = Faults(seed, APIS, self._run, nodes)
        """What goes wrong with clients' requests; those of clients that are made here are spared."""
        self.clock = LentClock(self._do_due_work, self._wait_for_watermarks)
        """Its `advance` moves the time of all brokers."""
        self._life = threading.Lock()
        """Held while a broker is started or ended."""
        self._acting: set[threading.Thread] = set()
        self._watches = {
            node: BrokerWatch(partial(self._broker, node), self.faults, self._requests, self.clock, self._act)
            for node in nodes
        }
        places, told, hosts = _addresses(listen, advertised, brokers)
        self.security = ListenerSecurity(security_protocol, users, hosts, security_folder)
        try:
            given = {**FOR_CLUSTERS, "default.replication.factor": brokers, **(settings or {})}
            rows = settings_of(given, as_version, self.security)
            self._cluster = Cluster(
                brokers, path, listen=places, listener=security_protocol, overrides=list(rows.values()),
                own={node: self._listeners(places[node], to) for node, to in told.items()}, racks=racks,
                session_timeout_ms=session_timeout_ms, plugins=plugins, environment=self._environment, disk=TestDisk,
            )  # fmt: skip
        except BaseException:
            self.security.close()
            raise
        self._log = ClusterLog(self._cluster, self.clock)
        try:
            self._add_users()
            self.create_topics(topics)
            self.faults.load(faults)
        except BaseException:
            self.close()
            raise

    def _listeners(self, listen: str, advertised: str) -> list[RawSetting]:
        name = self.security.protocol
        told = {"listeners": f"{name}://{listen}", "advertised.listeners": f"{name}://{advertised}"}
        return from_keywords(told, "listen")

    def _add_users(self) -> None:
        """Returns when every broker knows them."""
        first = next(iter(self.brokers))

        def add() -> Callable[[], bool]:
            broker = self._broker(self._cluster.controller() or first)
            assert broker is not None
            return self.security.add_users(broker)

        noted = self._run(add)
        wait_for(lambda: self._run(noted), WITHIN_S, lambda: "the cluster did not note the users")

    def _environment(self, node: int) -> Environment:
        return Environment(clock=self.clock, plugins=[WatchPlugin(self._watches[node])])

    def _broker(self, node: int) -> Broker | None:
        return self._cluster.inspector.broker(node)

    def _run(self, work: Callable[[], T]) -> T:
        """Do `work` on the brokers' thread; on this one when they are gone."""
        return work() if self._cluster.closed else self._cluster.run(work)

    # ------------------------------------------------------------ life

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End all brokers; connections break. A second call does nothing."""
        for fault in self.faults.active:
            fault.remove()
        for thread in list(self._acting):
            thread.join(ACTS_S)
        self._cluster.close()
        self.security.close()

    @property
    def closed(self) -> bool:
        return self._cluster.closed

    @property
    def cluster(self) -> Cluster:
        """The cluster inside."""
        return self._cluster

    @property
    def log(self) -> ClusterLog:
        """What is asked of whoever leads."""
        return self._log

    @property
    def bootstrap_servers(self) -> str:
        """ "host:port,…" of the brokers that run, for clients of any kind."""

        def found() -> str:
            brokers = [
                broker for node, at in self.brokers.items() if at == "running" and (broker := self._broker(node))
            ]
            ends = [broker.addresses.endpoint(self.security.protocol) for broker in brokers]
            return ",".join(address(host, port) for _, host, port, _ in ends)

        return found() or self._cluster.bootstrap_servers

    @property
    def listens(self) -> str:
        """Where the brokers that run listen."""
        return self._cluster.bootstrap_servers

    def requests_since(self, number: int, most: int, most_bytes: int) -> tuple[list[tuple[int, ClientRequest]], int]:
        """See `Kafka.requests_since`."""
        return self._run(lambda: (self._requests.since(number, most, most_bytes), self._requests.end))

    @property
    def requests(self) -> KeptRequests:
        """What clients asked of all brokers, decoded, the oldest first; the newest 10,000 are kept."""
        return self._run(lambda: KeptRequests(self._requests, self._clear_requests))

    def _clear_requests(self) -> None:
        self._run(self._requests.clear)

    # ------------------------------------------------------------ brokers

    @property
    def brokers(self) -> dict[int, str]:
        """Node id → "running", "paused", "stopped" or "killed"."""
        return self._cluster.brokers

    def kill(self, node: int) -> None:
        """See `Cluster.kill`."""
        with self._life:
            self._cluster.kill(node)

    def stop(self, node: int) -> None:
        """See `Cluster.stop`."""
        with self._life:
            self._cluster.stop(node)

    def start(self, node: int) -> None:
        """See `Cluster.start`."""
        with self._life:
            self._cluster.start(node)

    def restart(self, node: int) -> None:
        """Stop a broker cleanly, and start it."""
        with self._life:
            self._cluster.stop(node)
            self._cluster.start(node)

    def pause(self, node: int) -> None:
        """See `Cluster.pause`."""
        self._cluster.pause(node)

    def resume(self, node: int) -> None:
        """See `Cluster.resume`."""
        self._cluster.resume(node)

    def cut(self, one: Collection[int], other: Collection[int], *, both_ways: bool = True) -> None:
        """See `Cluster.cut`."""
        self._cluster.cut(one, other, both_ways=both_ways)

    def heal(self) -> None:
        """See `Cluster.heal`."""
        self._cluster.heal()

    @contextmanager
    def full_disk(self, node: int) -> Iterator[None]:
        """Meanwhile the disk of a broker has no room. Raises `ConfigError` for brokers in a folder."""
        self.fill_disk(node)
        try:
            yield
        finally:
            self.fill_disk(node, False)

    def fill_disk(self, node: int, full: bool = True) -> None:
        """Have no room on the disk of a broker from now on, or room again. Raises `ConfigError` for brokers in a
        folder."""
        disk = self._cluster.disk(node)
        if not isinstance(disk, TestDisk):
            raise ConfigError("only a broker in memory can be without room; leave out path")
        disk.is_full = full

    # ------------------------------------------------------------ snapshots

    def save(self) -> KafkaClusterSnapshot:
        """Save all that the brokers have, and their time; they go on undisturbed. Raises as `Cluster.save`."""
        with self._life:
            return KafkaClusterSnapshot(self._cluster.save(), self.clock.ahead_ms)

    def restore(self, snapshot: KafkaClusterSnapshot) -> None:
        """Have all that was saved, and nothing that came later. Connections break, and `requests` begin anew. Raises as
        `Cluster.restore`."""
        if not isinstance(snapshot, KafkaClusterSnapshot):
            raise no_snapshot(snapshot, "KafkaCluster")
        with self._life:
            for node in self.brokers:
                self._cluster.kill(node)
            self._clear_requests()
            self.clock.go_on_from(snapshot.ahead_ms)
            self._cluster.restore(snapshot.cluster)
            self._log.renew()

    # ------------------------------------------------------------ topics

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        config: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        """Create a topic, and wait until every broker that runs knows its leaders. Keywords are those of
        `Cluster.create_topic`."""
        if replication_factor != -1:
            settings["replication_factor"] = replication_factor
        super().create_topic(name, partitions, config=config, **settings)

    def controller(self) -> int | None:
        """See `Cluster.controller`."""
        return self._cluster.controller()

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """See `Cluster.leader`."""
        return self._cluster.leader(topic, partition)

    def isr(self, topic: str, partition: int = 0) -> list[int]:
        """See `Cluster.isr`."""
        return self._cluster.isr(topic, partition)

    def replicas(self, topic: str, partition: int = 0) -> list[int]:
        """See `Cluster.replicas`."""
        return self._cluster.replicas(topic, partition)

    def move_leader(self, topic: str, partition: int = 0, *, to: int | None = None) -> int:
        """See `Cluster.move_leader`."""
        return self._cluster.move_leader(topic, partition, to=to)

    def wait_for_isr(self, topic: str, partition: int, count: int, *, within: float = WITHIN_S) -> None:
        """Wait until `count` replicas are in sync. Raises `AssertionError`."""

        def problem() -> str:
            isr = self._isr_or_none(topic, partition)
            there = f"has {len(isr)} replicas in sync ({', '.join(map(str, isr))})"
            return self._missing(topic, partition) or f"{topic}-{partition} {there}, not {count}"

        wait_for(lambda: len(self._isr_or_none(topic, partition)) >= count, within, problem)

    def _isr_or_none(self, topic: str, partition: int) -> list[int]:
        try:
            return self.isr(topic, partition)
        except UnknownTopicOrPartition:  # also where there is no controller at the moment
            return []

    def wait_for_leader(
        self, topic: str, partition: int = 0, *, other_than: int | None = None, within: float = WITHIN_S
    ) -> int:
        """Wait until the partition has a leader that is ready; returns its node id. Raises `AssertionError`."""

        def leads() -> int | None:
            with suppress(UnknownTopicOrPartition, RequestTimedOut):
                return self._cluster.wait_for_leader(topic, partition, other_than=other_than, timeout_ms=0)
            return None

        def problem() -> str:
            other = "" if other_than is None else f" other than {other_than}"
            return self._missing(topic, partition) or f"{topic}-{partition} has no leader{other}"

        return wait_for(leads, within, problem)

    # ------------------------------------------------------------ faults of the cluster

    def _act(self, fault: Fault, node: int, named: Sequence[TopicPartition], go_on: Callable[[], None]) -> None:
        """See `watch.Act`. What it does takes turns of the brokers' thread, on which it is called."""

        def work() -> None:
            try:
                self._carry_out(fault, node, named)
            except LogkernelError as error:
                fault.failed = str(error)
            with suppress(LogkernelError):  # the cluster is closed
                self._run(go_on)
            self._acting.discard(threading.current_thread())

        thread = threading.Thread(target=work, name="logkernel-fault", daemon=True)
        self._acting.add(thread)
        thread.start()

    def _carry_out(self, fault: Fault, node: int, named: Sequence[TopicPartition]) -> None:
        if fault.kind == MOVE_LEADER:
            for name in named:
                if name.partition >= 0:
                    self.move_leader(*name, to=fault.to)
            return
        self.kill(node)
        if fault.kind == RESTART:
            self.start(node)

    # ------------------------------------------------------------ time

    def _wait_for_watermarks(self) -> None:
        """What is not replicated yet is not dropped by what falls due."""

        if not self._cluster.closed:
            with suppress(AssertionError):  # cut off, or without room
                wait_for(lambda: self._run(self._cluster.inspector.is_replicated), REPLICATES_S, lambda: "")

    def _do_due_work(self) -> None:
        """Have everything done that is due by the moved clock. A leader in the midst of writes takes followers for
        stuck that are behind, so those are waited for. Who leads since then may not have heard what was dropped, nor
        have known that it could be: it looks again."""
        if self._cluster.closed:
            return
        inspector = self._cluster.inspector
        before, led = self._run(lambda: (inspector.in_sync(), inspector.leaders()))
        do_due_work(inspector.running, self._run)

        def are_back() -> bool:
            now = self._run(inspector.in_sync)
            running = {node for node, at in self.brokers.items() if at == "running"}
            return all(members & running <= now.get(name, members) for name, members in before.items())

        with suppress(AssertionError):  # cut off, or without room
            wait_for(are_back, REPLICATES_S, lambda: "")
        if self._run(inspector.leaders) != led:
            self._wait_for_watermarks()
            for broker in self._run(inspector.running):
                self._run(broker.retention.drop_all)
            do_due_work(inspector.running, self._run)


def _addresses(listen: str, advertised: str | None, brokers: int) -> tuple[dict[int, str], dict[int, str], list[str]]:
    """(Node id → where it listens, node id → what clients are told where that differs, all hosts). Raises
    `ConfigError`."""
    host = listen.rpartition(":")[0].strip("[]")
    if advertised is None and host in ANY_HOST:
        advertised = "localhost:0"
    try:
        places = following(listen, brokers)
        told = {} if advertised is None else following(advertised, brokers)
    except ValueError as error:
        raise ConfigError(f"listen={listen} advertised={advertised}: {error}") from None
    return places, told, [each.rpartition(":")[0].strip("[]") for each in (listen, advertised) if each]
