"""The brokers of a simulated world as processes: each with a disk, a clock, chance and workers of its own.

A broker here is the real one, held by a `cluster.managed_broker.ManagedBroker`. What is the world's: its disk
(`storage.simdisk`), which a power cut leaves torn; its clock, which may jump; its workers, whose jobs run on the loop,
some time later.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from logkernel.broker.broker import Broker
from logkernel.broker.runtime import Randomness
from logkernel.broker.timers import Clock
from logkernel.broker.workers import Done, SteppedWorkers, Work
from logkernel.cluster.managed_broker import Environment, ManagedBroker
from logkernel.errors import LogkernelError
from logkernel.kernel import Kernel
from logkernel.storage.log import Log
from logkernel.storage.simdisk import PowerCut, SimulatedDisk
from logkernel.testing.simulation.world.brokers_network import BrokersNetwork
from logkernel.testing.simulation.world.coordination import WorldSession, WorldStore
from logkernel.testing.simulation.world.loop import BEGAN_MS
from logkernel.testing.simulation.world.stage import Stage
from logkernel.vocabulary import TopicPartition

log = logging.getLogger("logkernel.simulation")
START_AGAIN_MS: Final = 100
SLOWEST_JOB_MS: Final = 60


class BrokerClock(Clock):
    """The loop's time, and what the clock jumped since."""

    def __init__(self, stage: Stage) -> None:
        self._loop = stage.loop
        self.mono_ahead_ms = 0
        self.wall_ahead_ms = 0

    def wall_ms(self) -> int:
        return BEGAN_MS + self._loop.now_ns // 1_000_000 + self.wall_ahead_ms

    def mono_ms(self) -> int:
        return self._loop.now_ns // 1_000_000 + self.mono_ahead_ms

    def mono_ns(self) -> int:
        return self._loop.now_ns


class Seeded(Randomness):
    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def bytes(self, count: int) -> bytes:
        return self._chance.randbytes(count)


