"""Several brokers in this process: `logkernel.open_cluster`.

    with logkernel.open_cluster(brokers=3) as cluster:
        cluster.create_topic("orders", partitions=3, replication_factor=3)
        with cluster.producer(acks="all") as producer:
            producer.send("orders", b"value").result()
        cluster.kill(cluster.leader("orders", 0))

One event loop in a thread runs all brokers. They share the coordination and the network between them, and nothing else:
each has its own plugins, files and listeners.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from logkernel.client import shutdown
from logkernel.client.factory import ClientFactory
from logkernel.cluster.client_host import ClientHost
from logkernel.cluster.folder import broker_folder, open_store
from logkernel.cluster.gate import Gate
from logkernel.cluster.inspector import Inspector
from logkernel.cluster.loop_thread import LoopThread
from logkernel.cluster.managed_broker import Environment, ManagedBroker
from logkernel.cluster.memory import memory_disks, memory_store
from logkernel.cluster.network import ProcessNetwork
from logkernel.cluster.snapshot import ClusterSnapshot
from logkernel.config.listeners import address, parse_listeners
from logkernel.config.sources import RawSetting, from_keywords
from logkernel.config.values import topic_settings
from logkernel.errors import ConfigError, LogkernelError
from logkernel.kernel import Kernel

if TYPE_CHECKING:
    from logkernel.client.admin.client import Admin
    from logkernel.client.consumer.consumer import Consumer
    from logkernel.client.producer.producer import Producer
    from logkernel.controller.image import Partition
    from logkernel.storage.memory_disk import MemoryDisk

T = TypeVar("T")
LISTENER = "PLAINTEXT"


class Cluster:
    """An open cluster. Use as a context manager, or call `close`."""

    def __init__(
        self,
        brokers: int = 3,
        path: str | Path | None = None,
        *,
        listen: bool | Mapping[int, str] = False,
        listener: str = LISTENER,
        config: str | None = None,
        overrides: Sequence[str | RawSetting] = (),
        own: Mapping[int, Sequence[RawSetting]] | None = None,
        racks: Mapping[int, str] | None = None,
        session_timeout_ms: int = 2_000,
        over_sockets: bool = False,
        plugins: Iterable[object] = (),
        environment: Callable[[int], Environment] = lambda node: Environment(),
        disk: Callable[[], MemoryDisk] | None = None,
    ) -> None:
        """`listen` is node id → "host:port", or True for free ports of 127.0.0.1; `listener` is its name, which
        listener.security.protocol.map gives a protocol. `own` is node id → settings of that broker alone, `racks` node
        id → its `broker.rack`. `over_sockets`: brokers reach one another over their listeners, as those of several
        machines do, not by the network of the process, so that they can be killed and stopped, but neither paused nor
        cut off. `plugins` are for brokers and for clients that are made here. `environment` is asked at each start of a
        broker, `disk` for each broker in memory."""
        if brokers < 1:
            raise ConfigError(f"brokers={brokers}: a cluster needs at least 1 broker")
        for node in racks or ():
            if not 1 <= node <= brokers:
                raise ConfigError(f"racks: there is no broker {node}; they are numbered from 1 to {brokers}")
        if over_sockets and not listen:
            raise ConfigError("brokers that reach one another over sockets listen; open the cluster with listen=True")
        self._closed = False
        self._over_sockets = over_sockets
        self._kernel: Kernel | None = None
        self._plugins = list(plugins)
        self._thread = LoopThread()
        try:
            self._store = memory_store() if path is None else open_store(path)
            self._disks = {} if path is not None else memory_disks(brokers, disk)
            self._network = ProcessNetwork(self._thread.call_soon)
            self._managed = {
                node: ManagedBroker(
                    node, self._store, self._network,
                    _overrides(path, node, [*overrides, *(own or {}).get(node, ())], racks or {}),
                    size=brokers, config=config, disk=self._disks.get(node), listen=_listeners(listen, listener, node),
                    session_timeout_s=session_timeout_ms / 1000, over_sockets=over_sockets,
                    environment=partial(self._environment_of, node, environment),
                )
                for node in range(1, brokers + 1)
            }  # fmt: skip
            self.inspector = Inspector(self._managed)
            """What the brokers know; for tests and tools, too."""
            self._factory = ClientFactory(self.kernel)
            shutdown.made(self)
            shutdown.listens(self, lambda timeout_s: self.close())
            self._thread.wait(self._start(self._managed))
        except BaseException:
            self.close()
            raise

    def _environment_of(self, node: int, environment: Callable[[int], Environment]) -> Environment:
        found = environment(node)
        return found._replace(plugins=[*self._plugins, *found.plugins])

    async def _start(self, nodes: Iterable[int]) -> None:
        for node in nodes:
            await self._managed[node].start()
        deadline_s = time.monotonic() + 30
        while not self.inspector.is_formed():
            if time.monotonic() > deadline_s:
                raise LogkernelError("the brokers found no controller in 30 s; their log says why")
            await asyncio.sleep(0)

    # ------------------------------------------------------------ life

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Stop every broker cleanly; may be called twice."""
        if self._closed:
            return
        for client in self._factory.let_go() if hasattr(self, "_factory") else ():
            client.close()
        self._closed = True
        shutdown.listens_no_more(self)
        try:
            if hasattr(self, "_managed"):
                self._thread.wait(self._stop_all())
            if hasattr(self, "_store"):
                self.run(self._store.close)
        finally:
            self._thread.end()

    async def _stop_all(self) -> None:
        """Stop all at once; the last broker has no one to hand over to."""
        self._network.heal()
        for managed in self._managed.values():
            if managed.state == "paused":
                managed.resume()
        for managed in self._managed.values():
            await managed.close()

    def forked(self) -> None:
        """This is the child of a fork: loop, files and ports are the parent's."""
        self._closed = True

    def run(self, work: Callable[[], T]) -> T:
        """Do `work` on the brokers' thread."""
        return self._thread.run(work)

    # ------------------------------------------------------------ brokers

    def _managed_broker(self, node: int) -> ManagedBroker:
        found = self._managed.get(node)
        if found is None:
            raise ConfigError(f"there is no broker {node}; there are {', '.join(map(str, self._managed))}")
        return found

    @property
    def brokers(self) -> dict[int, str]:
        """Node id → "running", "paused", "stopped" or "killed"."""
        return {node: managed.state for node, managed in self._managed.items()}

    def kill(self, node: int) -> None:
        """End a broker as kill -9 would. Its session is over at once, so that others take over without a delay."""
        self._thread.wait(self._managed_broker(node).kill())

    def stop(self, node: int) -> None:
        """Stop a broker cleanly: its partitions are led elsewhere first."""
        self._thread.wait(self._managed_broker(node).stop())

    def start(self, node: int) -> None:
        """Start a broker that was killed or stopped, over the files that it left."""
        self._thread.wait(self._managed_broker(node).start())

    def pause(self, node: int) -> None:
        """Stop a broker in its tracks, as SIGSTOP would; its session ends after `session_timeout_ms`."""
        managed = self._managed_broker(node)
        self.run(managed.pause)

    def resume(self, node: int) -> None:
        """Resume a paused broker."""
        managed = self._managed_broker(node)
        self.run(managed.resume)

    def cut(self, one: Collection[int], other: Collection[int], *, both_ways: bool = True) -> None:
        """Hold all messages between two sets of brokers, or only those from `one` to `other`, until `heal`. Clients and
        the coordination are reached as before."""
        if self._over_sockets:
            raise LogkernelError(
                "cannot cut brokers off: they are connected by sockets; open the cluster without over_sockets"
            )
        for node in (*one, *other):
            self._managed_broker(node)
        self.run(lambda: self._network.cut(set(one), set(other), both_ways=both_ways))

    def heal(self) -> None:
        """End every cut and every pause."""

        def heal() -> None:
            self._network.heal()
            for managed in self._managed.values():
                if managed.state == "paused":
                    managed.resume()

        self.run(heal)

    # ------------------------------------------------------------ snapshots

    def save(self) -> ClusterSnapshot:
        """Save what the brokers have at this moment: files, metadata, who runs and who leads. They go on undisturbed.

        Raises `ConfigError` for a cluster in a folder, and `LogkernelError` while a broker is paused.
        """
        self._check_in_memory("saved")

        def saved() -> ClusterSnapshot:
            paused = [node for node, state in self.brokers.items() if state == "paused"]
            if paused:
                raise LogkernelError(f"broker {paused[0]} is paused; resume it, then save")
            files = {node: disk.snapshot() for node, disk in self._disks.items()}
            epochs = {node: epoch for node, (_, epoch, _) in self._store.brokers.items()}
            return ClusterSnapshot(files, tuple(self._store.keeper.changes()), epochs)

        return self.run(saved)

    def restore(self, snapshot: ClusterSnapshot, timeout_ms: int = 30_000) -> None:
        """Have all that was saved, and nothing that came later; the same snapshot any number of times.

        All brokers are killed, and those that ran then are started, on their ports: connections break, and clients that
        were made here are to be made anew. Cuts are healed. Returns when partitions are led by whom they were, and
        replicated. Raises `ConfigError` for a cluster in a folder, `RequestTimedOut`.
        """
        self._check_in_memory("restored")
        self._thread.wait(self._restored(snapshot))
        self._thread.wait_until(self.inspector.is_replicated, timeout_ms, "not all is led and replicated")

    def _check_in_memory(self, what: str) -> None:
        if not self._disks:
            raise ConfigError(f"only a cluster in memory can be {what}; leave out path")

    async def _restored(self, snapshot: ClusterSnapshot) -> None:
        self._network.heal()
        for managed in self._managed.values():
            await managed.kill()
        for node, files in snapshot.files.items():
            self._disks[node].restore(files)
        self._store.close()
        self._store = memory_store(snapshot.metadata, snapshot.epochs)
        for managed in self._managed.values():
            managed.store = self._store
        await self._start(snapshot.epochs)

    # ------------------------------------------------------------ topics

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        assignment: Mapping[int, Collection[int]] | None = None,
        config: Mapping[str, str] | None = None,
        timeout_ms: int = 30_000,
        **settings: Any,
    ) -> None:
        """Create a topic, and wait until every broker that runs knows its leaders. Keywords are topic settings."""
        from logkernel.admin import NewTopic

        wanted = topic_settings(config, settings)
        placed = None if assignment is None else {index: list(nodes) for index, nodes in assignment.items()}
        with self.admin() as admin:
            admin.create_topics(NewTopic(name, partitions, replication_factor, wanted, placed))
        self._thread.wait_until(lambda: self.inspector.is_led(name), timeout_ms, f"{name} has no leader everywhere")

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records. Raises `UnknownTopicOrPartition`."""
        with self.admin() as admin:
            admin.delete_topics([name])

    def topics(self) -> dict[str, int]:
        """Topic name → number of partitions, without internal topics. Raises `NoBrokerRuns`."""
        return self.run(self.inspector.topics)

    def controller(self) -> int | None:
        """The node that is the controller now."""
        return self.run(lambda: self._store.controller_id)

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """Return the node that leads the partition, None while there is no leader."""
        leader = self.run(lambda: self.inspector.partition(topic, partition).leader)
        return None if leader < 0 else leader

    def isr(self, topic: str, partition: int = 0) -> list[int]:
        """The nodes that are in sync, in the order of the assignment."""

        def found() -> list[int]:
            row = self.inspector.partition(topic, partition)
            return [node for node in row.replicas if node in row.isr]

        return self.run(found)

    def replicas(self, topic: str, partition: int = 0) -> list[int]:
        """The nodes that hold the partition; the first is the preferred leader."""
        return self.run(lambda: list(self.inspector.partition(topic, partition).replicas))

    def wait_for_isr(self, topic: str, partition: int, count: int, timeout_ms: int = 30_000) -> None:
        """Wait until `count` replicas are in sync. Raises `RequestTimedOut`."""

        def ready() -> bool:
            return self.inspector.image() is not None and len(self.inspector.partition(topic, partition).isr) >= count

        self._thread.wait_until(ready, timeout_ms, f"{topic}-{partition} has not {count} replicas in sync")

    def wait_for_leader(
        self, topic: str, partition: int = 0, *, other_than: int | None = None, timeout_ms: int = 30_000
    ) -> int:
        """Wait until the partition has a leader that is ready; return its node id. Raises `RequestTimedOut`."""

        leader = -1

        def ready() -> bool:
            nonlocal leader
            broker = self.inspector.leading_broker(topic, partition)
            leader = -1 if broker is None or broker.runtime.node_id == other_than else broker.runtime.node_id
            return leader >= 0

        self._thread.wait_until(ready, timeout_ms, f"{topic}-{partition} has no leader")
        self.run(lambda: None)  # what the other brokers are told of it was sent in the same turn
        return leader

    def move_leader(self, topic: str, partition: int = 0, *, to: int | None = None, timeout_ms: int = 30_000) -> int:
        """Have another replica in sync lead: `to`, or the first in the assignment; return its node id.

        It becomes the preferred leader, as by kafka-reassign-partitions and kafka-leader-election. Raises `ConfigError`
        for a broker that does not hold the partition, `LogkernelError` for one that is not in sync or does not run,
        `RequestTimedOut`.
        """

        def find() -> tuple[Partition, list[int]]:
            return self.inspector.partition(topic, partition), self.inspector.ready(topic, partition)

        row, ready = self.run(find)
        if to is None:
            to = next((node for node in ready if node != row.leader), None)
        elif to not in row.replicas:
            held = ", ".join(map(str, row.replicas))
            raise ConfigError(f"broker {to} has no replica of {topic}-{partition}; take one of {held}")
        if to is None or to not in ready:
            found = "no other broker both runs and is" if to is None else f"broker {to} does not run, or is not"
            raise LogkernelError(f"{found} in sync for {topic}-{partition}; start() it, and wait_for_isr() first")
        if to != row.leader:
            with self.admin(default_api_timeout_ms=timeout_ms) as admin:
                order = [to, *(node for node in row.replicas if node != to)]
                admin.alter_partition_reassignments({(topic, partition): order})
                admin.elect_leaders([(topic, partition)])

        def leads() -> bool:
            broker = self.inspector.leading_broker(topic, partition)
            return broker is not None and broker.runtime.node_id == to

        self._thread.wait_until(leads, timeout_ms, f"{topic}-{partition} is not led by broker {to}")
        return to

    # ------------------------------------------------------------ clients

    @property
    def bootstrap_servers(self) -> str:
        """ "host:port,…" of the brokers, for clients of any kind. Raises `LogkernelError` if they don't listen."""

        def found() -> list[str]:
            return [
                address(listener.host, listener.port)
                for managed in self._managed.values() if managed.server is not None
                for listener in managed.server.listeners
            ]  # fmt: skip

        addresses = self.run(found)
        if not addresses:
            raise LogkernelError("no broker of this cluster listens; open it with listen=True")
        return ",".join(addresses)

    @property
    def kernel(self) -> Kernel:
        """The plugins that clients made here use."""
        if self._kernel is None:
            self._kernel = Kernel(plugins=self._plugins)
        return self._kernel

    def producer(self, **settings: Any) -> Producer:
        """A producer into this cluster, without sockets. Keywords are Kafka's settings with `_` for `.`."""
        from logkernel.client.producer.producer import Producer

        return self._factory.producer(Producer, self._driver, settings)

    def consumer(self, *topics: str, group: str | None = None, **settings: Any) -> Consumer:
        """A consumer of this cluster, without sockets. Keywords are Kafka's settings with `_` for `.`."""
        from logkernel.client.consumer.consumer import Consumer

        return self._factory.consumer(Consumer, self._driver, topics, group, settings)

    def admin(self, **settings: Any) -> Admin:
        """An admin client of this cluster, without sockets. Keywords are Kafka's settings with `_` for `.`."""
        from logkernel.client.admin.client import Admin

        return self._factory.admin(Admin, self._driver, settings)

    def _driver(self, machine: Any, values: Mapping[str, Any]) -> Any:
        self._thread.check()
        from logkernel.client.drivers.embedded_driver import EmbeddedDriver

        return EmbeddedDriver(machine, values, self.host)

    @property
    def host(self) -> ClientHost:
        """The brokers as a client in this process reaches them."""
        return ClientHost(self._thread, self.gate)

    def disk(self, node: int) -> MemoryDisk | None:
        """The disk of a broker in memory."""
        return self._disks.get(self._managed_broker(node).node_id)

    def gate(self, node: int) -> Gate:
        """The door of broker `node`, of any that runs for a negative number. Raises `ConnectionError`."""
        running = [each for each in self._managed.values() if each.state == "running" and each.gate is not None]
        if node >= 0:
            running = [each for each in running if each.node_id == node]
        if not running:
            raise ConnectionRefusedError(f"broker {node} does not run" if node >= 0 else "no broker runs")
        found = running[0].gate
        assert found is not None
        return found


