"""All groups of one partition of __consumer_offsets, and what the event under way asks the host to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import define, field

from logkernel.contracts import Assignor, ClusterView, Decision
from logkernel.requests.groups import JoinGroupResponse, SyncGroupResponse
from logkernel.requests.transactions import TxnOffsetCommitRequest
from logkernel.vocabulary import Record

from .offset_key_cache import OffsetKeyCache
from .records import GroupMetadata, encode_group, group_key
from .settings import GroupSettings
from .state import Event, Group, Member
from .timers import Key, Timers

RETENTION: Final[Key] = ("retention",)


def session_key(group_id: str, member_id: str) -> Key:
    """Without a sign of life until then, the member (or the id that was given out) is gone."""
    return ("session", group_id, member_id)


def join_key(group_id: str) -> Key:
    """Then the round goes on with those who have joined."""
    return ("join", group_id)


def sync_key(group_id: str) -> Key:
    """Then those who have not sent their SyncGroup are gone."""
    return ("sync", group_id)


@define
class Transaction:
    """Which groups a producer's open transaction has pending offsets in."""

    epoch: int
    groups: set[str] = field(factory=set)


@define
class Asked:
    """A commit that waits for the coordinator of its transaction."""

    request: TxnOffsetCommitRequest
    ticket: int
    knows_abortable: bool
    epoch_bump: bool
    """Transactions v2: every transaction has an epoch of its own."""
    ended: bool = False
    """A marker of its transaction came meanwhile."""


class Shard:
    """The parts of the machine share this: groups, timers, the two clocks' readings, and the decision in the making."""

    __slots__ = (
        "asked",
        "assignors",
        "cluster",
        "foreign",
        "groups",
        "ids",
        "last_token",
        "mono_ms",
        "number",
        "offset_keys",
        "out",
        "settings",
        "timers",
        "transactions",
        "wall_ms",
    )

    def __init__(
        self,
        settings: GroupSettings,
        cluster: ClusterView,
        ids: Callable[[], str],
        assignors: Mapping[str, Assignor],
        number: int,
    ) -> None:
        self.number = number
        """Which partition this is."""
        self.assignors = assignors
        """By name, the first for groups whose members name none."""
        self.transactions: dict[int, Transaction] = {}
        """Open transactions with pending offsets, by producer id."""
        self.asked: dict[int, Asked] = {}
        """Commits that wait for their transactions' coordinators, by token; soft."""
        self.last_token = 0
        self.settings = settings
        self.cluster = cluster
        self.ids = ids
        self.groups: dict[str, Group] = {}
        self.offset_keys = OffsetKeyCache()
        self.foreign: set[str] = set()
        """Ids that share groups have."""
        self.timers = Timers()
        self.wall_ms = 0
        self.mono_ms = 0
        self.out = Decision()

    def begin(self, wall_ms: int, mono_ms: int) -> None:
        self.wall_ms, self.mono_ms, self.out = wall_ms, mono_ms, Decision()

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
        """Answer when this decision's records are committed; at once where it has none."""
        self.out.answers.append((ticket, response))

    def reply(self, ticket: int | None, response: Any) -> None:
        """Answer at once: it holds whatever becomes of the records. Nobody waits on None."""
        if ticket is not None:
            self.out.replies.append((ticket, response))

    def after(self, key: Key, delay_ms: int) -> None:
        """Never within this turn, or a client's timeout of 0 could keep it going for ever."""
        self.timers.set(key, self.mono_ms + max(delay_ms, 1))

    # ------------------------------------------------------------ groups and members

    def own_ms(self, group_id: str, name: str) -> int:
        """A time of the new protocol: the group's own where it has one (`consumer.` and `name`), else the broker's."""
        return int(self.cluster.group_setting(group_id, f"consumer.{name}"))

    def group(self, group_id: str) -> Group:
        """The group, made where it is not there; follow up with `tidy`."""
        found = self.groups.get(group_id)
        if found is None:
            found = self.groups[group_id] = Group(group_id)
        return found

    def tidy(self, group: Group) -> None:
        """Forget a group of which nothing is left."""
        if group.is_unused and self.groups.get(group.group_id) is group:
            group.move(Event.FORGOTTEN)
            del self.groups[group.group_id]
            self.offset_keys.forget()
            self.timers.cancel(join_key(group.group_id))
            self.timers.cancel(sync_key(group.group_id))

    def alive(self, group: Group, member: Member) -> None:
        """A sign of life: the member's session begins anew."""
        self.after(session_key(group.group_id, member.member_id), member.session_timeout_ms)

    def drop_member(self, group: Group, member_id: str, code: int) -> None:
        """Take a member out, and answer with error `code` what it has parked."""
        self.timers.cancel(session_key(group.group_id, member_id))
        member = group.members.get(member_id)
        if member is not None:
            self.refuse_parked(group, member, code)
        group.remove(member_id)

    def refuse_parked(self, group: Group, member: Member, code: int, member_id: str = "") -> None:
        self.reply(group.take_join(member), JoinGroupResponse(error_code=code, member_id=member_id))
        ticket, member.sync_ticket = member.sync_ticket, None
        self.reply(ticket, SyncGroupResponse(error_code=code))
