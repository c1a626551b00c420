"""Leader elections: brokers come and go, the topic's strategy elects, the leader epoch grows.

| event | leader and ISR of a partition that it concerns |
|---|---|
| broker gone, it led | elected among assignment, ISR and who is alive; none: leader -1, ISR kept |
| broker gone, it followed in the ISR | leader stays, the ISR shrinks by it, in a new leader epoch |
| broker started, partition without leader | elected |
| broker started, it is still stored as leader | it leads again: a new incarnation, a new leader epoch |
| broker leaves (controlled shutdown), it led | another replica in sync leads, the ISR shrinks; none: unchanged |
| broker leaves, it followed in the ISR | as if it were gone |
| a replica's directory goes offline | as if its broker were gone, for that partition |
| preferred leader | the first replica leads if it is alive and in sync |
| an administrator's unclean election, partition without leader | in sync and alive, else any that is alive |
| anything else | unchanged |

A leader obeys an order only in a newer leader epoch, so a change of the ISR by the controller increments it. The last
member of an ISR is never removed: only it is sure to have every acknowledged record.

`alive` are brokers that may be elected; `offline` says which of them cannot use their replica of a partition. Brokers
that are `leaving` are not elected, and keep leading what they lead until another replica can. A strategy that raises
`PluginError` elects no leader.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from logkernel.attrs_lite import evolve
from logkernel.contracts import Candidates, Elected, ElectionStrategy
from logkernel.controller.effects import ControllerResult, Effects, LeaderChange
from logkernel.controller.image import NO_LEADER, ClusterImage, Partition, Topic, partition_change
from logkernel.errors import PluginError

Strategies = Callable[[str], tuple[ElectionStrategy, bool]]
"""Topic → its strategy, and whether its settings allow an unclean leader."""
Offline = Callable[[str, int], Collection[int]]
"""(topic, partition) → brokers whose replica of it cannot be used."""
Name = tuple[str, int]
"""(topic, partition)."""
Changed = Iterator[tuple[int, Partition]]


def nobody(topic: str, index: int) -> Collection[int]:
    """No replica is offline."""
    return ()


def elect(
    image: ClusterImage,
    topic: str,
    strategy: ElectionStrategy,
    alive: Collection[int],
    *,
    unclean_allowed: bool = False,
    offline: Offline = nobody,
    leaving: Collection[int] = (),
) -> ControllerResult:
    """Elect a leader for each partition of the topic whose leader is not alive. The response is None."""
    out = ControllerResult([], None, Effects())
    electing = _Electing(topic, strategy, unclean_allowed, frozenset(alive), offline)
    found = image.topics[topic]
    rows = enumerate(found.partitions)
    changed = ((i, electing.winner(i, row)) for i, row in rows if row.leader not in (*electing.living(i), *leaving))
    _write(out, found, ((index, new) for index, new in changed if new != found.partitions[index]))
    return out


def broker_gone(
    image: ClusterImage, broker: int, strategies: Strategies, alive: Collection[int], offline: Offline = nobody
) -> ControllerResult:
    """A broker's session ended; `alive` are the others. The response is None."""
    out = ControllerResult([], None, Effects())
    living = frozenset(alive) - {broker}
    for topic in image.topics.values():
        rows = [(i, row) for i, row in enumerate(topic.partitions) if broker == row.leader or broker in row.isr]
        if rows:
            electing = _Electing(topic.name, *strategies(topic.name), living, offline)
            _write(out, topic, _without(rows, broker, electing))
    return out


def replicas_offline(
    image: ClusterImage,
    broker: int,
    names: Iterable[Name],
    strategies: Strategies,
    alive: Collection[int],
    offline: Offline,
) -> ControllerResult:
    """A broker's replicas of these partitions went offline. The response is None."""
    out = ControllerResult([], None, Effects())
    for topic, indexes in _by_topic(image, names):
        rows = [(i, row) for i in indexes if broker == (row := topic.partitions[i]).leader or broker in row.isr]
        if rows:
            electing = _Electing(topic.name, *strategies(topic.name), frozenset(alive), offline)
            _write(out, topic, _without(rows, broker, electing))
    return out


