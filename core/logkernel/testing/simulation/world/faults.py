"""Carries a schedule of faults out in a world of real brokers, and heals all of it at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from logkernel.attrs_lite import evolve
from logkernel.storage.simdisk import PowerCut
from logkernel.testing.simulation.fault import LEADER, Fault
from logkernel.testing.simulation.weather import EVERYWHERE, Link
from logkernel.testing.simulation.world.brokers_network import COORDINATION, BrokersNetwork
from logkernel.testing.simulation.world.clients_network import ClientsNetwork
from logkernel.testing.simulation.world.coordination import WorldSession, WorldStore
from logkernel.testing.simulation.world.processes import Process
from logkernel.testing.simulation.world.schedule import Shape
from logkernel.testing.simulation.world.stage import Stage

WATCH_MS: Final = 20
PATIENCE_MS: Final = 400
"""A controller that is to die before a write of its own dies after this long without one."""


class Faults:
    def __init__(
        self, stage: Stage, network: BrokersNetwork, clients: ClientsNetwork, store: WorldStore,
        processes: Mapping[int, Process], shape: Shape, leader: Callable[[], int],
    ) -> None:  # fmt: skip
        """`leader` is who leads some partition, -1 while nobody does."""
        self.stage = stage
        self.network = network
        self.clients = clients
        self.store = store
        self.processes = processes
        self.shape = shape
        self.leader = leader
        self._away: dict[int, tuple[int, int]] = {}
        """Node → since when it is out of the coordination's reach, and when its session ends for that; ms."""
        self._deaf: dict[int, WorldSession] = {}
        """Sessions that hear again when their brokers are back in reach."""
        self._writes_left: int | None = None
        """Of the controller that is to die."""
        self._away_ms = 0
        self._dying: set[int] = set()
        store.before_commit = self._may_commit
        stage.loop.on_error = self._on_error
        self._kinds: Mapping[str, Callable[[Fault], None]] = {
            "kill": lambda fault: self._kill(fault),
            "power": lambda fault: self._kill(fault, power=True),
            "torn": self._torn,
            "bounce": lambda fault: self._kill(fault),
            "stop": self._stop,
            "pause": self._pause,
            "isolate": lambda fault: self._cut(fault, self._around(fault.node, (COORDINATION, *self.processes))),
            "cut": lambda fault: self._cut(fault, self._around(fault.node, (fault.other,))),
            "one-way": lambda fault: self._cut(fault, [(fault.node, fault.other)]),
            "deaf": lambda fault: self._cut(fault, self._around(fault.node, (COORDINATION,))),
            "shun": self._shun,
            "expire": self._expire,
            "controller": self._controller,
            "unsure": self._unsure,
            "clock": lambda fault: self.processes[fault.node].jump(fault.value, wall=False),
            "wall": lambda fault: self.processes[fault.node].jump(fault.value, wall=True),
            "full": self._full,
            "broken": self._broken,
            **dict.fromkeys(("drop", "slow", "ghost"), self._weather),
        }

    @staticmethod
    def _around(node: int, others: Iterable[int]) -> list[Link]:
        return [link for other in others if other != node for link in ((node, other), (other, node))]

    def begin(self, schedule: Iterable[Fault]) -> None:
        began_ms = self.stage.now_ms
        for fault in schedule:
            self.stage.later(fault.at_ms - (self.stage.now_ms - began_ms), partial(self._strike, fault))
        self._watch()

    def _strike(self, fault: Fault) -> None:
        if self.stage.healing:
            return
        found = self._found(fault)
        if found is not None:
            self.stage.note(str(found).strip())
            self._kinds[found.kind](found)

    def _found(self, fault: Fault) -> Fault | None:
        """The fault with its node, where that is a role; None where nobody has it."""
        if fault.node >= 0 and fault.other >= 0:
            return fault
        node = self.leader() if LEADER in (fault.node, fault.other) else self.store.controller_id
        if node is None or node < 1 or node in (fault.node, fault.other):
            return None
        return evolve(fault, node=node) if fault.node < 0 else evolve(fault, other=node)

    def heal(self) -> None:
        """No more faults: everybody comes back."""
        self.stage.healing = True
        self.stage.note("heal")
        for process in self.processes.values():
            process.heal_disk()  # before what was held back arrives there
        self.stage.weather.clear()
        self.network.heal()
        self.clients.shunned.clear()
        self.clients.release()
        self.store.lose_answer_ms = 0
        self._writes_left = None
        for process in self.processes.values():
            if process.harmed:
                process.kill(lingers_ms=self.shape.session_ms)
            process.resume()
            if process.state not in ("running", "paused"):
                process.start_later(1)

    # ------------------------------------------------------------ sessions

    def _watch(self) -> None:
        """The coordination ends sessions of those it does not hear of, and these are unsure meanwhile."""
        now_ms, length = self.stage.now_ms, self.shape.session_ms
        for node, process in self.processes.items():
            if not self.network.is_cut(node, COORDINATION) and not self.network.is_cut(COORDINATION, node):
                self._away.pop(node, None)
                heard = self._deaf.pop(node, None)
                if heard is not None:
                    heard.hear_again()
                continue
            session = process.session
            if session is None:
                continue
            if self._deaf.get(node) is not session:
                session.go_deaf()
                self._deaf[node] = session
                late_ms = self.stage.random.randint(length // 2, length * 3 // 2)
                self._away[node] = (now_ms, now_ms + late_ms)
            since_ms, due_ms = self._away[node]
            if now_ms >= due_ms:
                self.stage.note(f"the session of {node} ends")
                self.stage.rare["session lost"] += 1
                session.expire()
            elif now_ms - since_ms > length // 3:
                session.make_unsure()
        self.stage.later(WATCH_MS, self._watch)

    def _expire(self, fault: Fault) -> None:
        session = self.processes[fault.node].session
        if session is not None:
            self.stage.rare["session lost"] += 1
            session.go_deaf()
            session.expire()
            self.stage.later(fault.length_ms, session.hear_again)

    # ------------------------------------------------------------ processes

    def _end(self, process: Process, away_ms: int, *, power: bool = False) -> None:
        if process.state in ("running", "paused"):
            process.kill(power=power, lingers_ms=self.stage.random.randint(0, self.shape.session_ms))
            process.start_later(away_ms)

    def _kill(self, fault: Fault, *, power: bool = False) -> None:
        self._end(self.processes[fault.node], fault.length_ms, power=power)

    def _torn(self, fault: Fault) -> None:
        process = self.processes[fault.node]
        disk = process.disk
        disk.fail_at(disk.operations + fault.value, None)
        self._away_ms = fault.length_ms

    def _on_error(self, error: BaseException) -> bool:
        """A power cut in the midst of an operation ends its broker; that of a broker that is dead ends nobody."""
        if not isinstance(error, PowerCut):
            return False
        for process in self.processes.values():
            if process.disk.is_off and process.state in ("running", "paused"):
                self.stage.rare["power cut within an operation"] += 1
                self._end(process, self._away_ms, power=True)
        return True

    def _stop(self, fault: Fault) -> None:
        self.processes[fault.node].stop(fault.length_ms)

    def _pause(self, fault: Fault) -> None:
        process = self.processes[fault.node]
        process.pause()
        self.stage.later(fault.length_ms, process.resume)

    # ------------------------------------------------------------ controller

    def _controller(self, fault: Fault) -> None:
        self._writes_left, self._away_ms = fault.value, fault.length_ms

        def patience() -> None:
            node = self.store.controller_id
            if self._writes_left is not None and node is not None and not self.stage.healing:
                self._writes_left = None
                self._end(self.processes[node], fault.length_ms)

        self.stage.later(PATIENCE_MS, patience)

    def _may_commit(self, session: WorldSession) -> bool:
        """False: this controller dies before this write of its own."""
        node = self.store.controller_id
        if node is None or self.store.controller is not session:
            return True
        if node in self._dying:
            return False
        if self._writes_left is None:
            return True
        self._writes_left -= 1
        if self._writes_left >= 0:
            return True
        self._writes_left = None
        self.stage.rare["controller died"] += 1
        self.stage.note(f"controller {node} dies before a write")
        self._dying.add(node)
        self.network.leave(node)
        process = self.processes[node]
        if process.managed.gate is not None:
            process.managed.gate.remove()

        def die() -> None:
            self._dying.discard(node)
            self._end(process, self._away_ms)

        self.stage.loop.call_soon(die)
        return False

    def _unsure(self, fault: Fault) -> None:
        self.store.lose_answer_ms = fault.length_ms

    # ------------------------------------------------------------ networks and disks

    def _cut(self, fault: Fault, links: Iterable[Link]) -> None:
        kept = list(links)
        self.network.cut(kept)

        def mend() -> None:
            if not self.stage.healing:
                self.network.mend(kept)

        self.stage.later(fault.length_ms, mend)

    def _shun(self, fault: Fault) -> None:
        self.clients.shunned.add(fault.node)

        def end() -> None:
            self.clients.shunned.discard(fault.node)
            self.clients.release()

        self.stage.later(fault.length_ms, end)

    def _weather(self, fault: Fault) -> None:
        self.stage.weather.begin(fault.kind, EVERYWHERE, fault.value)

        def end() -> None:
            if not self.stage.healing:
                self.stage.weather.end(fault.kind, EVERYWHERE, fault.value)

        self.stage.later(fault.length_ms, end)

    def _full(self, fault: Fault) -> None:
        process = self.processes[fault.node]
        process.fill_disk()
        self.stage.rare["full disk"] += 1
        self.stage.later(fault.length_ms, process.heal_disk)

    def _broken(self, fault: Fault) -> None:
        process = self.processes[fault.node]
        process.break_disk()
        self.stage.rare["broken disk"] += 1

        def mend() -> None:
            process.heal_disk()
            self._end(process, 20)

        self.stage.later(fault.length_ms, mend)