def _overrides(
    path: str | Path | None, node: int, given: Sequence[str | RawSetting], racks: Mapping[int, str]
) -> list[str | RawSetting]:
    rack = [f"broker.rack={racks[node]}"] if node in racks else []
    return [*given, *rack, f"log.dirs={'/memory' if path is None else broker_folder(path, node)}"]


def _listeners(listen: bool | Mapping[int, str], name: str, node: int) -> list[tuple[str, str, int]]:
    if not listen:
        return []
    where = "127.0.0.1:0" if listen is True else listen.get(node, "127.0.0.1:0")
    named = where if "://" in where else f"{name}://{where}"
    return [(each.name, each.host or "127.0.0.1", each.port) for each in parse_listeners(named)]


def open_cluster(
    brokers: int = 3,
    path: str | Path | None = None,
    *,
    listen: bool = False,
    config: str | None = None,
    racks: Mapping[int, str] | None = None,
    session_timeout_ms: int = 2_000,
    plugins: Iterable[object] = (),
    **settings: Any,
) -> Cluster:
    """Open a cluster in this process: durable in the folder `path`, or in memory without one.

    `listen` opens a port of 127.0.0.1 for each broker (`Cluster.bootstrap_servers`). `racks` says in which rack each
    broker is: `{1: "a", 2: "b"}`. A paused broker's session ends after `session_timeout_ms`. `config` is a file with
    settings and topics; `plugins` are modules or objects with hooks, in addition to those that are installed; other
    keywords are broker settings with `_` for `.`, the same for all. Raises `DataDirectoryLocked` where another process
    has the folder, `ConfigError` for a bad setting.
    """
    return Cluster(
        brokers, path, listen=listen, config=config, overrides=from_keywords(settings, "open_cluster"), racks=racks,
        session_timeout_ms=session_timeout_ms, plugins=plugins,
    )  # fmt: skip
