"""Subscriptions, and what the assignor makes of them.

An assignor is another's code: what it gives is looked through before it is believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from uuid import UUID

from attrs import frozen

from logkernel.contracts import Assignor, GroupFacts, Subscriber
from logkernel.errors import UnknownServerError

from ..coordinator import GroupCoordinator
from .records import Part, ResolvedRegex
from .state import ConsumerGroup, ConsumerMember


@frozen
class Topics:
    """Subscribed topics that exist."""

    ids: Mapping[str, UUID]
    partitions: Mapping[UUID, int]

    def of(self, member: ConsumerMember, regexes: Mapping[str, ResolvedRegex]) -> frozenset[UUID]:
        return frozenset(self.ids[name] for name in subscribed(member, regexes) if name in self.ids)


def subscribed(member: ConsumerMember, regexes: Mapping[str, ResolvedRegex]) -> Iterable[str]:
    found = regexes.get(member.facts.regex) if member.facts.regex else None
    return member.facts.topics if found is None else {*member.facts.topics, *found.topics}


def see(
    coordinator: GroupCoordinator, members: Iterable[ConsumerMember], regexes: Mapping[str, ResolvedRegex]
) -> Topics:
    """The topics that these members subscribe to, as the cluster has them now."""
    ids: dict[str, UUID] = {}
    partitions: dict[UUID, int] = {}
    for name in sorted({name for member in members for name in subscribed(member, regexes)}):
        count, topic_id = coordinator.cluster.partition_count(name), coordinator.cluster.topic_id(name)
        if count is not None and topic_id is not None:
            ids[name] = topic_id
            partitions[topic_id] = count
    return Topics(ids, partitions)


def assignor_for(coordinator: GroupCoordinator, members: Mapping[str, ConsumerMember]) -> Assignor:
    """The one that most members name, else the first that is set up. Raises `UnknownServerError` if there is none."""
    if not coordinator.assignors:
        raise UnknownServerError("no assignor of group.consumer.assignors is available; see the broker's log")
    votes = Counter(member.facts.assignor for member in members.values() if member.facts.assignor)
    known = [(count, name) for name, count in votes.items() if name in coordinator.assignors]
    return coordinator.assignors[max(known)[1] if known else next(iter(coordinator.assignors))]


def make(
    coordinator: GroupCoordinator,
    group: ConsumerGroup,
    members: Mapping[str, ConsumerMember],
    regexes: Mapping[str, ResolvedRegex],
    topics: Topics,
) -> dict[str, frozenset[Part]]:
    """Member id → its partitions, of every member. Raises `UnknownServerError` for what an assignor does wrong."""
    assignor = assignor_for(coordinator, members)
    rows = {
        name: Subscriber(
            topics=topics.of(member, regexes),
            assigned=group.target_of(member),
            instance_id=member.facts.instance_id,
            rack_id=member.facts.rack_id,
        )
        for name, member in sorted(members.items())
    }
    try:
        found = assignor.assign(GroupFacts(rows, topics.partitions))
    except Exception as error:
        raise UnknownServerError(f"assignor {assignor.name}: {error!r}") from error
    target = {name: frozenset(found.get(name, ())) for name in members}
    _check(assignor.name, rows, topics, target)
    return target


def _check(name: str, rows: Mapping[str, Subscriber], topics: Topics, target: Mapping[str, frozenset[Part]]) -> None:
    taken: set[Part] = set()
    for member_id, parts in target.items():
        if not taken.isdisjoint(parts):
            raise UnknownServerError(f"assignor {name} gives a partition to two members")
        taken |= parts
        for topic_id, partition in parts:
            if topic_id not in rows[member_id].topics or not 0 <= partition < topics.partitions[topic_id]:
                raise UnknownServerError(f"assignor {name} gives a partition that its member does not subscribe to")
