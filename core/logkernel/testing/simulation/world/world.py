"""One history of real brokers and real clients: faults drawn from a seed, then the healing, then the judgement."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from random import Random
from typing import Any, Final

from logkernel.cluster.gate import Gate
from logkernel.contracts import Candidates, Elected, ElectionStrategy
from logkernel.kernel import Kernel
from logkernel.storage.simdisk import SimulatedDisk
from logkernel.testing.history import check
from logkernel.testing.simulation.fault import Fault
from logkernel.testing.simulation.world.brokers_network import BrokersNetwork
from logkernel.testing.simulation.world.chores import Chores
from logkernel.testing.simulation.world.clients import COMMITTED, Clients
from logkernel.testing.simulation.world.clients_network import ClientsNetwork
from logkernel.testing.simulation.world.coordination import WorldStore
from logkernel.testing.simulation.world.faults import Faults
from logkernel.testing.simulation.world.loop import owned_process
from logkernel.testing.simulation.world.processes import Process
from logkernel.testing.simulation.world.promises import Promises
from logkernel.testing.simulation.world.schedule import CALM_MS, FAULTS_MS, Shape, draw_schedule
from logkernel.testing.simulation.world.stage import Stage
from logkernel.vocabulary import TopicPartition

FORMED_MS: Final = 5_000
HEALED_MS: Final = 30_000
"""A healed cluster is whole, and all its clients make progress, after this long or never."""
PROGRESS: Final = 2
"""What each writer has to get through when all is healed."""
LOOK_MS: Final = 25


class Election:
    """An election strategy whose winners the promises know: an unclean one may lose records, if it says so."""

    def __init__(self, strategy: ElectionStrategy, promises: Promises) -> None:
        self.strategy = strategy
        self.promises = promises

    def elect(self, candidates: Candidates) -> Elected | None:
        elected = self.strategy.elect(candidates)
        if elected is not None and not elected.clean:
            self.promises.stage.rare["unclean election"] += 1
            self.promises.declared.add((elected.leader, tuple(elected.isr)))
        return elected


def _no_log() -> Any:
    raise AssertionError("a coordination in memory keeps no log")


class WorldKernel(Kernel):
    """The plugins of all brokers and clients of one world."""

    promises: Promises

    def election(self, name: str, settings: Mapping[str, Any]) -> ElectionStrategy:
        return Election(super().election(name, settings), self.promises)


class World:
    """One history. `shape` and `schedule` are drawn from the seed where they are not given."""

    def __init__(
        self,
        seed: int,
        *,
        shape: Shape | None = None,
        schedule: Iterable[Fault] | None = None,
        plugins: Collection[object] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`settings` are settings of all topics, such as the `election` or the `placement` of a plugin."""
        self.shape = shape = shape or Shape.draw(seed)
        self.schedule = draw_schedule(seed, shape) if schedule is None else tuple(schedule)
        self.stage = stage = Stage(seed)
        self.kernel = kernel = WorldKernel(plugins=plugins)
        self.network = BrokersNetwork(stage)
        self.processes: dict[int, Process] = {}
        self.promises = kernel.promises = Promises(stage, self.processes)
        self.promises.on_lawful_loss = self._lost
        self.store = WorldStore(stage, kernel.coordination("memory", _no_log), self.promises.on_commit)
        given = [f"{name}={value}" for name, value in self._settings().items()]
        for node in range(1, shape.brokers + 1):
            self.processes[node] = Process(
                stage, node, kernel, self.store, self.network, given, shape.brokers, shape.session_ms, self._power_cut
            )
        clients_network = ClientsNetwork(stage, self._gates)
        self.clients = Clients(stage, clients_network, kernel, shape)
        self.chores = Chores(stage, self.clients, shape, settings or {})
        self.faults = Faults(stage, self.network, clients_network, self.store, self.processes, shape, self._leader)

    def _settings(self) -> dict[str, Any]:
        shape = self.shape
        factor = min(3, shape.brokers)
        return {
            "log.dirs": "/memory", "num.recovery.threads.per.data.dir": 1, "auto.create.topics.enable": "false",
            "default.replication.factor": factor, "min.insync.replicas": shape.min_isr,
            "offsets.topic.num.partitions": 1, "offsets.topic.replication.factor": factor,
            "transaction.state.log.num.partitions": 1, "transaction.state.log.replication.factor": factor,
            "transaction.state.log.min.isr": min(shape.min_isr, factor),
            "replica.lag.time.max.ms": shape.lag_ms, "replica.fetch.wait.max.ms": min(100, shape.lag_ms // 2),
            "request.timeout.ms": 1_000, "group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 500,
            "group.consumer.heartbeat.interval.ms": 150, "group.consumer.min.heartbeat.interval.ms": 100,
            "group.consumer.session.timeout.ms": 1_000, "group.consumer.min.session.timeout.ms": 500,
            "log.retention.check.interval.ms": 300, "log.cleaner.backoff.ms": 200,
            "log.segment.delete.delay.ms": 100, "replica.high.watermark.checkpoint.interval.ms": 300,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
        }  # fmt: skip

    @property
    def chronicle(self) -> Stage:
        return self.stage

    # ------------------------------------------------------------ what the parts ask

    def _gates(self) -> dict[int, Gate]:
        return {
            node: process.managed.gate for node, process in self.processes.items() if process.managed.gate is not None
        }

    def _leader(self) -> int:
        led = [
            row.leader for topic in self.promises.image.topics.values() for row in topic.partitions if row.leader > 0
        ]
        return self.stage.random.choice(led) if led else -1

    def _power_cut(self, process: Process, disk: SimulatedDisk) -> None:
        logs = process.last_logs
        self.promises.on_power_cut(process.node, ((log.topic_id, name, log) for name, log in logs.items()))

    def _lost(self, name: TopicPartition, offset: int, why: str) -> None:
        self.clients.history.lose(name.topic, name.partition, offset, why)

    # ------------------------------------------------------------ running

    def run(self) -> World:
        """Raises Violation."""
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            with owned_process(self.stage.loop, Random(f"process {self.stage.seed}")):
                try:
                    self.stage.loop.run(self._live())
                finally:
                    self.stage.loop.end()
        finally:
            logging.disable(before)
        return self

    async def _live(self) -> None:
        stage = self.stage
        stage.loop.after_event = self.promises.look
        for process in self.processes.values():
            process.start_later(stage.random.random() * 20)
        await self._until(self._unformed, FORMED_MS)
        await self.chores.create_topics()
        self.faults.begin(self.schedule)
        self.clients.begin()
        chores = stage.spawn(self.chores.go_on())
        await asyncio.sleep((CALM_MS + FAULTS_MS) / 1000)
        self.faults.heal()
        await self._heal()
        await chores
        await self.clients.end()
        await self._until(self.promises.unhealed, HEALED_MS)
        await self._judge()
        await self.clients.close_all()

    async def _until(self, why_not: Any, most_ms: int) -> None:
        """Wait until `why_not()` says None."""
        end_ms = self.stage.now_ms + most_ms
        while (why := why_not()) is not None:
            if self.stage.now_ms > end_ms:
                self.stage.fail(f"not so after {most_ms} ms: {why}")
            await asyncio.sleep(LOOK_MS / 1000)

    def _unformed(self) -> str | None:
        if self.store.controller_id is None:
            return "there is no controller"
        if self.store.brokers.keys() != self.processes.keys():
            return f"only {sorted(self.store.brokers)} are announced"
        return None

    async def _heal(self) -> None:
        """Everybody is there, every replica in sync, every client makes progress."""
        clients = self.clients
        wanted = {writer: clients.acknowledged[writer] + PROGRESS for writer in clients.writers}

        def stuck() -> str | None:
            for process in self.processes.values():
                if process.state != "running":
                    return f"broker {process.node} is {process.state}"
            for writer, count in wanted.items():
                if clients.acknowledged[writer] < count:
                    return f"{writer} makes no progress"
            return None

        await self._until(stuck, HEALED_MS)

    async def _judge(self) -> None:
        """Everything is over: what the clients saw has to be explained."""
        self.stage.note("judge")
        for topic, count in self.clients.partitions.items():
            if topic not in self.promises.image.topics:
                continue  # its deletion was kept, and the answer lost
            for partition in range(count):
                for isolation in ("read_uncommitted", COMMITTED):
                    await self.clients.read_whole(topic, partition, isolation)
        for anomaly in check(self.clients.history):
            self.stage.fail(str(anomaly))
