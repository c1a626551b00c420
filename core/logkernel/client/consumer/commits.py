"""Committed offsets of a group: one commit under way, in the order in which they were asked for. Pure.

A commit that is sent again after a lost connection could otherwise overtake a newer one and take the group back.

    a commit's answer                                what follows
    coordinator errors, a lost connection            sent again, to the coordinator as it is then
    REBALANCE_IN_PROGRESS                            the commit failed; the member joins the new round
    UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION            the commit failed; the membership is over
    the same, of an earlier generation               the commit failed, with REBALANCE_IN_PROGRESS: a round passed it
    STALE_MEMBER_EPOCH                               sent again under the epoch that the next heartbeat brings, if the
                                                     member then still owns the partitions; else the commit failed
    any other error                                  the commit failed
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from attrs import define, field

from logkernel.client.cluster.calls import BY_NAME, Call, ClientCore
from logkernel.client.cluster.leader_queries import by_topic
from logkernel.client.cluster.permissions import explained
from logkernel.client.consumer.metrics import ConsumerMetrics
from logkernel.client.membership.base import COORDINATOR_ERRORS, GroupMembership
from logkernel.client.vocabulary import Committed, Offsets
from logkernel.errors import (
    GroupAuthorizationFailed,
    IllegalGeneration,
    KafkaError,
    RebalanceInProgress,
    RequestTimedOut,
    StaleMemberEpoch,
    TopicAuthorizationFailed,
    UnknownMemberId,
    UnstableOffsetCommit,
    error_for,
)
from logkernel.requests.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from logkernel.vocabulary import TopicPartition

STRANGERS: Final = (UnknownMemberId.code, IllegalGeneration.code)


@define(eq=False)
class Commit:
    """One commit; `on_done` is called with its outcome."""

    offsets: dict[TopicPartition, tuple[int, int, str | None]]
    deadline_ms: int
    on_done: Callable[[Commit], None]
    epoch: int = -1
    """The member's, as it was sent."""
    stale: Exception | None = None
    """The epoch is over, and a newer one is waited for."""
    done: bool = False
    error: Exception | None = None
    behind: list[Call] = field(factory=list)
    """Readings that were asked for later: they are to see what this one commits."""


@define(eq=False)
class Reading:
    """A question for committed offsets; `found` leaves out where there is none."""

    done: bool = False
    error: Exception | None = None
    found: dict[TopicPartition, Committed] | None = None


def full(offsets: Offsets) -> dict[TopicPartition, tuple[int, int, str | None]]:
    """Offsets as a user gives them, with epoch and text. Raises TypeError, ValueError."""
    found: dict[TopicPartition, tuple[int, int, str | None]] = {}
    for (topic, partition), given in offsets.items():
        offset, epoch, text = (given, -1, "") if isinstance(given, int) else given
        if offset < 0:
            raise ValueError(f"{topic}-{partition}: {offset} cannot be committed; give an offset of at least 0")
        found[TopicPartition(topic, partition)] = (offset, epoch, text)
    return found


