"""A member of a classic group: join, synchronize, heartbeat, leave. Pure.

    state        event                                        next
    OUT          a poll came lately, topics are subscribed    JOINING
    JOINING      MEMBER_ID_REQUIRED                           JOINING, with the id
    JOINING      answer, this member leads                    ASSIGNING
    JOINING      answer, another leads                        SYNCING
    ASSIGNING    the partitions of all topics are known       SYNCING
    SYNCING      the assignment                               STABLE; events REVOKE (cooperative), ASSIGN
    STABLE       REBALANCE_IN_PROGRESS, topics changed, ...   PREPARING with event REVOKE; OUT where nothing goes
    OUT          no topic is subscribed any more              OUT; the member leaves
    PREPARING    the events were handled                      OUT
    any          UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION        PREPARING with event LOST
    any          no poll within max.poll.interval.ms          the same, and the member leaves
    any          FENCED_INSTANCE_ID, authorization, ...       FAILED: the next poll raises it
    any          close                                        LEFT

Events wait for the user's poll, who revokes and assigns there and calls his listener; heartbeats go on meanwhile,
as a driver's own turns send them. An answer to a request of an earlier round is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from logkernel.client.cluster.calls import Call, ClientCore, earliest
from logkernel.client.cluster.permissions import explained
from logkernel.client.membership.assignors import Assignor, make_assignors
from logkernel.client.membership.base import (
    ASSIGN,
    ASSIGNING,
    FAILED,
    JOINING,
    LEAVE_MS,
    LEFT,
    OUT,
    PREPARING,
    REVOKE,
    STABLE,
    SYNCING,
    Event,
    GroupMembership,
    coordinator_error,
    passes,
)
from logkernel.client.membership.consumer_protocol import (
    PROTOCOL_TYPE,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from logkernel.client.metrics import WindowedMetrics
from logkernel.errors import (
    FencedInstanceId,
    IllegalGeneration,
    KafkaError,
    LogkernelError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
    error_for,
)
from logkernel.requests.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from logkernel.vocabulary import TopicPartition

JOIN_GRACE_MS: Final = 5_000
"""Added to the time that a join may take, as the coordinator itself waits for so long."""


class ClassicMember(GroupMembership):
    """See the module."""

    def __init__(self, core: ClientCore, settings: Mapping[str, Any], metrics: WindowedMetrics) -> None:
        super().__init__(core, settings, metrics)
        self.assignors: list[Assignor] = make_assignors(settings["partition.assignment.strategy"])
        self.cooperative = all(assignor.cooperative for assignor in self.assignors)
        self._interval_ms: int = settings["heartbeat.interval.ms"]
        self._session_ms: int = settings["session.timeout.ms"]
        self._rejoin = False
        self._beat_ms = 0
        self._beating = False
        self._joined_topics: frozenset[str] = frozenset()
        self._before: list[TopicPartition] = []
        """What an eager member gave up for the round under way: its sticky assignor tells it."""
        self._before_generation = -1
        self._joined: JoinGroupResponse | None = None
        self._members: dict[str, Subscription] = {}
        self._counts: dict[str, int] = {}
        """As leader: partitions of the topics that were shared out."""
        self._asked_version = -1

    def handled(self, event: Event) -> None:
        if self.is_next(event):
            self.events.popleft()
        gone = set(event.partitions)
        if event.kind == ASSIGN:
            self.owned |= gone
            return
        self.owned -= gone
        if self.state == PREPARING:
            if not self.events:
                self.state = OUT
        elif self.state == STABLE and event.kind == REVOKE:
            self._rejoin = True  # what was given up is shared out in another round

    # ------------------------------------------------------------ time

    def step(self, now_ms: int) -> int | None:
        self._now_ms = now_ms
        if self.state in (FAILED, LEFT) or self.polled_ms is None:
            return None
        late_ms = self.polled_ms + self._max_poll_ms
        if self._check_late(now_ms):
            return None
        if self.state == STABLE:
            self._look(now_ms)
        next_ms = self._join_if_due(now_ms) if self.state == OUT else None
        if self.state == ASSIGNING:
            self._assign(now_ms)
        return earliest(next_ms, self._heartbeat(now_ms), late_ms + 1)

    def _look(self, now_ms: int) -> None:
        """Whether the group must come together again, and nothing is left to be handled before."""
        if self._counts and self._asked_version != self.core.metadata.version:
            self._asked_version = self.core.metadata.version
            topics = self.core.metadata.topics
            known = {name: len(topics[name].leaders) for name in self._counts if name in topics}
            if any(count and count != self._counts[name] for name, count in known.items()):
                self._rejoin = True
        if self.topics != self._joined_topics:
            self._rejoin = True
        if self._rejoin and not self.events:
            self._prepare()

    def _prepare(self) -> None:
        self._rejoin = False
        if self.cooperative:
            going = [partition for partition in self.owned if partition.topic not in self.topics]
        else:
            going = list(self.owned)
        self._before, self._before_generation = sorted(self.owned), self.generation
        if going:
            self.events.append(Event(REVOKE, sorted(going)))
        self.state = PREPARING if going else OUT

    def _too_slow(self) -> None:
        self._leave("the consumer did not poll within max.poll.interval.ms")
        self._lose(forget_member=self.instance_id is None)

    def _lose(self, forget_member: bool = True) -> None:
        """The member is out of the group: its partitions may belong to others already."""
        self._rejoin, self._joined, self._beating = False, None, False
        self._before, self._before_generation, self._counts = [], -1, {}
        if forget_member:
            self.member_id = ""
        self._over()

    def _fail(self, error: Exception) -> None:
        self._lose()
        self.state, self.error = FAILED, error

    # ------------------------------------------------------------ joining

    def _join_if_due(self, now_ms: int) -> int | None:
        if not self.topics:
            if self.generation >= 0:
                self._leave("the consumer unsubscribed")
                self._lose(forget_member=self.instance_id is None)
            return None
        if now_ms < self._retry_ms:
            return self._retry_ms
        self._round += 1
        self.state, self._joined_topics = JOINING, self.topics
        self._metrics.count("rebalance")
        limit_ms = max(self._max_poll_ms, self._session_ms) + JOIN_GRACE_MS
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._session_ms,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(one.name, self._subscription(one)) for one in self.assignors],
            rebalance_timeout_ms=self._max_poll_ms,
            group_instance_id=self.instance_id,
        )
        self._call(request, now_ms + limit_ms, self._on_join, limit_ms)
        return None

    def _subscription(self, assignor: Assignor) -> bytes:
        owned = sorted(self.owned)
        had = owned if self.cooperative else self._before
        generation = self.generation if self.cooperative else self._before_generation
        data = assignor.user_data(had, generation)
        rack = self._settings["client.rack"] or None
        return encode_subscription(Subscription(sorted(self.topics), data, owned, generation, rack))

    def _call(self, request: Any, deadline_ms: int, done: Callable[[Any], None], timeout_ms: int | None = None) -> None:
        """Send to the coordinator; `done` gets the response unless another round has begun."""
        number = self._round

        def answered(response: Any, error: Exception | None) -> None:
            if number != self._round:
                return
            if error is None:
                done(response)
            else:
                self._unanswered(error)

        self.core.call(Call(self.key, request, deadline_ms, answered, coordinator_error, timeout_ms=timeout_ms))

    def _unanswered(self, error: Exception) -> None:
        self.core.forget_coordinator(self.key)
        if passes(error):
            self._again()
        else:
            self._fail(error)

    def _again(self) -> None:
        """Another round, after a wait."""
        self._round += 1
        self._joined = None
        self.state = OUT
        self._wait()
        self._metrics.count("failed-rebalance")

    def _refused(self, code: int) -> None:
        """A join or synchronization failed."""
        error = explained(error_for(code, about=self.group_id), "JoinGroup")
        if isinstance(error, (UnknownMemberId, IllegalGeneration)):
            self._wait()
            self._lose(forget_member=isinstance(error, UnknownMemberId))
        elif isinstance(error, RebalanceInProgress) or (isinstance(error, KafkaError) and error.retriable):
            self._again()
        else:
            self._fail(error)

    def _on_join(self, response: JoinGroupResponse) -> None:
        if response.error_code == MemberIdRequired.code:
            self.member_id, self.state = response.member_id, OUT
            return
        if response.error_code:
            self._refused(response.error_code)
            return
        self.member_id, self.generation, self._joined = response.member_id, response.generation_id, response
        self._members, self._counts = {}, {}
        self._beat_ms = self._now_ms + self._interval_ms
        if response.leader == response.member_id and not response.skip_assignment:
            try:
                for row in response.members:
                    wish = decode_subscription(row.metadata)
                    wish.instance_id = row.group_instance_id
                    self._members[row.member_id] = wish
            except KafkaError as error:
                self._fail(error)
                return
            self.state = ASSIGNING
            self._asked_version = self.core.metadata.updates
            for topic in self._wanted_topics():
                self.core.metadata.want(topic, self._now_ms)
        else:
            self._sync([])

    def _wanted_topics(self) -> list[str]:
        return sorted({topic for wish in self._members.values() for topic in wish.topics})

    def _assign(self, now_ms: int) -> None:
        """As leader: share out once it is known how many partitions there are."""
        assert self._joined is not None
        found = {topic: self.core.metadata.want(topic, now_ms) for topic in self._wanted_topics()}
        if any(not info.leaders and not info.error_code for info in found.values()):
            return
        self._counts = {topic: len(info.leaders) for topic, info in found.items()}
        self._asked_version = self.core.metadata.version
        name = self._joined.protocol_name
        assignor = next((one for one in self.assignors if one.name == name), None)
        if assignor is None:
            self._fail(LogkernelError(f"the group chose {name!r}, which this member did not offer"))
            return
        try:
            shares = assignor.assign({topic: count for topic, count in self._counts.items() if count}, self._members)
        except Exception as error:  # a user's own assignor, or user data that no assignor wrote
            self._fail(error)
            return
        self._sync(
            [SyncGroupRequestAssignment(member, encode_assignment(share)) for member, share in sorted(shares.items())]
        )

    def _sync(self, assignments: list[SyncGroupRequestAssignment]) -> None:
        assert self._joined is not None
        self.state = SYNCING
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=assignments,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._joined.protocol_name,
        )
        limit_ms = max(self._max_poll_ms, self._session_ms) + JOIN_GRACE_MS
        self._call(request, self._now_ms + limit_ms, self._on_sync, limit_ms)

    def _on_sync(self, response: Any) -> None:
        if response.error_code:
            self._refused(response.error_code)
            return
        try:
            given = set(decode_assignment(response.assignment))
        except KafkaError as error:
            self._fail(error)
            return
        self.state, self._failures, self._rejoin = STABLE, 0, False
        going = sorted(self.owned - given)
        if going:
            self.events.append(Event(REVOKE, going))
        self.events.append(Event(ASSIGN, sorted(given - self.owned)))

    # ------------------------------------------------------------ heartbeats, leaving

    def _heartbeat(self, now_ms: int) -> int | None:
        if self.generation < 0 or self.state not in (STABLE, PREPARING, SYNCING, ASSIGNING) or self._beating:
            return None
        if now_ms < self._beat_ms:
            return self._beat_ms
        self._beating, self._beat_ms = True, now_ms + self._interval_ms
        self._metrics.count("heartbeat")
        number = self._round
        request = HeartbeatRequest(self.group_id, self.generation, self.member_id, self.instance_id)

        def answered(response: Any, error: Exception | None) -> None:
            self._beating = False
            if number == self._round:
                self._on_heartbeat(response, error)

        self.core.call(Call(self.key, request, now_ms + self._session_ms, answered, coordinator_error))
        return None

    def _on_heartbeat(self, response: Any, error: Exception | None) -> None:
        if error is not None:
            self.core.forget_coordinator(self.key)
            if not passes(error):
                self._fail(error)
            return
        code = response.error_code
        if code == RebalanceInProgress.code:
            self._rejoin = self._rejoin or self.state == STABLE
        elif code in (UnknownMemberId.code, IllegalGeneration.code):
            self._lose(forget_member=code == UnknownMemberId.code)
        elif code == FencedInstanceId.code or (code and not error_for(code).retriable):
            self._fail(explained(error_for(code, about=self.group_id), "Heartbeat"))

    def rejoin(self) -> None:
        self._rejoin = self._rejoin or self.state == STABLE

    def stale(self) -> None:
        self.rejoin()  # the group was moved to the other protocol meanwhile

    def lost(self, code: int) -> None:
        if self.state not in (FAILED, LEFT):
            self._lose(forget_member=code == UnknownMemberId.code)

    def leave(self) -> None:
        """A dynamic member leaves, a static one goes silently."""
        if self.state == LEFT:
            return
        self._leave("the consumer is being closed")
        self._round += 1
        self.state, self.generation = LEFT, -1
        self.owned.clear()
        self.events.clear()

    def _leave(self, reason: str) -> None:
        if not self.member_id or self.instance_id is not None or self.leaving:
            return
        self.leaving = True

        def answered(response: Any, error: Exception | None) -> None:
            self.leaving = False

        request = LeaveGroupRequest(self.group_id, self.member_id, [MemberIdentity(self.member_id, None, reason)])
        self.core.call(Call(self.key, request, self._now_ms + LEAVE_MS, answered, coordinator_error))
