"""A member of a group by KIP-848: the coordinator assigns, heartbeats carry everything. Pure.

    state       event                                           next
    OUT         a poll came lately, something is subscribed     JOINING: a heartbeat of epoch 0 with all fields
    JOINING     the answer                                      STABLE at the epoch that it names
    STABLE      an answer with an assignment                    STABLE; events REVOKE, ASSIGN towards it
    STABLE      the subscription or the owned ones changed      STABLE; a heartbeat at once
    STABLE      nothing is subscribed any more                  event REVOKE; then OUT, and the member leaves
    any         FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, ...     PREPARING with event LOST; OUT where nothing is owned
    PREPARING   the event was handled                           OUT
    any         no poll within max.poll.interval.ms             the same, and the member leaves
    any         UNRELEASED_INSTANCE_ID, authorization, ...      FAILED: the next poll raises it
    any         close                                           LEFT; epoch -1, of a static member -2: it may be back

A heartbeat names as owned both the partitions that the member owns and those that the user's next poll will assign:
all that it may read before it gets another assignment. So the coordinator can give all others away, and a heartbeat
need not wait for the user. One heartbeat is under way at a time, also across rejoins, so none overtakes another.

The coordinator sends an assignment once, or in answer to a heartbeat with all fields. So the next heartbeat carries all
fields if an answer was lost. After a heartbeat timed out, those of the next minute do too: it may still reach the
coordinator, and its answer reaches nobody.

The coordinator names topics by id. The metadata gives their names; the names of topics that only a RE2 expression
matched are requested. A topic that was deleted and created again is another topic: its partitions are revoked and
assigned.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from attrs import frozen

from logkernel.client.cluster.calls import ANY, Call, ClientCore, earliest
from logkernel.client.cluster.permissions import explained
from logkernel.client.membership.base import (
    ASSIGN,
    FAILED,
    JOINING,
    LEAVE_MS,
    LEFT,
    OUT,
    PREPARING,
    REVOKE,
    STABLE,
    Event,
    GroupMembership,
    coordinator_error,
    passes,
)
from logkernel.client.metrics import WindowedMetrics
from logkernel.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    UnknownMemberId,
    UnsupportedVersion,
    error_for,
)
from logkernel.requests.cluster import MetadataRequest, MetadataRequestTopic
from logkernel.requests.consumer_groups import Assignment, ConsumerGroupHeartbeatRequest, TopicPartitions
from logkernel.vocabulary import TopicPartition

COMES: Final = 0
LEAVES: Final = -1
LEAVES_FOR_A_WHILE: Final = -2
LATE_MS: Final = 60_000
"""A heartbeat that timed out may reach the coordinator this much later."""
Held = tuple[UUID, int]
"""A partition by its topic's id."""


@frozen
class HeartbeatContent:
    """The fields of a heartbeat that change: subscription and owned partitions."""

    names: tuple[str, ...]
    regex: str
    held: frozenset[Held]


