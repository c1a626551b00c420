"""One group: its states, what moves it from one to the next, and its members.

A classic group works in rounds, numbered by its *generation*. Members join; when all have, or time is up, the
next generation begins: one protocol that all of them know is chosen by vote, and the leader is told who is in. The
leader alone decides who gets what, and hands the assignment in with its SyncGroup; once that is kept in the log, every
member learns its part. Whoever speaks with an old generation is refused, so a member that was left behind can commit
nothing.

    Empty                 nobody is in; offsets may be there, and anyone without a generation may commit
    PreparingRebalance    members are expected to (re)join; their JoinGroups are parked
    CompletingRebalance   the generation is known, its assignment is not; SyncGroups are parked
    Stable                every member can have its part of the assignment
    Dead                  nothing is left; the group is forgotten

What is durable (kept by records, and changed by `keep` and `forget` alone) is the generation with its members as of the
last Stable or Empty, and the offsets. All else, the rounds under way among it, is soft and dies with the machine:
a group that is loaded is Stable or Empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from struct import Struct
from typing import Final

from attrs import define, field

from logkernel.errors import FencedInstanceId, UnknownMemberId

from .consumer.state import ConsumerGroup
from .records import CommittedOffset, GroupMetadata, MemberMetadata
from .streams.state import StreamsGroup

CONSUMER: Final = "consumer"
"""The protocol type whose subscriptions the coordinator can read."""
STREAMS: Final = "streams"
MAX_GENERATION: Final = 2**31 - 1


class State(Enum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Event(Enum):
    REBALANCE = "a member came, went or changed"
    JOINED = "all have joined, or time is up"
    KEPT_MEMBERS = "a record with members was replayed"
    KEPT_NOBODY = "a record without members was replayed"
    FORGOTTEN = "neither members, offsets nor a record are left"


TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = {
    (State.EMPTY, Event.REBALANCE): State.PREPARING,
    (State.STABLE, Event.REBALANCE): State.PREPARING,
    (State.COMPLETING, Event.REBALANCE): State.PREPARING,
    (State.PREPARING, Event.JOINED): State.COMPLETING,
    (State.COMPLETING, Event.KEPT_MEMBERS): State.STABLE,  # the leader's assignment
    (State.PREPARING, Event.KEPT_NOBODY): State.EMPTY,  # the last member is gone
    (State.STABLE, Event.KEPT_MEMBERS): State.STABLE,  # a static member came back; or while loading
    (State.COMPLETING, Event.KEPT_NOBODY): State.EMPTY,  # it goes on by the new protocol
    (State.EMPTY, Event.KEPT_MEMBERS): State.STABLE,  # while loading, or coming from the new protocol
    (State.STABLE, Event.KEPT_NOBODY): State.EMPTY,  # while loading
    (State.EMPTY, Event.KEPT_NOBODY): State.EMPTY,  # a tombstone; or while loading
    (State.EMPTY, Event.FORGOTTEN): State.DEAD,
}


@define(eq=False)
class ClassicMember:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: dict[str, bytes]
    """Name → metadata, in order of preference."""
    assignment: bytes = b""
    join_ticket: int | None = None
    """The JoinGroup that waits for the generation; set by `Group.park_join` and `take_join` alone."""
    sync_ticket: int | None = None
    """The SyncGroup that waits for the assignment."""
    is_new: bool = False
    """It has not seen a generation yet, so it cannot heartbeat: its parked JoinGroup ends with its timer."""

    def vote(self, candidates: Iterable[str]) -> str | None:
        known = set(candidates)
        return next((name for name in self.protocols if name in known), None)

    def metadata(self, protocol: str | None) -> bytes:
        return self.protocols.get(protocol, b"") if protocol is not None else b""

    def kept(self, protocol: str | None, assignment: bytes) -> MemberMetadata:
        """What a record says of this member."""
        return MemberMetadata(
            self.member_id,
            self.instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol),
            assignment,
        )


@define(eq=False)
class Group:
    group_id: str
    state: State = State.EMPTY

    # durable
    generation: int = 0
    protocol_type: str | None = None
    """None if no member ever joined: a "simple" group that only has offsets."""
    protocol: str | None = None
    leader: str | None = None
    """A member's id; None exactly where there are no members."""
    state_ms: int = -1
    recorded: bool = False
    """Whether the log holds a group record that is no tombstone."""
    is_known: bool = False
    """Offsets of it are in the log, or were: only a tombstone of its own ends it."""
    members: dict[str, ClassicMember] = field(factory=dict)
    offsets: dict[str, dict[int, CommittedOffset]] = field(factory=dict)
    """Topic → partition → offset; no topic without partitions."""
    uncommitted: dict[int, dict[tuple[str, int], CommittedOffset]] = field(factory=dict)
    """Producer id → (topic, partition) → offset that holds once the producer's transaction commits; none is empty."""
    consumer: ConsumerGroup | None = None
    """What the group is by the protocol of KIP-848; while it is set, nothing classic is in here but offsets."""
    streams: StreamsGroup | None = None
    """What the group is by the protocol of KIP-1071; likewise, and never beside `consumer`."""

    # soft
    static: dict[str, str] = field(factory=dict)
    """Instance id → member id, of exactly the static `members`."""
    pending: set[str] = field(factory=set)
    """Member ids that were given out and have not joined yet (KIP-394)."""
    unsynced: set[str] = field(factory=set)
    """Members of this generation that have not sent their SyncGroup."""
    returning: dict[str, ClassicMember] = field(factory=dict)
    """Static members under their new ids, until the record that lets them in is replayed."""
    subscribed: frozenset[str] | None = None
    """Topics that the members read; None where that cannot be known."""
    first_round: bool = False
    """The rebalance began in an empty group: it waits for its delay, whatever joins."""
    first_delay_ms: int = 0
    first_left_ms: int = 0
    """How much longer that delay may still grow."""
    came_late: bool = False
    """A member joined during that delay, so the delay is extended once more."""
    emptying: bool = False
    """A record without members is decided and not replayed yet."""
    known_by: dict[str, int] = field(factory=dict)
    """Protocol → how many members know it."""
    joining: int = 0
    """How many members have a JoinGroup parked."""

    # ------------------------------------------------------------ states

    def move(self, event: Event) -> None:
        """Raises RuntimeError for what the table does not have: a fault in here, never the client's."""
        after = TRANSITIONS.get((self.state, event))
        if after is None:
            raise RuntimeError(f"group {self.group_id!r}: {event.value}, while {self.state.value}")
        self.state = after

    @property
    def is_unused(self) -> bool:
        kept = self.members or self.pending or self.offsets or self.uncommitted or self.recorded or self.returning
        return self.state is State.EMPTY and not (kept or self.is_known) and self.is_classic

    @property
    def is_forsaken(self) -> bool:
        """Whether it has no members and none is joining: a tombstone may delete it. Groups of the newer protocols
        have their own tombstones."""
        waits = self.state is not State.EMPTY or self.pending or self.returning
        return not waits and (self.recorded or self.is_classic)

    @property
    def newer(self) -> ConsumerGroup | StreamsGroup | None:
        """Its part by a protocol with member epochs."""
        return self.consumer or self.streams

    @property
    def is_empty(self) -> bool:
        """Whether it has no members of any protocol."""
        newer = self.newer
        return self.state is State.EMPTY and (newer is None or not newer.members)

    @property
    def is_classic(self) -> bool:
        return self.newer is None

    @property
    def kind(self) -> str:
        if self.streams is not None:
            return STREAMS
        return "classic" if self.consumer is None else "consumer"

    @property
    def state_name(self) -> str:
        newer = self.newer
        return self.state.value if newer is None else newer.state.value

    def next_generation(self) -> int:
        return self.generation + 1 if self.generation < MAX_GENERATION else 1

    # ------------------------------------------------------------ members

    def add(self, member: ClassicMember) -> None:
        self.members[member.member_id] = member
        self.pending.discard(member.member_id)
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.joining += member.join_ticket is not None
        self._count(member, 1)

    def remove(self, member_id: str) -> ClassicMember | None:
        self.pending.discard(member_id)
        self.unsynced.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        if member.instance_id is not None:
            del self.static[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.joining -= member.join_ticket is not None
        self._count(member, -1)
        return member

    def park_join(self, member: ClassicMember, ticket: int) -> int | None:
        """Let a JoinGroup wait; returns the ticket that waited in its place."""
        before, member.join_ticket = member.join_ticket, ticket
        self.joining += before is None
        return before

    def take_join(self, member: ClassicMember) -> int | None:
        """The JoinGroup that waits, which waits no longer."""
        ticket, member.join_ticket = member.join_ticket, None
        self.joining -= ticket is not None
        return ticket

    def relearn(self, member: ClassicMember, protocols: dict[str, bytes]) -> None:
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)

    def _count(self, member: ClassicMember, change: int) -> None:
        for name in member.protocols:
            left = self.known_by.get(name, 0) + change
            if left:
                self.known_by[name] = left
            else:
                self.known_by.pop(name, None)

    @property
    def all_joined(self) -> bool:
        return not self.pending and self.joining == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of the members'."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Make a member that has joined the leader; return False if none has."""
        if self.leader is not None and self.members[self.leader].join_ticket is not None:
            return True
        joined = (member.member_id for member in self.members.values() if member.join_ticket is not None)
        found = next(joined, None)
        if found is None:
            return False
        self.leader = found
        return True

    def fault_of(self, member_id: str, instance_id: str | None) -> int:
        """Return the error code for a client that claims to be this member; 0 if it is."""
        if instance_id is not None:
            known = self.static.get(instance_id)
            if known is None:
                return UnknownMemberId.code
            if known != member_id:
                return FencedInstanceId.code
        return 0 if member_id in self.members else UnknownMemberId.code

    # ------------------------------------------------------------ protocols

    def accepts(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Whether a member with `protocols` can join: all members support one of them."""
        if self.state is State.EMPTY:
            return bool(protocol_type) and any(True for _ in protocols)
        size = len(self.members)
        return self.protocol_type == protocol_type and any(self.known_by.get(name, 0) == size for name in protocols)

    def select_protocol(self, members: Iterable[ClassicMember] | None = None) -> str | None:
        """The protocol that all know and most prefer; of equals, the one voted for first."""
        voters = list(self.members.values() if members is None else members)
        if not voters:
            return None
        candidates = set(voters[0].protocols).intersection(*(voter.protocols for voter in voters[1:]))
        votes: dict[str, int] = {}
        for voter in voters:
            choice = voter.vote(candidates)
            if choice is not None:
                votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__, default=None)

    def reads(self, topic: str) -> bool:
        """Whether members may be reading `topic`; consumers whose subscription cannot be read may read all."""
        newer = self.newer
        if newer is not None:
            return newer.reads(topic)
        if self.subscribed is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed

    def find_subscribed(self) -> None:
        if self.protocol_type != CONSUMER:
            self.subscribed = None
            return
        found: set[str] = set()
        for member in self.members.values():
            topics = subscribed_topics(member.metadata(self.protocol))
            if topics is None:
                self.subscribed = None
                return
            found.update(topics)
        self.subscribed = frozenset(found)

    # ------------------------------------------------------------ durable

    def snapshot(self, wall_ms: int, assignments: Mapping[str, bytes]) -> GroupMetadata:
        """The record of this generation with these assignments."""
        members = tuple(
            member.kept(self.protocol, assignments.get(member.member_id, b"")) for member in self.members.values()
        )
        return self.record(wall_ms, self.generation, members, self.leader)

    def record(
        self, wall_ms: int, generation: int, members: tuple[MemberMetadata, ...], leader: str | None
    ) -> GroupMetadata:
        protocol = self.protocol if members else None
        return GroupMetadata(self.protocol_type or "", generation, protocol, leader, wall_ms, members)

    def keep(self, kept: GroupMetadata) -> None:
        """Replay: the log says what this group is."""
        before = self.members
        self.recorded = True
        self.protocol_type = kept.protocol_type or None
        self.generation, self.protocol, self.leader = kept.generation, kept.protocol, kept.leader
        self.state_ms = kept.state_ms
        self.members, self.static, self.known_by, self.joining = {}, {}, {}, 0
        for facts in kept.members:
            member = before.get(facts.member_id) or self.returning.get(facts.member_id) or _loaded(facts)
            if kept.protocol is not None and member.protocols.get(kept.protocol) != facts.subscription:
                member.protocols = {kept.protocol: facts.subscription}
            member.rebalance_timeout_ms = facts.rebalance_timeout_ms
            member.session_timeout_ms = facts.session_timeout_ms
            member.assignment = facts.assignment
            self.add(member)
        if self.leader not in self.members:
            self.leader = next(iter(self.members), None)
        self.returning.clear()
        self.emptying = False
        self.unsynced.intersection_update(self.members)
        self.find_subscribed()
        self.move(Event.KEPT_MEMBERS if self.members else Event.KEPT_NOBODY)

    def forget(self) -> None:
        """Replay a tombstone: only offsets remain, as of a group that no member ever joined."""
        self.keep(GroupMetadata("", 0, None, None, -1, ()))
        self.recorded = self.is_known = False

    def is_unstable(self, topic: str, partition: int) -> bool:
        """Whether a transaction that is not decided may change this offset."""
        return any((topic, partition) in entries for entries in self.uncommitted.values())

    def places(self, topics: Iterable[str] | None = None) -> list[tuple[str, int]]:
        """(topic, partition) of every offset, pending ones included; of these topics alone, where they are given."""
        found = [(topic, partition) for topic in topics or self.offsets for partition in self.offsets.get(topic, ())]
        if not self.uncommitted:
            return found
        pending = {place for entries in self.uncommitted.values() for place in entries}
        return found + sorted(place for place in pending.difference(found) if topics is None or place[0] in topics)

    def each_offset(self) -> Iterator[tuple[str, int, CommittedOffset]]:
        for topic, partitions in self.offsets.items():
            for partition, entry in partitions.items():
                yield topic, partition, entry


def _loaded(facts: MemberMetadata) -> ClassicMember:
    return ClassicMember(
        facts.member_id,
        facts.instance_id,
        facts.client_id,
        facts.client_host,
        facts.rebalance_timeout_ms,
        facts.session_timeout_ms,
        {},
    )


_VERSION_AND_COUNT = Struct(">hi")
_LENGTH = Struct(">h")


def subscribed_topics(subscription: bytes) -> list[str] | None:
    """Topics of a consumer's subscription, None where it cannot be read.

    Every version begins as version 0 does: version i16 | topics array (i32 count) of string (i16 length, UTF-8).
    """
    if len(subscription) < _VERSION_AND_COUNT.size:
        return None
    version, count = _VERSION_AND_COUNT.unpack_from(subscription)
    at = _VERSION_AND_COUNT.size
    if version < 0 or not 0 <= count <= (len(subscription) - at) // _LENGTH.size:
        return None
    topics: list[str] = []
    for _ in range(count):
        if at + _LENGTH.size > len(subscription):
            return None
        (size,) = _LENGTH.unpack_from(subscription, at)
        at += _LENGTH.size + size
        if size < 0 or at > len(subscription):
            return None
        try:
            topics.append(subscription[at - size : at].decode())
        except UnicodeDecodeError:
            return None
    return topics
