"""The coordinator of all groups in one partition of __consumer_offsets: their state, and the decision being built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import define, field

from logkernel.contracts import Assignor, ClusterView, Decision, RequestContext, TaskAssignor
from logkernel.requests.groups import JoinGroupResponse, SyncGroupResponse
from logkernel.requests.transactions import TxnOffsetCommitRequest
from logkernel.vocabulary import Record

from ..topic_hashes import TopicHashes
from .offset_key_cache import OffsetKeyCache
from .records import GroupMetadata, encode_group, group_key
from .settings import GroupSettings
from .state import ClassicMember, Event, Group
from .streams.making import MakingTopics
from .timers import Key, Timers

RETENTION: Final[Key] = ("retention",)
NOBODY: Final = RequestContext(internal=True)
"""The sender of an event that is no client's request."""


def session_key(group_id: str, member_id: str) -> Key:
    """The key of a member's session timeout; also of a member id that was handed out and not used yet."""
    return ("session", group_id, member_id)


def join_key(group_id: str) -> Key:
    """The key of the rebalance timeout: the members that have joined go on without the others."""
    return ("join", group_id)


def sync_key(group_id: str) -> Key:
    """The key of the sync timeout: members without a SyncGroup are removed."""
    return ("sync", group_id)


@define
class Transaction:
    """The groups in which a producer's open transaction has pending offsets."""

    epoch: int
    groups: set[str] = field(factory=set)


@define
class Asked:
    """A commit that waits for the coordinator of its transaction."""

    request: TxnOffsetCommitRequest
    ticket: int
    knows_abortable: bool
    epoch_bump: bool
    """Transactions v2: each transaction has its own producer epoch."""
    ended: bool = False
    """A marker ended the transaction meanwhile."""


class GroupCoordinator:
    """What the parts of the machine share: groups, timers, the time of the event, and the decision being built."""

    __slots__ = (
        "asked",
        "assignors",
        "cluster",
        "foreign",
        "groups",
        "ids",
        "last_token",
        "making_topics",
        "mono_ms",
        "number",
        "offset_keys",
        "out",
        "sender",
        "settings",
        "task_assignors",
        "timers",
        "topic_hashes",
        "transactions",
        "wall_ms",
    )

    def __init__(
        self,
        settings: GroupSettings,
        cluster: ClusterView,
        ids: Callable[[], str],
        assignors: Mapping[str, Assignor],
        task_assignors: Mapping[str, TaskAssignor],
        number: int,
    ) -> None:
        self.number = number
        """The partition of __consumer_offsets."""
        self.assignors = assignors
        """Name → server-side assignor; the first is the default."""
        self.task_assignors = task_assignors
        """Name → assignor of Streams groups; the first is the default."""
        self.transactions: dict[int, Transaction] = {}
        """Open transactions with pending offsets, by producer id."""
        self.asked: dict[int, Asked] = {}
        """Token → commit that waits for its transaction's coordinator. Soft state."""
        self.last_token = 0
        self.settings = settings
        self.cluster = cluster
        self.ids = ids
        self.groups: dict[str, Group] = {}
        self.topic_hashes = TopicHashes(cluster)
        self.offset_keys = OffsetKeyCache()
        self.foreign: set[str] = set()
        """Ids of share groups, which no other group may have."""
        self.making_topics = MakingTopics()
        """Internal topics of Streams groups. Soft state."""
        self.timers = Timers()
        self.wall_ms = 0
        self.mono_ms = 0
        self.out = Decision()

    def begin(self, wall_ms: int, mono_ms: int, sender: RequestContext = NOBODY) -> None:
        self.wall_ms, self.mono_ms, self.out, self.sender = wall_ms, mono_ms, Decision(), sender

    def finish(self) -> Decision:
        if (self.groups or self.out.records) and RETENTION not in self.timers:
            self.after(RETENTION, self.settings.retention_check_interval_ms)
        return self.out

    # ------------------------------------------------------------ what the host is asked to do

    def append(self, key: bytes, value: bytes | None) -> None:
        self.out.records.append(Record(key, value, timestamp_ms=self.wall_ms))

    def append_group(self, group: Group, kept: GroupMetadata) -> None:
        self.append(group_key(group.group_id), encode_group(kept))

    def answer(self, ticket: int, response: Any) -> None:
        """Answer when the records of this decision are committed; at once if it has none."""
        self.out.answers.append((ticket, response))

    def reply(self, ticket: int | None, response: Any) -> None:
        """Answer at once, whether or not the records get committed. Does nothing if `ticket` is None."""
        if ticket is not None:
            self.out.replies.append((ticket, response))

    def after(self, key: Key, delay_ms: int) -> None:
        """Set a timer, 1 ms from now at the earliest: else a client's timeout of 0 could keep one turn running for
        ever."""
        self.timers.set(key, self.mono_ms + max(delay_ms, 1))

    # ------------------------------------------------------------ groups and members

    def own_ms(self, group_id: str, name: str) -> int:
        """Return the setting `consumer.<name>` in ms: the group's if it is set, else the broker's."""
        return int(self.cluster.group_setting(group_id, f"consumer.{name}"))

    def group(self, group_id: str) -> Group:
        """Return the group, and create it if it does not exist. Call `tidy` afterwards."""
        found = self.groups.get(group_id)
        if found is None:
            found = self.groups[group_id] = Group(group_id)
        return found

    def tidy(self, group: Group) -> None:
        """Remove the group if nothing is left in it."""
        if group.is_unused and self.groups.get(group.group_id) is group:
            group.move(Event.FORGOTTEN)
            del self.groups[group.group_id]
            self.offset_keys.forget()
            self.timers.cancel(join_key(group.group_id))
            self.timers.cancel(sync_key(group.group_id))

    def alive(self, group: Group, member: ClassicMember) -> None:
        """Restart the session timeout of a member that sent a request."""
        self.after(session_key(group.group_id, member.member_id), member.session_timeout_ms)

    def drop_member(self, group: Group, member_id: str, code: int) -> None:
        """Remove a member, and answer its parked requests with error `code`."""
        self.timers.cancel(session_key(group.group_id, member_id))
        member = group.members.get(member_id)
        if member is not None:
            self.refuse_parked(group, member, code)
        group.remove(member_id)

    def refuse_parked(self, group: Group, member: ClassicMember, code: int, member_id: str = "") -> None:
        self.reply(group.take_join(member), JoinGroupResponse(error_code=code, member_id=member_id))
        ticket, member.sync_ticket = member.sync_ticket, None
        self.reply(ticket, SyncGroupResponse(error_code=code))
