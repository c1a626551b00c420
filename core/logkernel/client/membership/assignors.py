"""The client-side assignors of classic groups, which run in the group's leader. Pure.

    range                per topic: members in order take runs of partitions, the first ones one more
    roundrobin           over all topics: partitions in order go around the members
    sticky               as balanced as subscriptions allow, and of that what moves least; eager
    cooperative-sticky   the same, and what still belongs to another member is given a round later (KIP-429)

Members are ordered by instance id, where they have one, before those without, then by member id. Names and results
of range and roundrobin are Kafka's, so that members of other clients can share a group whoever leads it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from struct import Struct
from typing import Any, Final, Protocol

from logkernel.client.membership.consumer_protocol import Reader, Subscription, partition_bytes
from logkernel.errors import ConfigError, InvalidRequest
from logkernel.vocabulary import TopicPartition

Members = Mapping[str, Subscription]
Assignment = dict[str, list[TopicPartition]]
_I32 = Struct(">i")


class Assignor(Protocol):
    name: str
    cooperative: bool
    """Whether members keep what they have while the group comes together again."""

    def user_data(self, owned: list[TopicPartition], generation: int) -> bytes | None:
        """What a member adds to its subscription."""
        ...

    def assign(self, counts: Mapping[str, int], members: Members) -> Assignment:
        """Member id → partitions. `counts`: partitions of each topic that exists."""
        ...


def ordered(members: Members) -> list[str]:
    """Member ids in the order in which range and roundrobin serve them."""
    return sorted(
        members, key=lambda member: (members[member].instance_id is None, members[member].instance_id, member)
    )


class Range:
    name = "range"
    cooperative = False

    def user_data(self, owned: list[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, counts: Mapping[str, int], members: Members) -> Assignment:
        found: Assignment = {member: [] for member in members}
        order = ordered(members)
        for topic, count in sorted(counts.items()):
            takers = [member for member in order if topic in members[member].topics]
            if not takers:
                continue
            each, more = divmod(count, len(takers))
            start = 0
            for place, member in enumerate(takers):
                end = start + each + (place < more)
                found[member] += [TopicPartition(topic, index) for index in range(start, end)]
                start = end
        return found


class RoundRobin:
    name = "roundrobin"
    cooperative = False

    def user_data(self, owned: list[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, counts: Mapping[str, int], members: Members) -> Assignment:
        found: Assignment = {member: [] for member in members}
        turn = deque(ordered(members))
        wanted = {topic for member in members.values() for topic in member.topics}
        for topic, count in sorted(counts.items()):
            if topic not in wanted:
                continue
            for index in range(count):
                while topic not in members[turn[0]].topics:
                    turn.rotate(-1)
                found[turn[0]].append(TopicPartition(topic, index))
                turn.rotate(-1)
        return found


class Sticky:
    """Its members tell by user data what they had, as they give everything up before they join again."""

    name = "sticky"
    cooperative = False

    def user_data(self, owned: list[TopicPartition], generation: int) -> bytes | None:
        return partition_bytes(owned) + _I32.pack(generation)

    def claims(self, subscription: Subscription) -> tuple[list[TopicPartition], int]:
        """(partitions, generation) that a member had."""
        if not subscription.user_data:
            return [], -1
        reader = Reader(subscription.user_data)
        try:
            owned = reader.partitions()
            return owned, reader.number(_I32) if reader.left else -1
        except InvalidRequest:
            return [], -1

    def assign(self, counts: Mapping[str, int], members: Members) -> Assignment:
        return _Balance(counts, members, {member: self.claims(members[member]) for member in members}).result()


class CooperativeSticky(Sticky):
    name = "cooperative-sticky"
    cooperative = True

    def user_data(self, owned: list[TopicPartition], generation: int) -> bytes | None:
        return _I32.pack(generation)

    def claims(self, subscription: Subscription) -> tuple[list[TopicPartition], int]:
        generation = subscription.generation
        if generation < 0 and subscription.user_data and len(subscription.user_data) >= 4:
            generation = Reader(subscription.user_data).number(_I32)
        return subscription.owned, generation

    def assign(self, counts: Mapping[str, int], members: Members) -> Assignment:
        found = super().assign(counts, members)
        owners = {partition: member for member, wish in members.items() for partition in wish.owned}
        return {
            member: [partition for partition in partitions if owners.get(partition, member) == member]
            for member, partitions in found.items()
        }


class _Balance:
    """Keep what members have, give out the rest, then move as little as makes it even."""

    def __init__(
        self, counts: Mapping[str, int], members: Members, claims: Mapping[str, tuple[list[TopicPartition], int]]
    ) -> None:
        order = sorted(members)
        self.takers = {topic: [member for member in order if topic in members[member].topics] for topic in counts}
        self.owner: dict[TopicPartition, str] = {}
        self.load = dict.fromkeys(order, 0)
        self.alike = len({frozenset(member.topics).intersection(counts) for member in members.values()}) <= 1
        self._keep(counts, members, claims)
        self._give(counts)
        while self._shift():
            pass
        if not self.alike:
            while self._shift_along():
                pass

    def result(self) -> Assignment:
        found: Assignment = {member: [] for member in self.load}
        for partition in sorted(self.owner):
            found[self.owner[partition]].append(partition)
        return found

    def _keep(
        self, counts: Mapping[str, int], members: Members, claims: Mapping[str, tuple[list[TopicPartition], int]]
    ) -> None:
        """The claim of the newest generation holds; of two of the same age neither does."""
        best: dict[TopicPartition, tuple[int, str | None]] = {}
        for member in self.load:
            owned, generation = claims[member]
            for partition in owned:
                topic, index = partition
                if topic not in members[member].topics or not 0 <= index < counts.get(topic, 0):
                    continue
                known = best.get(partition)
                if known is None or generation > known[0]:
                    best[partition] = (generation, member)
                elif generation == known[0] and member != known[1]:
                    best[partition] = (generation, None)
        for partition, (_, holder) in best.items():
            if holder is not None:
                self._set(partition, holder)

    def _set(self, partition: TopicPartition, member: str) -> None:
        old = self.owner.get(partition)
        if old is not None:
            self.load[old] -= 1
        self.owner[partition] = member
        self.load[member] += 1

    def _least(self, topic: str) -> str:
        return min(self.takers[topic], key=lambda member: (self.load[member], member))

    def _give(self, counts: Mapping[str, int]) -> None:
        """Those that few may have go first."""
        free = [
            TopicPartition(topic, index)
            for topic, count in counts.items()
            for index in range(count)
            if self.takers[topic] and (topic, index) not in self.owner
        ]
        for partition in sorted(free, key=lambda partition: (len(self.takers[partition.topic]), partition)):
            self._set(partition, self._least(partition.topic))

    def _shift(self) -> bool:
        """Move partitions to members that have at least two less; whether any moved."""
        moved = False
        for partition in sorted(self.owner, key=lambda partition: (-self.load[self.owner[partition]], partition)):
            least = self._least(partition.topic)
            if self.load[self.owner[partition]] - self.load[least] >= 2:
                self._set(partition, least)
                moved = True
        return moved

    def _shift_along(self) -> bool:
        """Where no one move helps: a chain of moves from a member to one with at least two less."""
        held: dict[str, list[TopicPartition]] = {member: [] for member in self.load}
        for partition in sorted(self.owner):
            held[self.owner[partition]].append(partition)
        for start in sorted(self.load, key=lambda member: -self.load[member]):
            came: dict[str, tuple[str, TopicPartition]] = {}
            line = deque([start])
            while line:
                member = line.popleft()
                for partition in held[member]:
                    for taker in self.takers[partition.topic]:
                        if taker == start or taker in came:
                            continue
                        came[taker] = (member, partition)
                        line.append(taker)
                        if self.load[start] - self.load[taker] >= 2:
                            self._follow(came, start, taker)
                            return True
        return False

    def _follow(self, came: Mapping[str, tuple[str, TopicPartition]], start: str, end: str) -> None:
        while end != start:
            giver, partition = came[end]
            self._set(partition, end)
            end = giver


ASSIGNORS: Final[Mapping[str, type[Range] | type[RoundRobin] | type[Sticky]]] = {
    made.name: made for made in (Range, RoundRobin, Sticky, CooperativeSticky)
}
_JAVA: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def make_assignors(given: tuple[object, ...]) -> list[Assignor]:
    """From partition.assignment.strategy: names, Kafka's class names, classes or objects. Raises `ConfigError`."""
    made: list[Any] = []
    for one in given:
        if isinstance(one, str):
            name = _JAVA.get(one.rpartition(".")[2], one)
            if name not in ASSIGNORS:
                raise ConfigError(
                    f"partition.assignment.strategy: {one!r} is not an assignor; use {', '.join(ASSIGNORS)}, a class"
                    " or an object"
                )
            made.append(ASSIGNORS[name]())
        else:
            made.append(one() if isinstance(one, type) else one)
    if len({assignor.name for assignor in made}) != len(made) or not made:
        raise ConfigError(
            "partition.assignment.strategy is empty or repeats a name; name one or more assignors, each once"
        )
    return made