def _without(rows: Iterable[tuple[int, Partition]], broker: int, electing: _Electing) -> Changed:
    for index, row in rows:
        if row.leader == broker:
            yield index, electing.winner(index, row)
        elif len(row.isr) > 1:
            isr = tuple(member for member in row.isr if member != broker)
            bump = row.leader != NO_LEADER
            yield index, _evolved(row, row.leader, isr, bump=bump)


def broker_started(
    image: ClusterImage,
    broker: int,
    strategies: Strategies,
    alive: Collection[int],
    offline: Offline = nobody,
    leaving: Collection[int] = (),
) -> ControllerResult:
    """A new incarnation of `broker` registered; `alive` includes it. The response is None."""
    out = ControllerResult([], None, Effects())
    living = frozenset(alive) | {broker}
    leading = living.union(leaving)
    for topic in image.topics.values():
        if any(row.leader not in leading or row.leader == broker for row in topic.partitions):
            electing = _Electing(topic.name, *strategies(topic.name), living, offline)
            _write(out, topic, _with(topic, broker, electing, leading))
    return out


def _with(topic: Topic, broker: int, electing: _Electing, leading: Collection[int]) -> Changed:
    for index, row in enumerate(topic.partitions):
        if row.leader == broker:
            yield index, _evolved(row, broker, row.isr)
        elif row.leader not in leading:
            new = electing.winner(index, row)
            if new != row:
                yield index, new


def broker_leaves(
    image: ClusterImage, broker: int, alive: Collection[int], offline: Offline = nobody
) -> ControllerResult:
    """A broker asks for a controlled shutdown; `alive` are the others. The response has the replicated partitions
    that it still leads, as no other replica is in sync."""
    left: list[Name] = []
    out = ControllerResult([], left, Effects())
    living = frozenset(alive) - {broker}
    for topic in image.topics.values():
        changed: list[tuple[int, Partition]] = []
        for index, row in enumerate(topic.partitions):
            if broker != row.leader and (broker not in row.isr or len(row.isr) == 1):
                continue
            usable = living.difference(offline(topic.name, index))
            isr = tuple(member for member in row.isr if member != broker)
            heirs = [replica for replica in row.replicas if replica in isr and replica in usable]
            if row.leader != broker:
                bump = row.leader != NO_LEADER
                changed.append((index, _evolved(row, row.leader, isr, bump=bump)))
            elif heirs:
                changed.append((index, _evolved(row, heirs[0], isr)))
            elif len(row.replicas) > 1:
                left.append((topic.name, index))
        _write(out, topic, iter(changed))
    return out


def imbalanced(image: ClusterImage, alive: Collection[int], percentage: int) -> list[Name]:
    """Return the partitions whose preferred leader is alive and does not lead, for each broker of which more than
    `percentage` of such partitions are led elsewhere."""
    preferred: dict[int, int] = {}
    led_elsewhere: dict[int, list[Name]] = {}
    for topic in image.topics.values():
        for index, row in enumerate(topic.partitions):
            first = row.replicas[0]
            preferred[first] = preferred.get(first, 0) + 1
            if row.leader != first and first in alive:
                led_elsewhere.setdefault(first, []).append((topic.name, index))
    return [
        name
        for node, names in led_elsewhere.items()
        if len(names) * 100 > percentage * preferred[node]
        for name in names
    ]


