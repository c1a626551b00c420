"""All share groups of one partition of __consumer_offsets, and the event under way.

A `Turn` is a decision in the making for one group: what it emits is folded into a draft at once, so that the next
step of the same event sees it; the group itself changes when the host replays the records.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

from logkernel.contracts import ClusterView, Decision
from logkernel.vocabulary import Record

from ...groups.timers import Key as TimerKey
from ...groups.timers import Timers
from .group import Group
from .records import OTHER_GROUPS, Key, Kind, Value, encode_key, encode_value

SESSION: Final = "session"
Then = Callable[[Any], None]
"""Goes on with an event when the broker has answered."""


class Shard:
    """The parts of the machine share this."""

    def __init__(self, max_size: int, retry_ms: int, cluster: ClusterView) -> None:
        self.max_size = max_size
        self.retry_ms = retry_ms
        self.cluster = cluster
        self.groups: dict[str, Group] = {}
        self.foreign: set[tuple[int, str]] = set()
        """(Key type, id) of groups of other kinds."""
        self.timers = Timers()
        self.stale: set[str] = set()
        """Groups whose topics may have changed since their metadata hash was taken."""
        self.initializing: dict[str, list[Callable[[Turn], None]]] = {}
        """Group → who waits for the share state that is being made."""
        self.retry_at: dict[str, int] = {}
        """Group → mono ms before which share state that could not be made is not tried again."""
        self.wall_ms = self.mono_ms = 0
        self.out = Decision()
        self._numbers = count(1)
        self._waiting: dict[int, Then] = {}

    def begin(self, wall_ms: int, mono_ms: int) -> None:
        self.wall_ms, self.mono_ms, self.out = wall_ms, mono_ms, Decision()

    def answer(self, ticket: int, response: Any) -> None:
        """When this decision's records are committed."""
        self.out.answers.append((ticket, response))

    def ask(self, request: Any, then: Then | None = None) -> None:
        """Put `request` to the broker once this decision's records are committed."""
        number = next(self._numbers)
        if then is not None:
            self._waiting[number] = then
        self.out.sends.append((number, request))

    def heard(self, number: int, response: Any) -> None:
        then = self._waiting.pop(number, None)
        if then is not None:
            then(response)

    def is_foreign(self, group_id: str) -> bool:
        """Whether a group of another kind has this id."""
        return any((kind, group_id) in self.foreign for kind in OTHER_GROUPS)

    def turn(self, group_id: str) -> Turn:
        return Turn(self, self.groups.get(group_id) or Group(group_id))

    def alive(self, group_id: str, member_id: str) -> None:
        """A sign of life: the session begins anew."""
        timeout_ms = int(self.cluster.group_setting(group_id, "share.session.timeout.ms"))
        self.timers.set(session_key(group_id, member_id), self.mono_ms + timeout_ms)


class Turn:
    """One group's part of the decision."""

    __slots__ = ("group", "shard")

    def __init__(self, shard: Shard, group: Group) -> None:
        self.shard = shard
        self.group = group.copy()
        """As it will be."""

    def emit(self, kind: Kind, value: Value | None, member_id: str = "") -> None:
        key = Key(kind, self.group.group_id, member_id)
        self.group.fold(key, value)
        data = None if value is None else encode_value(value)
        self.shard.out.records.append(Record(encode_key(key), data, timestamp_ms=self.shard.wall_ms))


def session_key(group_id: str, member_id: str) -> TimerKey:
    return (SESSION, group_id, member_id)
