"""The machine of share-partitions (`contracts.ServiceMachine`): sessions, acknowledgements, fetches, locks. Pure.

All of its state is soft: what must last is in share-state, and a broker that starts anew reads it from there.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from typing import Any, Final
from uuid import UUID

from logkernel.contracts import ClusterView, Decision, RequestContext
from logkernel.errors import (
    InvalidRequest,
    InvalidShareSessionEpoch,
    KafkaError,
    TopicAuthorizationFailed,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from logkernel.requests.share_delivery import (
    AcknowledgedPartition,
    ForgetShareRequest,
    ForgetShareResponse,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from logkernel.vocabulary import AclOperation, Record

from ...groups.timers import Key as TimerKey
from ...groups.timers import Timers
from ..state.records import Key
from .acks import Acks
from .fetching import MAX_WAIT_MS, Work, inner_fetch, loading, respond, take
from .leader import Phase, SharePartitionLeader
from .partition import Event
from .sessions import FINAL, INITIAL, Connection, Holder, ShareSessions

LOCK: Final = "lock"
WAIT: Final = "wait"


class SharePartitionsMachine:
    def __init__(self, max_sessions: int, cluster: ClusterView) -> None:
        self._cluster = cluster
        self._sessions = ShareSessions(max_sessions)
        self._timers = Timers()
        self._numbers = count(1)
        self._works: dict[int, Work] = {}
        self._leaders: dict[Key, SharePartitionLeader] = {}
        self._by_number: dict[int, SharePartitionLeader] = {}
        """The leaders that wait for responses; one that was dropped gets none."""
        self._out = Decision()
        self._wall_ms = self._mono_ms = 0

    @property
    def leaders(self) -> dict[Key, SharePartitionLeader]:
        """To look at."""
        return self._leaders

    # ------------------------------------------------------------ events

    def on_request(self, request: Any, context: RequestContext, ticket: int, wall_ms: int, mono_ms: int) -> Decision:
        """Raises TypeError for a request that is not of this family."""
        self._begin(wall_ms, mono_ms)
        match request:
            case ShareFetchRequest():
                try:
                    self._on_fetch(request, ticket, context)
                except KafkaError as error:
                    self._out.answers.append((ticket, ShareFetchResponse(0, error.code, str(error))))
            case ShareAcknowledgeRequest():
                try:
                    self._on_acknowledge(request, ticket, (context.listener, context.connection_id))
                except KafkaError as error:
                    self._out.answers.append((ticket, ShareAcknowledgeResponse(0, error.code, str(error))))
            case ForgetShareRequest():
                self._on_forget(request, ticket, context)
            case _:
                raise TypeError(f"share partitions do not answer {type(request).__name__}")
        return self._out

    def replay(self, record: Record) -> None:
        """There is no log."""

    def on_loaded(self, wall_ms: int, mono_ms: int) -> Decision:
        return Decision()

    def on_timer(self, wall_ms: int, mono_ms: int) -> Decision:
        self._begin(wall_ms, mono_ms)
        while (key := self._timers.pop(mono_ms)) is not None:
            if key[0] == WAIT:
                work = self._works.get(int(key[1]))
                if work is not None and work.reading:
                    self._read_enough(work)
            else:
                leader = self._leaders.get(Key(key[1], UUID(key[2]), int(key[3])))
                if leader is not None:
                    self._locks_due(leader)
        return self._out

    def on_response(self, token: Any, response: Any, wall_ms: int, mono_ms: int) -> Decision:
        self._begin(wall_ms, mono_ms)
        word, number, attempt = token
        if word == "fetch":
            work = self._works.get(number)
            if work is not None and work.attempt == attempt and work.reading:
                self._on_data(work, response)
            return self._out
        leader = self._by_number.get(number)
        if leader is None or word == "start":
            return self._out
        {"offsets": leader.on_offsets, "state": leader.on_state, "write": leader.on_written}[word](response)
        if leader.phase is Phase.FAILED:
            self._drop(leader)
        self._stir(leader.key)
        self._retire(leader)
        return self._out

    def on_topics_changed(self, topics: Collection[str], wall_ms: int, mono_ms: int) -> Decision:
        """A member's next request names them."""
        return Decision()

    def on_topics_deleted(self, topics: Collection[str], wall_ms: int, mono_ms: int) -> Decision:
        """Answer members that read these topics, and drop their share-partitions."""
        self._begin(wall_ms, mono_ms)
        for leader in list(self._leaders.values()):
            if self._cluster.topic_name(leader.key.topic_id) is None:
                self._drop(leader)
                self._stir(leader.key)
        return self._out

    def on_disconnected(self, listener: str, connection_id: int, wall_ms: int, mono_ms: int) -> Decision:
        """What the connection's members hold is available again at once."""
        self._begin(wall_ms, mono_ms)
        for holder in self._sessions.on_connection((listener, connection_id)):
            self._close(holder)
        return self._out

    def next_deadline(self) -> int | None:
        return self._timers.next_ms()

    def _begin(self, wall_ms: int, mono_ms: int) -> None:
        self._out = Decision()
        self._wall_ms, self._mono_ms = wall_ms, mono_ms

    # ------------------------------------------------------------ ShareFetch

    def _on_fetch(self, request: ShareFetchRequest, ticket: int, context: RequestContext) -> None:
        connection = (context.listener, context.connection_id)
        holder = _holder(request)
        worded = any(row.acknowledgement_batches for topic in request.topics for row in topic.partitions)
        wait_ms = min(max(request.max_wait_ms, 0), MAX_WAIT_MS)
        work = Work(next(self._numbers), ticket, holder, request, self._mono_ms + wait_ms)
        if request.share_session_epoch == INITIAL:
            if worded:
                raise InvalidRequest("a new share session has nothing to acknowledge yet")
            self._close(holder)
            gone = self._sessions.begin(holder, self._mono_ms, connection)
            if gone is not None:
                self._release(gone)
            session = self._sessions.get(holder)
        elif request.share_session_epoch == FINAL:
            session = self._sessions.get(holder)
        else:
            session = self._sessions.go_on(holder, request.share_session_epoch, self._mono_ms, connection)
        self._works[work.number] = work
        work.acks = Acks(lambda: self._acked(work))
        touched = self._take_acks(work.acks, holder, request)
        if request.share_session_epoch == FINAL:
            self._close(holder)
        elif not request.is_renew_ack:
            for added in request.topics:
                for row in added.partitions:
                    session.partitions.setdefault((added.topic_id, row.partition_index))
            for topic in request.forgotten_topics_data:  # after those: one may be named for its acknowledgements alone
                for partition in topic.partitions:
                    session.partitions.pop((topic.topic_id, partition), None)
            if request.max_bytes > 0 and request.max_records > 0:
                self._resolve(work, session.rotated(), context)
        self._pump(touched)
        work.acks.part_known()
        self._attempt(work)

    def _resolve(self, work: Work, places: list[tuple[UUID, int]], sender: RequestContext) -> None:
        """The share-partitions that can be read; for the others, why not."""
        names = {topic_id: self._cluster.topic_name(topic_id) for topic_id, _ in places}
        refused = self._refused(sender, [name for name in names.values() if name is not None])
        for topic_id, partition in places:
            key = Key(work.holder.group_id, topic_id, partition)
            name = names[topic_id]
            if name is None:
                work.row(key).error_code = UnknownTopicId.code
            elif name in refused:
                work.row(key).error_code = refused[name]
            elif not 0 <= partition < (self._cluster.partition_count(name) or 0):
                work.row(key).error_code = UnknownTopicOrPartition.code
            else:
                work.keys.append(key)
                if key not in self._leaders:
                    self._lead(key, name)

    def _refused(self, sender: RequestContext, topics: list[str]) -> dict[str, int]:
        """Topic → error code, of those that the sender may not read: a session may have them from earlier."""
        try:
            allowed = self._cluster.allowed(sender, AclOperation.READ, topics)
        except UnknownServerError as error:
            return dict.fromkeys(topics, error.code)
        return {name: TopicAuthorizationFailed.code for name in topics if name not in allowed}

    def _lead(self, key: Key, topic: str) -> None:
        number = next(self._numbers)

        def send(word: str, _: Key, request: Any) -> None:
            self._out.sends.append(((word, number, 0), request))

        leader = self._leaders[key] = SharePartitionLeader(key, topic, self._cluster, send, self._wall_ms)
        self._by_number[number] = leader

    def _attempt(self, work: Work) -> None:
        """Read, or wait for what must come first."""
        if not work.reading:
            return
        for key in [key for key in work.keys if key not in self._leaders]:
            work.keys.remove(key)
            known = self._cluster.topic_name(key.topic_id) is not None
            work.row(key).error_code = (UnknownTopicOrPartition if known else UnknownTopicId).code
        if not work.keys:
            self._read_enough(work)
            return
        if any(row.error_code for row in work.rows.values()):
            work.deadline_ms = self._mono_ms  # errors are told at once, with what can be read
        self._timers.set((WAIT, str(work.number)), work.deadline_ms + 1)
        if loading(work, self._leaders):
            return
        for key in work.keys:
            self._follow_log(self._leaders[key])
        request = inner_fetch(work, self._leaders, self._mono_ms)
        if request is not None:
            self._out.sends.append((("fetch", work.number, work.attempt), request))

    def _follow_log(self, leader: SharePartitionLeader) -> None:
        offsets = self._cluster.offsets(leader.topic, leader.key.partition)
        if offsets is not None:
            leader.partition.advance(offsets[0])
            leader.pump()

    def _on_data(self, work: Work, response: Any) -> None:
        for key in work.keys:
            if key in self._leaders:
                self._follow_log(self._leaders[key])
        work.keys = [key for key in work.keys if key in self._leaders]
        found, came = take(work, response, self._leaders, self._mono_ms)
        for key in work.keys:
            leader = self._leaders[key]
            leader.pump()
            self._watch_locks(leader)
        if found or not came or response.error_code or self._mono_ms >= work.deadline_ms:
            self._read_enough(work)
        else:
            self._attempt(work)

    def _read_enough(self, work: Work) -> None:
        """Which records it gets is decided; it may still wait for its acknowledgements."""
        work.reading = False
        self._timers.cancel((WAIT, str(work.number)))
        self._finish(work)

    def _acked(self, work: Work) -> None:
        work.acked = True
        self._finish(work)

    def _finish(self, work: Work) -> None:
        if work.acked and not work.reading and self._works.pop(work.number, None) is not None:
            lock_ms = self._lock_ms(work.holder.group_id)
            self._out.answers.append((work.ticket, respond(work, lock_ms)))

    def _stir(self, key: Key) -> None:
        """A share-partition has changed: retry the requests that wait for its records."""
        leader = self._leaders.get(key)
        for work in list(self._works.values()):
            if not work.reading or key not in work.keys:
                continue
            ready = leader is not None and leader.phase is Phase.READY and key in work.asked
            if not ready or self._leaders[key].partition.next_offset() not in (None, work.asked[key]):
                self._attempt(work)

    # ------------------------------------------------------------ ShareAcknowledge

    def _on_acknowledge(self, request: ShareAcknowledgeRequest, ticket: int, connection: Connection) -> None:
        holder = _holder(request)
        if request.share_session_epoch == INITIAL:
            raise InvalidShareSessionEpoch("an acknowledgement cannot begin a share session")
        if request.share_session_epoch == FINAL:
            self._sessions.get(holder)
        else:
            self._sessions.go_on(holder, request.share_session_epoch, self._mono_ms, connection)

        def done() -> None:
            self._out.answers.append((ticket, _acknowledged(acks, self._lock_ms(holder.group_id))))

        acks = Acks(done)
        touched = self._take_acks(acks, holder, request)
        if request.share_session_epoch == FINAL:
            self._close(holder)
        self._pump(touched)
        acks.part_known()

    def _take_acks(self, acks: Acks, holder: Holder, request: Any) -> list[SharePartitionLeader]:
        renews = self._cluster.group_setting(holder.group_id, "share.renew.acknowledge.enable")
        most = Event.RENEW if request.is_renew_ack else Event.REJECT
        return acks.take(
            holder.group_id, holder.member_id, request.topics, self._leaders,
            lambda topic_id: self._cluster.topic_name(topic_id) is not None, most, renews, self._mono_ms,
        )  # fmt: skip

    def _pump(self, leaders: list[SharePartitionLeader]) -> None:
        for leader in leaders:
            leader.pump()
            self._watch_locks(leader)

    def _lock_ms(self, group_id: str) -> int:
        return int(self._cluster.group_setting(group_id, "share.record.lock.duration.ms"))

    # ------------------------------------------------------------ locks and sessions

    def _watch_locks(self, leader: SharePartitionLeader) -> None:
        due = leader.partition.next_due_ms()
        timer = _lock_timer(leader.key)
        if due is None:
            self._timers.cancel(timer)
        else:
            self._timers.set(timer, due)

    def _locks_due(self, leader: SharePartitionLeader) -> None:
        let_go = leader.partition.expire(self._mono_ms)
        leader.pump()
        self._watch_locks(leader)
        if let_go:
            self._stir(leader.key)

    def _close(self, holder: Holder) -> None:
        """End the session, if there is one: what it waits for is answered, what it holds is available again."""
        if self._sessions.end(holder) is not None:
            self._release(holder)

    def _retire(self, leader: SharePartitionLeader) -> None:
        """No member reads of this group any more: drop it, as share-state has its state."""
        if leader.is_idle and not self._sessions.of_group(leader.key.group_id):
            self._drop(leader)

    def _wait_no_longer(self, holder: Holder) -> None:
        for work in list(self._works.values()):
            if work.holder == holder and work.reading and work.request.share_session_epoch != FINAL:
                self._read_enough(work)

    def _release(self, holder: Holder) -> None:
        self._wait_no_longer(holder)
        for leader in [one for one in self._leaders.values() if one.key.group_id == holder.group_id]:
            if leader.partition.release(holder.member_id):
                leader.pump()
                self._watch_locks(leader)
                self._stir(leader.key)
            self._retire(leader)

    def _on_forget(self, request: ForgetShareRequest, ticket: int, context: RequestContext) -> None:
        if not context.internal:
            self._out.answers.append((ticket, ForgetShareResponse(InvalidRequest.code)))
            return
        members = request.member_ids
        for holder in self._sessions.of_group(request.group_id):
            if members is None or holder.member_id in members:
                (self._wait_no_longer if request.keep_sessions else self._close)(holder)
        if members is None:
            for leader in [one for one in self._leaders.values() if one.key.group_id == request.group_id]:
                self._drop(leader)
                self._stir(leader.key)
        self._out.answers.append((ticket, ForgetShareResponse()))

    def _drop(self, leader: SharePartitionLeader) -> None:
        if self._leaders.get(leader.key) is leader:
            del self._leaders[leader.key]
        for number in [number for number, one in self._by_number.items() if one is leader]:
            del self._by_number[number]
        self._timers.cancel(_lock_timer(leader.key))
        leader.abandon()


def _lock_timer(key: Key) -> TimerKey:
    return (LOCK, key.group_id, str(key.topic_id), str(key.partition))


def _holder(request: Any) -> Holder:
    if not request.group_id or not request.member_id:
        raise InvalidRequest("a group id and a member id are wanted")
    return Holder(request.group_id, request.member_id)


def _acknowledged(acks: Acks, lock_ms: int) -> ShareAcknowledgeResponse:
    topics: dict[UUID, ShareAcknowledgeTopicResponse] = {}
    for (topic_id, partition), (code, text) in acks.results.items():
        topic = topics.setdefault(topic_id, ShareAcknowledgeTopicResponse(topic_id))
        topic.partitions.append(AcknowledgedPartition(partition, code, text))
    return ShareAcknowledgeResponse(acquisition_lock_timeout_ms=lock_ms, responses=list(topics.values()))
