"""Who leads: brokers come and go, the topic's strategy decides, the epoch grows.

| event | leader and ISR of a partition that it concerns |
|---|---|
| broker gone, it led | elected among assignment, ISR and who is alive; none: leader -1, ISR kept |
| broker gone, it followed in the ISR | leader stays, the ISR shrinks by it, in a new leader epoch |
| broker started, partition without leader | elected |
| broker started, it is still written down as leader | it leads again: a new incarnation, a new leader epoch |
| anything else | unchanged |

A leader takes an order only in a newer leader epoch, so what the controller itself does to an ISR bumps it.
The last member of an ISR is never taken out: it alone knows what was acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from logkernel.contracts import Candidates, ElectionStrategy, MetadataChange
from logkernel.controller.effects import ControllerResult, Effects, LeaderChange
from logkernel.controller.image import NO_LEADER, ClusterImage, Partition, Topic, partition_change

Strategies = Callable[[str], tuple[ElectionStrategy, bool]]
"""Topic → its strategy, and whether its settings allow an unclean leader."""
Changed = Iterator[tuple[int, Partition]]


def elect(
    image: ClusterImage,
    topic: str,
    strategy: ElectionStrategy,
    alive: Collection[int],
    *,
    unclean_allowed: bool = False,
) -> ControllerResult:
    """A leader for each partition of the topic whose own is not alive. The response is None."""
    out = ControllerResult([], None, Effects())
    living = frozenset(alive)
    found = image.topics[topic]
    changed = (
        (index, _elected(partition, strategy, living, unclean_allowed))
        for index, partition in enumerate(found.partitions)
        if partition.leader not in living
    )
    _write(out, found, ((index, new) for index, new in changed if new != found.partitions[index]))
    return out


def broker_gone(image: ClusterImage, broker: int, strategies: Strategies, alive: Collection[int]) -> ControllerResult:
    """The broker's session ended; `alive` are the others. The response is None."""
    out = ControllerResult([], None, Effects())
    living = frozenset(alive) - {broker}
    if broker in image.nodes:
        out.changes.append(MetadataChange("broker", str(broker), None))
    for topic in image.topics.values():
        if any(broker == row.leader or broker in row.isr for row in topic.partitions):
            _write(out, topic, _without(topic, broker, *strategies(topic.name), living))
    return out


def _without(topic: Topic, broker: int, strategy: ElectionStrategy, unclean: bool, living: frozenset[int]) -> Changed:
    for index, row in enumerate(topic.partitions):
        if row.leader == broker:
            yield index, _elected(row, strategy, living, unclean)
        elif broker in row.isr and len(row.isr) > 1:
            isr = tuple(member for member in row.isr if member != broker)
            bump = row.leader != NO_LEADER
            yield index, Partition(row.replicas, isr, row.leader, row.leader_epoch + bump, row.partition_epoch + 1)


def broker_started(
    image: ClusterImage, broker: int, strategies: Strategies, alive: Collection[int]
) -> ControllerResult:
    """A new incarnation of `broker` is there; `alive` are all, with it. The response is None."""
    out = ControllerResult([], None, Effects())
    living = frozenset(alive) | {broker}
    for topic in image.topics.values():
        if any(row.leader not in living or row.leader == broker for row in topic.partitions):
            _write(out, topic, _with(topic, broker, *strategies(topic.name), living))
    return out


def _with(topic: Topic, broker: int, strategy: ElectionStrategy, unclean: bool, living: frozenset[int]) -> Changed:
    for index, row in enumerate(topic.partitions):
        if row.leader == broker:
            yield index, Partition(row.replicas, row.isr, broker, row.leader_epoch + 1, row.partition_epoch + 1)
        elif row.leader not in living:
            new = _elected(row, strategy, living, unclean)
            if new != row:
                yield index, new


def _elected(row: Partition, strategy: ElectionStrategy, living: frozenset[int], unclean: bool) -> Partition:
    """The partition after an election; unchanged where it had no leader and finds none."""
    winner = strategy.elect(Candidates(row.replicas, row.isr, living, unclean))
    if winner is None:
        if row.leader == NO_LEADER:
            return row
        return Partition(row.replicas, row.isr, NO_LEADER, row.leader_epoch + 1, row.partition_epoch + 1)
    return Partition(row.replicas, winner.isr, winner.leader, row.leader_epoch + 1, row.partition_epoch + 1)


def _write(out: ControllerResult, topic: Topic, changed: Changed) -> None:
    """One change a partition, or one for the topic where most of it changed."""
    rows = dict(changed)
    if len(rows) * 2 > len(topic.partitions):
        partitions = [rows.get(index, row) for index, row in enumerate(topic.partitions)]
        out.changes.append(Topic(topic.name, topic.id, partitions, topic.internal).change())
    else:
        out.changes.extend(partition_change(topic.name, index, row) for index, row in rows.items())
    for index, row in rows.items():
        if row.leader_epoch != topic.partitions[index].leader_epoch:
            out.effects.leaders.append(LeaderChange(topic.name, index, row.leader, row.leader_epoch, row.isr))
