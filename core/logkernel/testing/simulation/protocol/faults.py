"""What goes wrong: brokers die, hang and come back, connections are cut, controllers die, logs lose their tails."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from logkernel.attrs_lite import mutable
from logkernel.testing.simulation.protocol.broker import Broker
from logkernel.testing.simulation.protocol.controller import Controller
from logkernel.testing.simulation.protocol.network import CONTROLLER, Network, between
from logkernel.testing.simulation.protocol.promises import Promises
from logkernel.testing.simulation.protocol.timeline import Timeline

SESSION_MS: Final = 600


@mutable
class Odds:
    """How likely each fault is in this seed (swarm: about half of them are off)."""

    drop: float
    slow: float
    cut: float
    isolate: float
    kill: float
    power: float
    pause: float
    bounce: float
    retention: float
    controller: float
    flush: float

    @classmethod
    def draw(cls, chance: random.Random) -> Odds:
        storm = chance.choice((1, 1, 3))

        def maybe(most: float) -> float:
            return chance.random() * most * storm if chance.random() < 0.5 else 0.0

        return cls(
            drop=maybe(0.1), slow=maybe(0.3), cut=maybe(0.02), isolate=maybe(0.03), kill=maybe(0.015),
            power=maybe(0.008), pause=maybe(0.015), bounce=maybe(0.01), retention=maybe(0.03), controller=maybe(0.01),
            flush=maybe(0.1),
        )  # fmt: skip


class Faults:
    def __init__(
        self, odds: Odds, timeline: Timeline, network: Network, brokers: Mapping[int, Broker], controller: Controller,
        promises: Promises,
    ) -> None:  # fmt: skip
        self.odds = odds
        self.timeline = timeline
        self.network = network
        self.brokers = brokers
        self.controller = controller
        self.promises = promises

    def tick(self) -> None:
        if self.timeline.healing:
            return
        chance, odds = self.timeline.random, self.odds
        for broker in self.brokers.values():
            self._strike(broker)
        if chance.random() < odds.cut:
            nodes = [CONTROLLER, *self.brokers]
            one, other = chance.sample(nodes, 2)
            self.timeline.note(f"cut {one}→{other}")
            links = {(one, other)} if chance.random() < 0.4 else {(one, other), (other, one)}
            self.network.cut(links)
            self.timeline.later(chance.randint(100, 2500), lambda: self.network.mend(links))
        leaders = [broker.node for broker in self.brokers.values() if broker.leader is not None]
        if leaders and chance.random() < odds.isolate:
            self._isolate(chance.choice(leaders))
        if self.controller.up and chance.random() < odds.controller:
            self.timeline.rare["controller died"] += 1
            self.controller.up = False
            self.timeline.later(chance.randint(100, 800), self.controller.replace)
        self.timeline.later(chance.randint(30, 120), self.tick)

    def heal(self) -> None:
        """No more faults: everybody comes back."""
        self.timeline.healing = True
        self.timeline.note("heal")
        self.network.cuts.clear()
        self.controller.up = True
        for broker in self.brokers.values():
            if not broker.running:
                self._start(broker)
            if broker.paused:
                self._resume(broker)

    def _strike(self, broker: Broker) -> None:
        chance, odds = self.timeline.random, self.odds
        if broker.running and chance.random() < odds.kill:
            self._stop(broker, power=False)
        if broker.running and chance.random() < odds.power:
            self._stop(broker, power=True)
        if broker.running and not broker.paused and chance.random() < odds.pause:
            self._pause(broker)
        if broker.running and chance.random() < odds.bounce:
            self._stop(broker, power=False, soon=True)
        if broker.leader is not None and broker.running and chance.random() < odds.retention:
            broker.trim(chance.randint(broker.log.start, broker.leader.high_watermark))

    # ------------------------------------------------------------ one broker

    def _isolate(self, node: int) -> None:
        """A leader that only its clients reach: its session ends, and it goes on believing."""
        self.timeline.note(f"isolate {node}")
        links = between(node, (CONTROLLER, *self.brokers))
        self.network.cut(links)
        epoch = self.brokers[node].broker_epoch
        length = self.timeline.random.randint(200, 2500)
        if length > SESSION_MS:
            self.timeline.later(SESSION_MS, lambda: self._lose_session(self.brokers[node], epoch, notice_ms=length))
        self.timeline.later(length, lambda: self.network.mend(links))

    def _stop(self, broker: Broker, *, power: bool, soon: bool = False) -> None:
        chance = self.timeline.random
        self.timeline.note(f"{'power cut' if power else 'kill'} {broker.node}")
        self.network.reset(between(broker.node, (CONTROLLER, *self.brokers)))
        if power:
            self.promises.on_power_cut(broker.node, broker.log)
        broker.stop(power=power)
        epoch = broker.broker_epoch
        if not soon:
            self.timeline.later(chance.randint(SESSION_MS // 2, SESSION_MS), lambda: self._lose_session(broker, epoch))
        away = chance.randint(20, 100) if soon else chance.randint(100, 3000)
        self.timeline.later(away, lambda: self._start(broker))

    def _start(self, broker: Broker) -> None:
        if not broker.running:
            self.timeline.note(f"start {broker.node}")
            broker.running = True
            self.controller.register(broker)

    def _pause(self, broker: Broker) -> None:
        self.timeline.note(f"pause {broker.node}")
        broker.paused = True
        epoch = broker.broker_epoch
        length = self.timeline.random.randint(50, 1500)
        if length > SESSION_MS:
            self.timeline.later(SESSION_MS, lambda: self._lose_session(broker, epoch))
        self.timeline.later(length, lambda: self._resume(broker))

    def _resume(self, broker: Broker) -> None:
        """It goes on with what it believes; if its session is gone, it registers anew a while later."""
        if not (broker.running and broker.paused):
            return
        self.timeline.note(f"resume {broker.node}")
        broker.resume()
        if not self.controller.is_registered(broker):
            self.timeline.later(self.timeline.random.randint(5, 100), lambda: self._rejoin(broker))

    def _lose_session(self, broker: Broker, broker_epoch: int, notice_ms: int = 100) -> None:
        """The broker itself learns of it within `notice_ms`."""
        ended = self.controller.end_session(broker.node, broker_epoch)
        if ended and broker.running and not broker.paused and broker.broker_epoch == broker_epoch:
            self.timeline.later(self.timeline.random.randint(5, notice_ms), lambda: self._rejoin(broker))

    def _rejoin(self, broker: Broker) -> None:
        if broker.running and not self.controller.is_registered(broker):
            broker.resign()
            self.controller.register(broker)
