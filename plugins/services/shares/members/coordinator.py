"""The coordinator of all share groups in one partition of __consumer_offsets.

A `GroupUpdate` builds the records of one event for one group. Each record is folded into a draft of the group at once,
so the next step of the event sees it; the group itself changes when the host replays the records.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

from logkernel.contracts import ClusterView, Decision
from logkernel.vocabulary import Record

from ...groups.timers import Key as TimerKey
from ...groups.timers import Timers
from ...topic_hashes import TopicHashes
from .group import Group
from .records import OTHER_GROUPS, Key, Kind, Value, encode_key, encode_value

SESSION: Final = "session"
Then = Callable[[Any], None]
"""Continues an event with the broker's answer."""


class ShareGroupCoordinator:
    """What the parts of the machine share: groups, timers, the time of the event, and the decision being built."""

    def __init__(self, max_size: int, retry_ms: int, cluster: ClusterView) -> None:
        self.max_size = max_size
        self.retry_ms = retry_ms
        self.cluster = cluster
        self.groups: dict[str, Group] = {}
        self.foreign: set[tuple[int, str]] = set()
        """(key type, id) of classic and consumer groups, which no share group may have."""
        self.topic_hashes = TopicHashes(cluster)
        self.timers = Timers()
        self.stale: set[str] = set()
        """Groups whose topics may have changed since their metadata hash was computed."""
        self.initializing: dict[str, list[Callable[[GroupUpdate], None]]] = {}
        """Group id → what to call when its share state is initialized."""
        self.retry_at: dict[str, int] = {}
        """Group id → monotonic ms before which a failed initialization is not retried."""
        self.wall_ms = self.mono_ms = 0
        self.out = Decision()
        self._numbers = count(1)
        self._waiting: dict[int, Then] = {}

    def begin(self, wall_ms: int, mono_ms: int) -> None:
        self.wall_ms, self.mono_ms, self.out = wall_ms, mono_ms, Decision()

    def answer(self, ticket: int, response: Any) -> None:
        """Answer when the records of this decision are committed."""
        self.out.answers.append((ticket, response))

    def ask(self, request: Any, then: Then | None = None) -> None:
        """Send `request` to the broker when the records of this decision are committed; `then` gets the response."""
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

    def begin_update(self, group_id: str) -> GroupUpdate:
        return GroupUpdate(self, self.groups.get(group_id) or Group(group_id))

    def alive(self, group_id: str, member_id: str) -> None:
        """Restart the session timeout of a member that sent a request."""
        timeout_ms = int(self.cluster.group_setting(group_id, "share.session.timeout.ms"))
        self.timers.set(session_key(group_id, member_id), self.mono_ms + timeout_ms)


class GroupUpdate:
    """The records of one event for one group, and a draft of the group with them."""

    __slots__ = ("coordinator", "group")

    def __init__(self, coordinator: ShareGroupCoordinator, group: Group) -> None:
        self.coordinator = coordinator
        self.group = group.copy()
        """The draft."""

    def emit(self, kind: Kind, value: Value | None, member_id: str = "") -> None:
        key = Key(kind, self.group.group_id, member_id)
        self.group.fold(key, value)
        data = None if value is None else encode_value(value)
        self.coordinator.out.records.append(Record(encode_key(key), data, timestamp_ms=self.coordinator.wall_ms))


def session_key(group_id: str, member_id: str) -> TimerKey:
    return (SESSION, group_id, member_id)
