"""What a seed draws before anything runs: the shape of its world, and the schedule of its faults.

As in `protocol.schedule`, each seed leaves about half of the kinds out, and a part of a schedule is a schedule.

| kind | what happens |
|---|---|
| kill | the process ends, comes back after `length_ms`; its files are as it left them |
| power | as kill, and its disk forgets what was not synced, page by page and name by name |
| torn | as power, in the midst of the disk's operation number `value` from now on |
| bounce | as kill, and it is back long before its session ends |
| stop | it says goodbye, and comes back after `length_ms` |
| pause | the process stands still for `length_ms`, and goes on with what it believes |
| isolate | no other broker and no coordination reaches it; its clients do |
| cut, one-way | two brokers (0 is the coordination) cannot reach one another, or one not the other |
| shun | no client reaches the broker |
| deaf | the broker reaches the coordination no more |
| expire | its session ends though it is well; it hears of it `length_ms` later |
| controller | whoever is the controller dies before the next write of its own but `value` |
| unsure | the controller's next write is kept, and its answer lost; its session is unsure for `length_ms` |
| clock, wall | a broker's monotonic or wall clock jumps by `value` ms |
| full | its disk takes no more bytes for `length_ms` |
| broken | its disk fails at everything; after `length_ms` it is well, and the process is started again |
| drop, slow, ghost | `value` of 100 messages, see `connection` |
"""

from __future__ import annotations

import random
from typing import Final

from logkernel.attrs_lite import frozen
from logkernel.testing.simulation.fault import CONTROLLER, LEADER, Fault

CALM_MS: Final = 600
"""Nothing happens before: the cluster forms."""
FAULTS_MS: Final = 4_000
"""The schedule ends so long after; then the cluster heals."""
KINDS: Final = {
    "kill": 4, "power": 3, "torn": 2, "bounce": 3, "stop": 2, "pause": 4, "isolate": 4, "cut": 4, "one-way": 4,
    "shun": 2, "deaf": 3, "expire": 3, "controller": 2, "unsure": 2, "clock": 2, "wall": 2, "full": 2, "broken": 2,
    "drop": 2, "slow": 2, "ghost": 2,
}  # fmt: skip
"""How often each strikes at most in a history."""


@frozen
class Shape:
    """What one history looks like."""

    brokers: int
    min_isr: int
    lag_ms: int
    """replica.lag.time.max.ms."""
    session_ms: int
    flush_messages: int | None
    """flush.messages of the topics; None: they leave it to the system."""
    segment_ms: int
    partitions: int
    unclean: bool
    """Whether the plain topic's election may lose records."""
    think_ms: int
    """The longest pause of a client."""
    writers: tuple[str, ...]
    """Kinds of producers: "plain", "once", "transactional"."""
    readers: tuple[str, ...]
    """Kinds of consumers: "all", "committed", "classic", "consumer"."""
    copies: bool
    """Whether somebody copies a topic exactly once."""
    chores: tuple[str, ...]
    """What an administrator does meanwhile."""

    @classmethod
    def draw(cls, seed: int) -> Shape:
        chance = random.Random(f"shape {seed}")
        writers = ["once", *(kind for kind in ("plain", "once", "transactional") if chance.random() < 0.5)]
        readers = ["all", *(kind for kind in ("committed", "classic", "consumer") if chance.random() < 0.5)]
        chores = ("churn", "alter", "reassign", "trim", "elect", "compact", "expire", "grow")
        brokers = chance.choice((2, 3, 3, 3, 3, 4))
        return cls(
            brokers=brokers,
            min_isr=chance.choice((1, 1, 2)),
            lag_ms=chance.choice((150, 300, 300, 800)),
            session_ms=chance.choice((200, 500, 500, 1_000)),
            flush_messages=chance.choice((None, None, 1, 5)),
            segment_ms=chance.choice((100, 400, 60_000)),
            partitions=chance.randint(1, 3),
            unclean=chance.random() < 0.1,
            think_ms=chance.choice((40, 100, 300)),
            writers=tuple(writers),
            readers=tuple(readers),
            copies=chance.random() < 0.3,
            chores=tuple(chore for chore in chores if chance.random() < 0.5),
        )


def draw_schedule(seed: int, shape: Shape) -> tuple[Fault, ...]:
    """In order of time. Independent of what the history draws for itself."""
    chance = random.Random(f"world faults {seed}")
    storm = chance.choice((0.5, 1, 1, 2))
    faults = [
        _draw(chance, kind, shape)
        for kind, most in KINDS.items() if chance.random() < 0.5
        for _ in range(1 + int(chance.random() * most * storm))
    ]  # fmt: skip
    return tuple(sorted(faults, key=lambda fault: fault.at_ms))


def _draw(chance: random.Random, kind: str, shape: Shape) -> Fault:
    at_ms = chance.randint(CALM_MS, CALM_MS + FAULTS_MS)
    length_ms = chance.choice((60, 200, 600, 1_500))
    length_ms = chance.randint(length_ms // 4, length_ms)
    node, other = chance.sample(range(1, shape.brokers + 1), 2)
    if chance.random() < 0.4:
        node = chance.choice((LEADER, LEADER, CONTROLLER))
    match kind:
        case "bounce":
            return Fault(at_ms, kind, node, length_ms=chance.randint(5, 60))
        case "torn":
            return Fault(at_ms, kind, node, length_ms=length_ms, value=chance.randint(1, 40))
        case "cut":
            return Fault(at_ms, kind, node, other if chance.random() < 0.8 else 0, length_ms)
        case "one-way":
            ways = (node, other) if chance.random() < 0.5 else (other, node)
            return Fault(at_ms, kind, *ways, length_ms)
        case "controller":
            return Fault(at_ms, kind, length_ms=length_ms, value=chance.choice((0, 0, 1, 1, 2, 3)))
        case "unsure":
            return Fault(at_ms, kind, length_ms=length_ms)
        case "clock":
            return Fault(at_ms, kind, node, value=chance.choice((50, 300, 1_000)))
        case "wall":
            return Fault(at_ms, kind, node, value=chance.choice((-5_000, -300, 300, 5_000)))
        case "drop" | "slow" | "ghost":
            return Fault(at_ms, kind, length_ms=length_ms, value=chance.choice((1, 3, 10, 30)))
    return Fault(at_ms, kind, node, length_ms=length_ms)