class Commits:
    """See the module."""

    def __init__(
        self, core: ClientCore, group: GroupMembership, settings: Mapping[str, Any], metrics: ConsumerMetrics
    ) -> None:
        self.core = core
        self.group = group
        self.line: deque[Commit] = deque()
        """The first is under way."""
        self._settings = settings
        self._metrics = metrics
        self._stable_only: bool = settings["isolation.level"] == "read_committed"

    def commit(self, commit: Commit) -> None:
        self.line.append(commit)
        if len(self.line) == 1:
            self._send()

    def step(self, now_ms: int) -> int | None:
        """Send a commit again whose epoch was over; returns when to come again."""
        commit = self.line[0] if self.line else None
        if commit is None or commit.stale is None:
            return None
        group = self.group
        if group.member and group.generation == commit.epoch and now_ms < commit.deadline_ms:
            return commit.deadline_ms
        error, commit.stale = commit.stale, None
        if not group.member or group.generation == commit.epoch or not commit.offsets.keys() <= group.owned:
            self.line.popleft()
            self._tell(commit, error)
        self._send()
        return now_ms

    def _send(self) -> None:
        while self.line:
            commit = self.line[0]
            if commit.offsets:
                self._metrics.count("commit")
                commit.epoch = self.group.generation
                self.core.call(
                    Call(
                        self.group.key,
                        self._request(commit),
                        commit.deadline_ms,
                        lambda response, error, commit=commit: self._ended(commit, response, error),  # type: ignore[misc]
                        _verdict,
                        BY_NAME,
                    )
                )
                return
            self.line.popleft()
            self._tell(commit, None)

    def _request(self, commit: Commit) -> OffsetCommitRequest:
        topics = [
            OffsetCommitRequestTopic(
                topic,
                [
                    OffsetCommitRequestPartition(row.partition, offset, text, epoch)
                    for row in rows
                    for offset, epoch, text in [commit.offsets[row]]
                ],
            )
            for topic, rows in by_topic(commit.offsets).items()
        ]
        group = self.group
        member = group.member_id if group.member else ""
        instance = group.instance_id if group.member else None
        return OffsetCommitRequest(group.group_id, group.generation, member, -1, topics, instance)

    def _ended(self, commit: Commit, response: Any, error: Exception | None) -> None:
        if error is None:
            failed = [(topic.name, row.error_code) for topic in response.topics for row in topic.partitions]
            codes = [code for _, code in failed if code]
            passed = self.group.member and commit.epoch != self.group.generation
            for code in codes:
                if code == RebalanceInProgress.code:
                    self.group.rejoin()
                elif code in STRANGERS and not passed:
                    self.group.lost(code)
            refused = f"the commit of group {self.group.group_id} was refused"
            error = error_for(codes[0], about=refused) if codes else None
            if isinstance(error, (GroupAuthorizationFailed, TopicAuthorizationFailed)):
                topic = next(name for name, code in failed if code)
                is_group = isinstance(error, GroupAuthorizationFailed)
                explained(error, "OffsetCommit", self.group.group_id if is_group else topic)
            if passed and codes and codes[0] in STRANGERS:
                error = RebalanceInProgress("the group has rebalanced since; poll, then commit again")
            if StaleMemberEpoch.code in codes and self.line and self.line[0] is commit:
                commit.stale = error
                self.group.stale()
                return
        if self.line and self.line[0] is commit:
            self.line.popleft()
        self._tell(commit, error)
        self._send()

    def _tell(self, commit: Commit, error: Exception | None) -> None:
        if not commit.done:
            commit.done, commit.error = True, error
            commit.on_done(commit)
            for call in commit.behind:
                self.core.call(call)

    def abandon(self, error: Exception) -> None:
        waiting, self.line = self.line, deque()
        for commit in waiting:
            self._tell(commit, error)

    # ------------------------------------------------------------ reading

    def read(
        self, partitions: Iterable[TopicPartition], deadline_ms: int, on_done: Callable[[Reading], None]
    ) -> Reading:
        """Ask for committed offsets, as they are behind the commits in line; where transactions are, one that is still
        open is waited for."""
        topics = [
            OffsetFetchRequestTopics(topic, [row.partition for row in rows])
            for topic, rows in by_topic(partitions).items()
        ]
        group = OffsetFetchRequestGroup(self.group.group_id, topics)
        reading = Reading()

        def ended(response: Any, error: Exception | None) -> None:
            reading.done, reading.error = True, error
            if error is None:
                reading.found = {
                    TopicPartition(topic.name, row.partition_index): Committed(
                        row.committed_offset, row.committed_leader_epoch, row.metadata or ""
                    )
                    for topic in response.groups[0].topics
                    for row in topic.partitions
                    if row.committed_offset >= 0
                }
            on_done(reading)

        request = OffsetFetchRequest(require_stable=self._stable_only, groups=[group])
        call = Call(self.group.key, request, deadline_ms, ended, _reading_verdict, BY_NAME)
        if self.line:
            self.line[-1].behind.append(call)
        else:
            self.core.call(call)
        return reading


def _verdict(response: Any) -> int:
    """Only what a new attempt may mend."""
    for topic in response.topics:
        for row in topic.partitions:
            if row.error_code in COORDINATOR_ERRORS or row.error_code == RequestTimedOut.code:
                return int(row.error_code)
    return 0


def _reading_verdict(response: Any) -> int:
    if not response.groups:
        return int(response.error_code) or UnstableOffsetCommit.code
    group = response.groups[0]
    codes = [group.error_code, *(row.error_code for topic in group.topics for row in topic.partitions)]
    return next((int(code) for code in codes if code), 0)


def is_fleeting(error: Exception | None) -> bool:
    return isinstance(error, KafkaError) and error.retriable