class Kip848Member(GroupMembership):
    """See the module."""

    def __init__(self, core: ClientCore, settings: Mapping[str, Any], metrics: WindowedMetrics) -> None:
        super().__init__(core, settings, metrics)
        self.member_id = base64.urlsafe_b64encode(core.random.randbytes(16)).rstrip(b"=").decode()
        """The same for the lifetime of this consumer, also after a rejoin."""
        self._assignor: str | None = settings["group.remote.assignor"]
        self._rack: str | None = settings["client.rack"] or None
        self._timeout_ms: int = settings["request.timeout.ms"]
        self._beat_ms = 0
        self._beating = False
        self._acknowledged: HeartbeatContent | None = None
        """The content of the last heartbeat that was answered; None: the next heartbeat must carry all fields."""
        self._content: HeartbeatContent | None = None
        """The content of the next heartbeat; None until it is computed."""
        self._whole_until_ms = 0
        """Until then heartbeats carry all fields."""
        self._had_regex = False
        self._withdrawn = False
        self._target: frozenset[Held] | None = None
        """The assignment from the coordinator; None before the first one."""
        self._aimed = False
        """Whether the events lead, or led, to the target."""
        self._ids: dict[TopicPartition, UUID] = {}
        """Of what is owned."""
        self._coming: dict[TopicPartition, UUID] = {}
        """What waits in an ASSIGN."""
        self._names: dict[UUID, str] = {}
        self._unnamed = False
        """Whether the target has topics whose names are not known."""
        self._asking = False
        self._ask_ms = 0

    def subscribe(self, topics: Iterable[str], regex: str = "") -> None:
        super().subscribe(topics, regex)
        self._content = None

    # ------------------------------------------------------------ events

    def handled(self, event: Event) -> None:
        stands = self.is_next(event)
        if stands:
            self.events.popleft()
        if event.kind != ASSIGN:
            self.owned.difference_update(event.partitions)
            for partition in event.partitions:
                self._ids.pop(partition, None)
        elif stands:
            self.owned.update(event.partitions)
            for partition in event.partitions:
                self._ids[partition] = self._coming.pop(partition)
        self._content = None
        if self.state == PREPARING and not self.events:
            self.state = OUT
        self._reconcile()

    def _reconcile(self) -> None:
        """Towards the target, once what was begun before is carried out."""
        if self.events or self.state != STABLE or self._target is None:
            return
        wanted: dict[TopicPartition, UUID] = {}
        for topic_id, index in self._target:
            name = self._name_of(topic_id)
            if name is not None:
                wanted[TopicPartition(name, index)] = topic_id
        self._unnamed = len(wanted) < len(self._target)
        going = {partition for partition in self.owned if wanted.get(partition) != self._ids[partition]}
        coming = {name: topic_id for name, topic_id in wanted.items() if name not in self.owned or name in going}
        if self._aimed and not going and not coming:
            return
        self._aimed, self._coming, self._content = True, coming, None
        self._metrics.count("rebalance")
        if going:
            self.events.append(Event(REVOKE, sorted(going)))
        self.events.append(Event(ASSIGN, sorted(coming)))

    def _aim(self, assignment: Assignment) -> None:
        """A new target. What waits to be assigned and is not in it any more was never read of."""
        rows = assignment.topic_partitions
        self._target = frozenset((row.topic_id, index) for row in rows for index in row.partitions)
        for event in self.events:
            if event.kind == ASSIGN:
                for name in event.partitions:
                    if (self._coming[name], name.partition) not in self._target:
                        del self._coming[name]
                event.partitions[:] = [name for name in event.partitions if name in self._coming]
                self._content = None
        self._reconcile()

    def _over(self) -> None:
        self._acknowledged, self._content, self._target, self._aimed, self._unnamed = None, None, None, False, False
        self._coming.clear()
        super()._over()

    def _fail(self, error: Exception) -> None:
        self._over()
        self.state, self.error = FAILED, error

    # ------------------------------------------------------------ time

    def step(self, now_ms: int) -> int | None:
        self._now_ms = now_ms
        if self.state in (FAILED, LEFT) or self.polled_ms is None or self._check_late(now_ms):
            return None
        if not self.topics and not self.regex:
            self._withdraw()
        elif self._withdrawn:
            self._withdrawn, self._acknowledged = False, None  # a whole heartbeat is answered with the whole assignment
        next_ms = earliest(self._beat(now_ms), self._ask_names(now_ms))
        return earliest(next_ms, self.polled_ms + self._max_poll_ms + 1)

    def _withdraw(self) -> None:
        """The user reads nothing any more."""
        if self.state != STABLE:
            return
        self._withdrawn, self._target = True, frozenset()
        self._reconcile()
        if not self.events:
            self._depart()
            self._over()

    def _beat(self, now_ms: int) -> int | None:
        if self._beating or self.leaving or self.state not in (OUT, STABLE):
            return None
        news = self._news()
        due_ms = (
            self._retry_ms if self.state == OUT or news != self._acknowledged else max(self._beat_ms, self._retry_ms)
        )
        if self.state == OUT and not self.topics and not self.regex:
            return None
        if now_ms < due_ms:
            return due_ms
        if self.state == OUT:
            self.state, self._acknowledged = JOINING, None
            self._round += 1
        request = self._joining(news) if self.state == JOINING else self._staying(news)
        self._beating, number = True, self._round
        self._beat_ms = now_ms + self._timeout_ms
        self._metrics.count("heartbeat")

        def answered(response: Any, error: Exception | None) -> None:
            self._beating = False
            if self.leaving:
                self._send_leave()
            if number == self._round:
                self._answered(news, response, error)

        self.core.call(Call(self.key, request, now_ms + self._timeout_ms, answered, coordinator_error, once=True))
        return None

    # ------------------------------------------------------------ what a heartbeat says

    def _news(self) -> HeartbeatContent:
        if self._content is None:
            held = {(topic_id, name.partition) for some in (self._ids, self._coming) for name, topic_id in some.items()}
            self._content = HeartbeatContent(tuple(sorted(self.topics)), self.regex, frozenset(held))
        return self._content

    def _joining(self, news: HeartbeatContent) -> ConsumerGroupHeartbeatRequest:
        self._had_regex = bool(news.regex)
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=COMES,
            instance_id=self.instance_id,
            rack_id=self._rack,
            rebalance_timeout_ms=self._max_poll_ms,
            subscribed_topic_names=list(news.names),
            subscribed_topic_regex=news.regex or None,
            server_assignor=self._assignor,
            topic_partitions=[],
        )

    def _staying(self, news: HeartbeatContent) -> ConsumerGroupHeartbeatRequest:
        """What is new; all of it where the coordinator may have missed something, or its answer was lost."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.generation,
            instance_id=self.instance_id,
        )
        before = self._acknowledged if self._now_ms >= self._whole_until_ms else None
        if before is None:
            request.rack_id, request.server_assignor = self._rack, self._assignor
            request.rebalance_timeout_ms = self._max_poll_ms
        if before is None or before.names != news.names:
            request.subscribed_topic_names = list(news.names)
        if news.regex if before is None else before.regex != news.regex:
            request.subscribed_topic_regex = news.regex
        elif before is None and self._had_regex:
            request.subscribed_topic_regex = ""
        if before is None or before.held != news.held:
            request.topic_partitions = _rows(news.held)
        self._had_regex = self._had_regex or bool(news.regex)
        return request

    # ------------------------------------------------------------ what is answered

    def _answered(self, news: HeartbeatContent, response: Any, error: Exception | None) -> None:
        if error is None and response.error_code:
            error = error_for(response.error_code, response.error_message, about=self.group_id)
            explained(error, "ConsumerGroupHeartbeat")
            if isinstance(error, (FencedMemberEpoch, UnknownMemberId)) or (
                isinstance(error, GroupIdNotFound) and self.state == STABLE
            ):
                self._wait()
                self._over()
                return
        elif error is not None:
            self.core.forget_coordinator(self.key)
            self._whole_until_ms = self._now_ms + LATE_MS
        if error is not None:
            self._acknowledged = None
            if not passes(error) or isinstance(error, UnsupportedVersion):
                self._fail(error)
                return
            self._wait()
            if self.state == JOINING:
                self._round += 1
                self.state = OUT
                self._metrics.count("failed-rebalance")
            return
        self._failures, self._retry_ms, self._acknowledged = 0, 0, news
        self.state, self.generation = STABLE, response.member_epoch
        self.member_id = response.member_id or self.member_id
        self._beat_ms = self._now_ms + response.heartbeat_interval_ms
        if response.assignment is not None and not self._withdrawn:
            self._aim(response.assignment)

    def rejoin(self) -> None:
        self._beat_ms = 0

    def stale(self) -> None:
        self._beat_ms = 0

    def lost(self, code: int) -> None:
        if self.state in (JOINING, STABLE):
            self._over()

    # ------------------------------------------------------------ names

    def _name_of(self, topic_id: UUID) -> str | None:
        name = self._names.get(topic_id)
        if name is None and topic_id in self.core.metadata.names:
            name = self._names[topic_id] = self.core.metadata.names[topic_id]
        return name

    def _ask_names(self, now_ms: int) -> int | None:
        if not self._unnamed or self._asking:
            return None
        unknown = {topic_id for topic_id, _ in self._target or () if self._name_of(topic_id) is None}
        if not unknown:
            self._reconcile()
            return None
        if now_ms < self._ask_ms:
            return self._ask_ms
        self._asking, self._ask_ms = True, now_ms + int(self._settings["retry.backoff.ms"])
        topics = [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in sorted(unknown)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)

        def answered(response: Any, error: Exception | None) -> None:
            self._asking = False
            for row in response.topics if error is None else ():
                if row.name and not row.error_code:
                    self._names[row.topic_id] = row.name
            self._reconcile()

        self.core.call(Call(ANY, request, now_ms + self._timeout_ms, answered))
        return None

    # ------------------------------------------------------------ leaving

    def _too_slow(self) -> None:
        self._depart()
        self._over()

    def leave(self) -> None:
        if self.state == LEFT:
            return
        if self.generation >= 0 or self._beating:
            self._depart()
        self._over()
        self.state = LEFT
        self.owned.clear()
        self.events.clear()

    def _depart(self) -> None:
        """Say so, after the heartbeat that is under way."""
        if self.leaving:
            return
        self.leaving = True
        if not self._beating:
            self._send_leave()

    def _send_leave(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=LEAVES if self.instance_id is None else LEAVES_FOR_A_WHILE,
            instance_id=self.instance_id,
        )

        def answered(response: Any, error: Exception | None) -> None:
            self.leaving = False

        self.core.call(Call(self.key, request, self._now_ms + LEAVE_MS, answered, coordinator_error))


def _rows(held: Iterable[Held]) -> list[TopicPartitions]:
    topics: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(held):
        topics.setdefault(topic_id, []).append(index)
    return [TopicPartitions(topic_id, indexes) for topic_id, indexes in topics.items()]
