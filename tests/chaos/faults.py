"""What is done to a cluster, from a seed: kinds of faults, a schedule of them, and how each begins and ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any

from attrs import frozen
from chaos.field import Field

if TYPE_CHECKING:
    from chaos.run import Cluster

PROCESS_FAULTS = ("kill", "pause", "stop", "zookeeper leader", "all brokers", "pause zookeeper leader")
FIELD_FAULTS = ("cut one way", "cut both ways", "cut from zookeeper", "unplug", "full disk")
SLOW = "slow link"
MEANING = {
    "kill": "kill -9 of a broker, which is started again",
    "pause": "SIGSTOP of a broker for longer than its session, then SIGCONT",
    "stop": "SIGTERM of a broker, which is started again",
    "zookeeper leader": "kill -9 of ZooKeeper's leader, which is started again",
    "all brokers": "kill -9 of all brokers at once, which are started again",
    "pause zookeeper leader": "SIGSTOP of ZooKeeper's leader, then SIGCONT",
    "cut one way": "what a broker sends to another one is lost",
    "cut both ways": "a broker and the two others do not reach each other",
    "cut from zookeeper": "a broker does not reach ZooKeeper, for longer than its session",
    "unplug": "nobody reaches a broker, for longer than its session",
    "full disk": "a broker's disk has no room, then it has",
    SLOW: "a broker's link is slow",
}
HOLD_S = {
    "kill": (0.0, 5.0), "pause": (4.0, 7.0), "stop": (0.0, 1.0), "zookeeper leader": (0.5, 3.0),
    "all brokers": (0.0, 1.0), "pause zookeeper leader": (2.0, 5.0), "cut one way": (3.0, 8.0),
    "cut both ways": (3.0, 8.0), "cut from zookeeper": (4.0, 7.0), "unplug": (4.0, 7.0), "full disk": (3.0, 7.0),
    SLOW: (4.0, 8.0),
}  # fmt: skip
"""Between which bounds it lasts."""
OVERLAP = 0.2
"""How often the next fault does not wait until a cluster has recovered."""


@frozen
class Fault:
    kind: str
    node: int
    """The broker that it strikes."""
    other: int
    """Another broker."""
    hold_s: float
    recovers: bool
    """Whether the next one waits until all is well again."""

    def __str__(self) -> str:
        return f"{self.kind} {self.node} (other {self.other}), {self.hold_s:.1f} s"


def kinds_on(field: Any) -> list[str]:
    """What can be done on this field."""
    slow = [SLOW] if field.slowness else []
    return [*PROCESS_FAULTS, *(FIELD_FAULTS if field.network else ()), *slow]


def schedule(seed: int, kinds: Sequence[str], nodes: Sequence[int]) -> Iterator[Fault]:
    """Rounds without end; each has every kind once, in an order of its own."""
    random = Random(seed)
    while True:
        for kind in random.sample(kinds, len(kinds)):
            node, other = random.sample(nodes, 2)
            yield Fault(kind, node, other, random.uniform(*HOLD_S[kind]), random.random() >= OVERLAP)


@contextmanager
def struck(fault: Fault, cluster: Cluster) -> Iterator[None]:
    """The fault lasts while this is entered."""
    field, broker = cluster.field, cluster.brokers[fault.node]
    if fault.kind == "kill":
        broker.kill()
        yield
        broker.start()
    elif fault.kind == "pause":
        broker.signal(signal.SIGSTOP)
        yield
        broker.signal(signal.SIGCONT)
    elif fault.kind == "stop":
        broker.terminate()
        yield
        broker.wait()
        broker.start()
    elif fault.kind == "all brokers":
        for each in cluster.brokers.values():
            each.wanted = False
            each.signal(signal.SIGKILL)
        for each in cluster.brokers.values():
            each.wait()
        yield
        for each in cluster.brokers.values():
            each.start()
    elif fault.kind == "zookeeper leader":
        leader = cluster.keepers.strike(lambda leader: leader.kill())
        yield
        leader.start()
    elif fault.kind == "pause zookeeper leader":
        leader = cluster.keepers.strike(lambda leader: leader.pause())
        yield
        leader.resume()
    else:
        assert isinstance(field, Field)
        yield from _on_field(fault, cluster, field, broker)


def _on_field(fault: Fault, cluster: Cluster, field: Field, broker: Any) -> Iterator[None]:
    if fault.kind == "full disk":
        field.fill(broker.disk)
        yield
        field.empty(broker.disk)
    elif fault.kind == "unplug":
        field.unplug(broker.name)
        yield
        field.plug(broker.name)
    elif fault.kind == SLOW:
        field.slow(broker.name)
        yield
        field.quicken(broker.name)
    else:
        for link in links(fault, cluster):
            field.cut(*link)
        yield
        for link in links(fault, cluster):
            field.mend(*link)


def links(fault: Fault, cluster: Cluster) -> list[tuple[str, str]]:
    """The (source, target) pairs that a cut is made of."""
    name = cluster.brokers[fault.node].name
    if fault.kind == "cut one way":
        return [(name, cluster.brokers[fault.other].name)]
    if fault.kind == "cut both ways":
        others = [each.name for node, each in cluster.brokers.items() if node != fault.node]
    else:
        others = list(cluster.keepers.names)
    return [(name, other) for other in others] + [(other, name) for other in others]