class LoopWorkers(SteppedWorkers):
    """Each job runs some time after it was given."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage

    def run(self, work: Work, done: Done) -> None:
        super().run(work, done)
        self._stage.later(self._stage.random.randint(0, SLOWEST_JOB_MS), self.run_one)


class Process:
    """A node id, its disk, and the broker that runs there at times."""

    def __init__(
        self, stage: Stage, node: int, kernel: Kernel, store: WorldStore, network: BrokersNetwork,
        settings: Sequence[str], size: int, session_ms: int, on_power_cut: Callable[[Process, SimulatedDisk], None],
    ) -> None:  # fmt: skip
        """`on_power_cut` is told before the disk forgets."""
        self.stage = stage
        self.node = node
        self.clock = BrokerClock(stage)
        self.disk = SimulatedDisk(stage.random.randrange(2**60))
        self.starting = False
        self.harmed = False
        """The disk failed in this life: a directory or a partition may be offline until the next start."""
        self._stopping: asyncio.Task[None] | None = None
        self.last_logs: dict[TopicPartition, Log] = {}
        """Those that the disk holds, as the last life that had them open left them."""
        self._kernel = kernel
        self._on_power_cut = on_power_cut
        self._store = store
        self.managed = ManagedBroker(
            node, store, network, settings, size=size, disk=self.disk, session_timeout_s=session_ms / 1000,
            environment=self._environment,
        )  # fmt: skip

    def _environment(self) -> Environment:
        chance = Random(self.stage.random.randrange(2**60))
        return Environment(self._kernel, self.clock, Seeded(chance), LoopWorkers(self.stage))

    @property
    def broker(self) -> Broker | None:
        """The broker of a process that is there, paused or not."""
        return self.managed.broker

    @property
    def state(self) -> str:
        return self.managed.state

    @property
    def session(self) -> WorldSession | None:
        held = self._store.brokers.get(self.node)
        return held[0] if held is not None and isinstance(held[0], WorldSession) and held[0].state != "ended" else None

    # ------------------------------------------------------------ life

    async def start(self) -> None:
        """Start it, again and again while its disk does not let it."""
        if self.starting or self.state in ("running", "paused"):
            return
        self.starting = True
        try:
            while self.state not in ("running", "paused"):
                self.stage.note(f"start {self.node}")
                self.disk.forget_locks()
                self.harmed = self.disk.fault is not None
                try:
                    await self.managed.start()
                except (LogkernelError, OSError) as error:
                    self.stage.note(f"broker {self.node} does not start: {type(error).__name__}")
                    await self._rest()
                except PowerCut:
                    self._tear()
                    await self._rest()
        finally:
            self.starting = False

    async def _rest(self) -> None:
        await asyncio.sleep(START_AGAIN_MS / 1000)

    def start_later(self, delay_ms: float) -> None:
        self.stage.later(delay_ms, lambda: self.stage.spawn(self.start()))

    def stop(self, away_ms: float) -> None:
        """Have it say goodbye; it comes back after `away_ms`."""

        async def stop() -> None:
            self.starting = True
            try:
                await self.managed.stop()
            finally:
                self.starting = False
            self.last_logs = {}  # all was synced
            self.stage.note(f"stopped {self.node}")
            self.start_later(away_ms)

        if self.state == "running" and not self.starting:
            self._stopping = self.stage.spawn(stop())

    def kill(self, *, power: bool = False, lingers_ms: int | None = None) -> None:
        """End it here and now. Its session lingers; a power cut also takes what was not synced."""
        managed = self.managed
        if managed.state not in ("running", "paused"):
            return
        if self._stopping is not None:
            self._stopping.cancel()
        held = self._store.brokers.get(self.node)
        if lingers_ms is not None and held is not None and isinstance(held[0], WorldSession):
            held[0].lingers_ms = lingers_ms
        self.stage.note(f"{'power cut' if power else 'kill'} {self.node}")
        self._keep_logs()
        ending = managed.kill()
        try:
            ending.send(None)  # a broker without listeners has nothing to wait for
        except StopIteration:
            pass
        else:
            raise AssertionError("a kill waits")
        if power:
            self._tear()

    def _keep_logs(self) -> None:
        """A disk that failed while this life began holds logs that it never opened."""
        broker, found = self.broker, self.logs()
        is_whole = broker is not None and not broker.logs.directories.offline()
        self.last_logs = found if is_whole else self.last_logs | found

    def _tear(self) -> None:
        self._on_power_cut(self, self.disk)
        self.disk = self.managed.disk = self.disk.crash()

    def pause(self) -> None:
        if self.state == "running":
            self.stage.note(f"pause {self.node}")
            self.managed.pause()

    def resume(self) -> None:
        if self.state == "paused":
            self.stage.note(f"resume {self.node}")
            self.managed.resume()

    # ------------------------------------------------------------ its disk and clock

    def jump(self, ms: int, *, wall: bool) -> None:
        self.stage.note(f"clock of {self.node} jumps by {ms} ms")
        if wall:
            self.clock.wall_ahead_ms += ms
            return
        self.clock.mono_ahead_ms += ms
        if self.state == "running" and self.managed.server is not None:
            self.managed.server.resume()

    def fill_disk(self) -> None:
        def full(kind: str, path: str) -> int | None:
            return errno.ENOSPC if kind in ("append", "create", "mkdir", "write") else None

        self.harmed, self.disk.fault = True, full

    def break_disk(self) -> None:
        self.harmed, self.disk.fault = True, lambda kind, path: errno.EIO

    def heal_disk(self) -> None:
        self.disk.fault = None
        self.disk.heal()

    def logs(self) -> dict[TopicPartition, Log]:
        """All logs that its broker has open."""
        broker = self.broker
        return {} if broker is None else dict(broker.logs.directories.logs)
