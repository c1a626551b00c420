"""Carries a schedule of faults out, ends sessions of brokers that are not heard of, and heals all of it at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from logkernel.attrs_lite import evolve
from logkernel.testing.simulation.fault import LEADER, Fault
from logkernel.testing.simulation.protocol.broker import Broker
from logkernel.testing.simulation.protocol.coordination import Coordination
from logkernel.testing.simulation.protocol.network import COORDINATION, Network, between
from logkernel.testing.simulation.protocol.schedule import World
from logkernel.testing.simulation.protocol.timeline import Timeline
from logkernel.testing.simulation.weather import Link

WATCH_MS: Final = 25
BOUNCE_MS: Final = 10
PATIENCE_MS: Final = 400
"""A controller that is to die before a write of its own dies after this long without one."""


class Faults:
    def __init__(
        self, timeline: Timeline, network: Network, coordination: Coordination, brokers: Mapping[int, Broker],
        world: World, leader: Callable[[], int],
    ) -> None:  # fmt: skip
        """`leader` is who leads, -1 while nobody does."""
        self.timeline = timeline
        self.network = network
        self.coordination = coordination
        self.brokers = brokers
        self.world = world
        self.leader = leader
        self._coups: list[Fault] = []
        self._away: dict[int, tuple[int, int]] = {}
        """Node → since when it is not heard of, and when its session ends for that; ms."""
        self._writes_left: int | None = None
        """Of the controller that is to die."""
        self._away_ms = 0
        coordination.before_commit = self._may_commit
        self._kinds: Mapping[str, Callable[[Fault], None]] = {
            "kill": lambda fault: self._stop(fault, power=False),
            "power": lambda fault: self._stop(fault, power=True),
            "bounce": lambda fault: self._stop(fault, power=False),
            "relapse": self._relapse,
            "pause": self._pause,
            "isolate": lambda fault: self._cut(fault, between(fault.node, (COORDINATION, *self.brokers))),
            "cut": lambda fault: self._cut(fault, {(fault.node, fault.other), (fault.other, fault.node)}),
            "one-way": lambda fault: self._cut(fault, {(fault.node, fault.other)}),
            "deaf": lambda fault: self._cut(fault, between(fault.node, (COORDINATION,))),
            "expire": self._expire,
            "controller": self._controller,
            "unsure": self._unsure,
            "clock": self._clock,
            "trim": self._trim,
            "min-isr": self._min_isr,
            **dict.fromkeys(("coup-kill", "coup-power", "coup-isolate"), self._coup),
            **dict.fromkeys(("drop", "slow", "ghost", "double"), self._weather),
        }

    def begin(self, schedule: Iterable[Fault]) -> None:
        for fault in schedule:
            self.timeline.later(fault.at_ms - self.timeline.now_ms, partial(self._strike, fault))
        self._watch()

    def _strike(self, fault: Fault) -> None:
        if not self.timeline.healing:
            found = self._found(fault)
            if found is not None:
                self.timeline.note(str(found).strip())
                self._kinds[found.kind](found)

    def _found(self, fault: Fault) -> Fault | None:
        """The fault with its node, where that is a role; None where nobody has it."""
        if fault.node >= 0 and fault.other >= 0:
            return fault
        node = self.leader() if LEADER in (fault.node, fault.other) else self.coordination.store.controller_id
        if node is None or node < 1 or node in (fault.node, fault.other):
            return None
        return evolve(fault, node=node) if fault.node < 0 else evolve(fault, other=node)

    def heal(self) -> None:
        """No more faults: everybody comes back."""
        self.timeline.healing = True
        self.timeline.note("heal")
        self.network.heal()
        self.coordination.lose_answer_ms = 0
        self._writes_left = None
        self._coups.clear()
        for broker in self.brokers.values():
            broker.process.deaf_until_ms = 0
            self._start(broker)
            self._resume(broker)

    # ------------------------------------------------------------ sessions

    def _watch(self) -> None:
        """The coordination ends sessions of those it does not hear of, and these are unsure meanwhile."""
        now_ms, length = self.timeline.now_ms, self.world.session_ms
        for node, broker in self.brokers.items():
            if broker.works and self.coordination.reaches(node):
                self._away.pop(node, None)
                if broker.session is not None:
                    broker.session.make_sure()
                continue
            if node not in self._away:
                late = self.timeline.random.randint(length // 2, length * 3 // 2)
                self._away[node] = (now_ms, now_ms + late)
            since, due = self._away[node]
            held = self.coordination.store.brokers.get(node)
            if now_ms >= due and held is not None:
                self.timeline.note(f"the session of {node} ends")
                self.timeline.rare["session lost"] += 1
                held[0].expire()
            elif broker.works and broker.session is not None and now_ms - since > length // 3:
                broker.session.make_unsure()
        self.timeline.later(WATCH_MS, self._watch)

    def _expire(self, fault: Fault) -> None:
        held = self.coordination.store.brokers.get(fault.node)
        if held is not None:
            self.timeline.rare["session lost"] += 1
            self.brokers[fault.node].process.deaf_until_ms = self.timeline.now_ms + fault.length_ms
            held[0].expire()

    # ------------------------------------------------------------ processes

    def _stop(self, fault: Fault, *, power: bool) -> None:
        self._kill(self.brokers[fault.node], fault.length_ms, power=power)

    def _kill(self, broker: Broker, away_ms: int, *, power: bool = False) -> None:
        if not broker.process.running:
            return
        self.network.died(broker.node)
        broker.stop(power=power)
        self.timeline.later(away_ms, lambda: self._start(broker))

    def _relapse(self, fault: Fault) -> None:
        broker, now_ms = self.brokers[fault.node], self.timeline.now_ms
        self.network.late_until_ms[fault.node] = now_ms + fault.value
        self._kill(broker, BOUNCE_MS)
        again = evolve(fault, at_ms=now_ms + fault.value, kind="power", value=0)
        self.timeline.later(fault.value, partial(self._strike, again))

    def _start(self, broker: Broker) -> None:
        if not broker.process.running:
            self.timeline.note(f"start {broker.node}")
            broker.start()

    def _pause(self, fault: Fault) -> None:
        broker = self.brokers[fault.node]
        if broker.works:
            broker.process.paused = True
            process = broker.process
            self.timeline.later(fault.length_ms, lambda: self._resume(broker) if broker.process is process else None)

    def _resume(self, broker: Broker) -> None:
        if broker.process.running and broker.process.paused:
            self.timeline.note(f"resume {broker.node}")
            broker.resume()

    # ------------------------------------------------------------ controller

    def _active(self) -> Broker | None:
        """The node id of the controller by the coordination."""
        node = self.coordination.store.controller_id
        return None if node is None else self.brokers[node]

    def _controller(self, fault: Fault) -> None:
        self._writes_left = fault.value
        self._away_ms = fault.length_ms

        def patience() -> None:
            broker = self._active()
            if self._writes_left is not None and broker is not None and not self.timeline.healing:
                self._controller_dies(broker)

        self.timeline.later(PATIENCE_MS, patience)

    def _may_commit(self, node: int) -> bool:
        if self._writes_left is None:
            return True
        if self._writes_left > 0:
            self._writes_left -= 1
            return True
        self._controller_dies(self.brokers[node])
        return False

    def _controller_dies(self, broker: Broker) -> None:
        self._writes_left = None
        self.timeline.rare["controller died"] += 1
        self.timeline.note(f"controller {broker.node} dies")
        self._kill(broker, self._away_ms)

    def _unsure(self, fault: Fault) -> None:
        self.coordination.lose_answer_ms = max(1, fault.length_ms)

    # ------------------------------------------------------------ leaders

    def _coup(self, fault: Fault) -> None:
        self._coups.append(fault)

    def on_leads(self, node: int) -> None:
        if self._coups and not self.timeline.healing:
            coup = self._coups.pop()
            kind = coup.kind.removeprefix("coup-")
            fault = Fault(self.timeline.now_ms + coup.value, kind, node, length_ms=coup.length_ms)
            self.timeline.later(coup.value, partial(self._strike, fault))

    # ------------------------------------------------------------ network, clocks, topics

    def _cut(self, fault: Fault, links: set[Link]) -> None:
        self.network.cut(links)
        self.timeline.later(fault.length_ms, lambda: self.network.mend(links))

    def _weather(self, fault: Fault) -> None:
        weather, link = self.network.weather, (fault.node, fault.other)
        weather.begin(fault.kind, link, fault.value)
        self.timeline.later(fault.length_ms, lambda: weather.end(fault.kind, link, fault.value))

    def _clock(self, fault: Fault) -> None:
        self.timeline.rare["clock jumped"] += 1
        self.brokers[fault.node].standing.skew_ms += fault.value

    def _trim(self, fault: Fault) -> None:
        for broker in self.brokers.values():
            if broker.works:
                broker.replica.trim(fault.value)

    def _min_isr(self, fault: Fault) -> None:
        for broker in self.brokers.values():
            delay = self.timeline.random.randint(1, 100)
            self.timeline.later(delay, partial(setattr, broker.standing, "min_isr", fault.value))