def prefer(
    image: ClusterImage, names: Iterable[Name], alive: Collection[int], offline: Offline = nobody
) -> ControllerResult:
    """Make the preferred leader of each of these partitions lead, if it can. The response has the partitions whose
    preferred leader cannot."""
    left: list[Name] = []
    out = ControllerResult([], left, Effects())
    living = frozenset(alive)
    for topic, indexes in _by_topic(image, names):
        changed = []
        for index in indexes:
            row = topic.partitions[index]
            first = row.replicas[0]
            if first == row.leader:
                continue
            if first in row.isr and first in living and first not in offline(topic.name, index):
                changed.append((index, _evolved(row, first, row.isr)))
            else:
                left.append((topic.name, index))
        _write(out, topic, iter(changed))
    return out


def revive(
    image: ClusterImage, names: Iterable[Name], alive: Collection[int], offline: Offline = nobody
) -> ControllerResult:
    """Elect a leader for each of these partitions without a live one: from the ISR if possible, else any live replica.
    The response has the partitions without a live replica."""
    left: list[Name] = []
    out = ControllerResult([], left, Effects())
    living = frozenset(alive)
    for topic, indexes in _by_topic(image, names):
        changed = []
        for index in indexes:
            row = topic.partitions[index]
            usable = living.difference(offline(topic.name, index))
            if row.leader in usable:
                continue
            isr = tuple(member for member in row.isr if member in usable)
            winners = [node for node in row.replicas if node in (isr or usable)]
            if winners:
                changed.append((index, _evolved(row, winners[0], isr or (winners[0],))))
            else:
                left.append((topic.name, index))
        _write(out, topic, iter(changed))
    return out


def _evolved(row: Partition, leader: int, isr: tuple[int, ...], *, bump: bool = True) -> Partition:
    return evolve(
        row, leader=leader, isr=isr, leader_epoch=row.leader_epoch + bump, partition_epoch=row.partition_epoch + 1
    )


def _by_topic(image: ClusterImage, names: Iterable[Name]) -> Iterator[tuple[Topic, list[int]]]:
    """Return those of these partitions that exist."""
    found: dict[str, list[int]] = {}
    for name, index in names:
        topic = image.topics.get(name)
        if topic is not None and index < len(topic.partitions):
            found.setdefault(name, []).append(index)
    for name, indexes in found.items():
        yield image.topics[name], indexes


class _Electing:
    """Elects leaders for the partitions of one topic."""

    __slots__ = ("_offline", "_strategy", "_topic", "_unclean", "alive")

    def __init__(
        self, topic: str, strategy: ElectionStrategy, unclean: bool, alive: frozenset[int], offline: Offline
    ) -> None:
        self._topic = topic
        self._strategy = strategy
        self._unclean = unclean
        self.alive = alive
        self._offline = offline

    def living(self, index: int) -> frozenset[int]:
        """Return the live brokers whose replica of a partition is online."""
        return self.alive.difference(self._offline(self._topic, index))

    def winner(self, index: int, row: Partition) -> Partition:
        """Return the partition after an election; unchanged if it had no leader and gets none."""
        elected = self._elect(Candidates(row.replicas, row.isr, self.living(index), self._unclean))
        if elected is not None:
            return _evolved(row, elected.leader, elected.isr)
        return row if row.leader == NO_LEADER else _evolved(row, NO_LEADER, row.isr)

    def _elect(self, candidates: Candidates) -> Elected | None:
        try:
            return self._strategy.elect(candidates)
        except PluginError:  # its guard has logged it
            return None


def _write(out: ControllerResult, topic: Topic, changed: Changed) -> None:
    """Return one change for each partition, or one for the topic if most of it changed."""
    rows = dict(changed)
    if len(rows) * 2 > len(topic.partitions):
        partitions = [rows.get(index, row) for index, row in enumerate(topic.partitions)]
        out.changes.append(Topic(topic.name, topic.id, partitions, topic.internal).change())
    else:
        out.changes.extend(partition_change(topic.name, index, row) for index, row in rows.items())
    for index, row in rows.items():
        if row.leader_epoch != topic.partitions[index].leader_epoch:
            out.effects.leaders.append(LeaderChange(topic.name, index, row.leader, row.leader_epoch, row.isr))
