"""What a seed draws: the shape of its world, and the schedule of its faults, which is data and can be made smaller.

Swarm testing: each seed switches about half of the kinds of faults off, and draws how often the others strike and how
long they last. So some histories know one fault only, and that one a hundred times.

| kind | what happens |
|---|---|
| kill | the process ends, comes back after `length_ms`; pages that were not synced survive |
| power | as kill, and the log loses what was not flushed |
| bounce | as kill, and it is back long before its session ends |
| pause | the process stands still for `length_ms`, and goes on with what it believes |
| isolate | no other broker and no coordination reaches it; its clients do |
| cut | two nodes (0 is the coordination) cannot reach one another |
| one-way | what one sends to the other is lost |
| deaf | a broker loses the coordination alone |
| expire | a session ends though its broker is well; it hears of it `length_ms` later |
| controller | whoever is the controller is killed, after as many more of its writes as `value` says |
| unsure | the controller's next write is kept, and its answer lost; its session is unsure for `length_ms` |
| clock | a broker's monotonic clock jumps by `value` ms, as after a suspend |
| trim | the leader's log start moves towards its watermark |
| min-isr | `min.insync.replicas` becomes `value` |
| coup-kill, coup-power, coup-isolate | that strikes whoever next begins to lead, `value` ms later |
| relapse | a bounce, a power cut `value` ms later; the fetches between the two arrive long after |
| drop, slow, ghost, double | for `length_ms`, `value` of 100 messages are lost, late, overtaken by those of the next
  connection, or come twice |
"""

from __future__ import annotations

import random
from typing import Final

from logkernel.attrs_lite import frozen
from logkernel.testing.simulation.fault import CONTROLLER, LEADER, Fault

FAULT_MS: Final = 4_000
"""The schedule ends about here; then the cluster heals."""


@frozen
class World:
    """The shape of one history."""

    brokers: int
    replicas: tuple[int, ...]
    min_isr: int
    unclean: bool
    """Where the election is not given: whether it may lose records."""
    clients: int
    window: int
    """Batches of one client that are under way at once."""
    think_ms: int
    """The longest pause of a client between two writes."""
    flush: float
    """How likely a log is flushed at each tick of its broker."""
    batches: int
    """The most that a fetch brings."""
    lag_ms: int
    session_ms: int

    @classmethod
    def draw(cls, seed: int) -> World:
        chance = random.Random(f"world {seed}")
        brokers = chance.choice((2, 3, 3, 3, 4, 5))
        factor = brokers if brokers < 4 else chance.randint(3, brokers)
        return cls(
            brokers=brokers,
            replicas=tuple(chance.sample(range(1, brokers + 1), factor)),
            min_isr=chance.randint(1, min(2, factor)),
            unclean=chance.random() < 0.15,
            clients=chance.randint(1, 3),
            window=chance.choice((1, 1, 3, 5)),
            think_ms=chance.choice((60, 200, 600, 2500)),
            flush=chance.choice((0.0, 0.01, 0.1, 0.5)),
            batches=chance.choice((1, 3, 10, 30)),
            lag_ms=chance.choice((100, 400, 400, 1000)),
            session_ms=chance.choice((200, 600, 600, 1500)),
        )


MOST: Final = {
    "kill": 8, "power": 6, "bounce": 8, "pause": 8, "isolate": 8, "cut": 10, "one-way": 10, "deaf": 5, "expire": 6,
    "controller": 4, "unsure": 4, "clock": 6, "trim": 20, "min-isr": 4, "coup": 8, "drop": 5, "slow": 5, "ghost": 6,
    "double": 4, "relapse": 6,
}  # fmt: skip
"""How often each kind strikes at most in a history."""


def draw_schedule(seed: int, world: World) -> tuple[Fault, ...]:
    """In order of time. Independent of what the history draws for itself: a part of it is a schedule, too."""
    chance = random.Random(f"faults {seed}")
    faults = []
    storm = chance.choice((0.5, 1, 1, 2))
    focus = chance.randint(1, world.brokers) if chance.random() < 0.3 else 0
    for kind, most in MOST.items():
        if chance.random() < 0.5:
            continue
        for _ in range(1 + int(chance.random() * most * storm)):
            faults.append(_draw(chance, kind, world, focus))
    return tuple(sorted(faults, key=lambda fault: fault.at_ms))


def _draw(chance: random.Random, kind: str, world: World, focus: int) -> Fault:
    at_ms = chance.randint(1_050, 1_000 + FAULT_MS)
    length_ms = chance.choice((60, 200, 600, 1500, 2500))
    length_ms = chance.randint(length_ms // 4, length_ms)
    node, other = chance.sample(range(1, world.brokers + 1), 2)
    if chance.random() < 1 / (world.brokers + 1):
        other = 0
    if focus and chance.random() < 0.7:
        node, other = focus, 0 if other == focus else other
    elif chance.random() < 0.4:
        node = chance.choice((LEADER, LEADER, CONTROLLER))
    match kind:
        case "bounce":
            return Fault(at_ms, kind, node, length_ms=chance.randint(10, 100))
        case "relapse":
            away_ms = chance.choice((20, 100, 400, 1500))
            return Fault(at_ms, kind, node, length_ms=away_ms, value=chance.choice((40, 80, 150, 300)))
        case "controller":
            return Fault(at_ms, kind, length_ms=length_ms, value=chance.choice((0, 0, 1, 1, 2, 3)))
        case "unsure":
            return Fault(at_ms, kind, length_ms=length_ms)
        case "clock":
            return Fault(at_ms, kind, node, value=chance.choice((50, 300, 1_000, 5_000)))
        case "trim":
            return Fault(at_ms, kind, value=chance.randint(1, 100))
        case "min-isr":
            return Fault(at_ms, kind, value=chance.randint(1, len(world.replicas)))
        case "drop" | "slow" | "ghost" | "double":
            percent = chance.choice((5, 15, 40, 80))
            everywhere = chance.random() < 0.5 or other == 0
            link = (0, 0) if everywhere or node < 0 else (node, other)
            return Fault(at_ms, kind, *link, length_ms, percent)
        case "coup":
            what = chance.choice(("kill", "power", "isolate"))
            return Fault(at_ms, f"coup-{what}", length_ms=length_ms, value=chance.choice((0, 5, 15, 30, 60, 200)))
        case "cut":
            return Fault(at_ms, kind, node, other, length_ms)
        case "one-way":
            ways = (node, other) if chance.random() < 0.5 else (other, node)
            return Fault(at_ms, kind, *ways, length_ms)
    return Fault(at_ms, kind, node, length_ms=length_ms)
