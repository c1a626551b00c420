"""Fetching ahead: one request a broker under way, in a fetch session (`fetch_session`). Pure.

A partition is asked for while it is in FETCHING, not paused, and has no more than max.partition.fetch.bytes ahead: so
much is what one answer brings, and while it is read, the next one is on its way. Nothing is asked for while half of
fetch.max.bytes lies here. What may come is at most the rest, shared by the brokers, so that what is held stays within
fetch.max.bytes but for first batches that are larger; of a broker that is near, it is less
(`FetchSessionHandler.heard`).

    a partition's answer                             what follows
    no error                                         a chunk; high watermark, last stable offset, log start
    OFFSET_OUT_OF_RANGE, from a closer replica       the leader is asked
    the same from the leader                         RESETTING; FAILED where auto.offset.reset is none
    leadership errors                                metadata is asked for; a leader named in passing is believed
    other retriable ones, UNKNOWN_SERVER_ERROR       asked again after a wait; told if it lasts (`failing`)
    any other                                        FAILED: the next poll raises it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import define

from logkernel.client.cluster.calls import ClientCore, earliest
from logkernel.client.cluster.leader_queries import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    LeaderEpochQuery,
    LeaderOffsetQuery,
    LeaderQuery,
)
from logkernel.client.cluster.permissions import explained
from logkernel.client.consumer import failing
from logkernel.client.consumer.fetch_session import SESSION_ERRORS, FetchSessionHandler, Wanted
from logkernel.client.consumer.positions import (
    FETCHING,
    RESETTING,
    VALIDATING,
    Chunk,
    ConsumerRecord,
    LogTruncated,
    NoOffset,
    Part,
)
from logkernel.config.durations import BY_DURATION, duration_ms
from logkernel.contracts import Codec
from logkernel.errors import (
    KafkaError,
    OffsetOutOfRange,
    UnsupportedVersion,
    error_for,
)
from logkernel.peer.backoff import Backoff
from logkernel.requests.data import FetchRequest, PartitionData
from logkernel.requests.offsets import ListOffsetsPartitionResponse
from logkernel.vocabulary import TopicPartition

_NO_ROW: Final = ListOffsetsPartitionResponse()


@define(eq=False)
class _Fetched:
    """Takes the answer to one fetch."""

    fetcher: Fetcher
    node: int
    sent: dict[TopicPartition, tuple[Part, int]]
    """The partitions of the request, with their versions."""
    full: bool
    max_bytes: int
    sent_ms: int

    def complete(self, response: Any, error: Exception | None, now_ms: int) -> None:
        self.fetcher.answered(self, response, error, now_ms)


class Fetcher:
    """See the module. `parts` is shared with the consumer, which assigns and seeks."""

    def __init__(self, core: ClientCore, settings: Mapping[str, Any], codec_for: Callable[[int], Codec]) -> None:
        self.core = core
        self.parts: dict[TopicPartition, Part] = {}
        self.line: dict[Part, None] = {}
        """Partitions with chunks, in the order in which they came."""
        self.sessions: dict[int, FetchSessionHandler] = {}
        self.questions: list[tuple[LeaderQuery, list[tuple[Part, int]]]] = []
        """Resets and validations under way, with their partitions and the versions of these."""
        self.waiting_ms: int | None = None
        """Monotonic ms since which a caller waits for records; None if none does."""
        self.records_total = 0
        self.bytes_total = 0
        self.fetches_total = 0
        self._settings = settings
        self._codec_for = codec_for
        self._committed_only: bool = settings["isolation.level"] == "read_committed"
        self._max_bytes: int = settings["fetch.max.bytes"]
        self._part_bytes: int = settings["max.partition.fetch.bytes"]
        self._reset: str = settings["auto.offset.reset"]
        self._verify: bool = settings["check.crcs"]
        self._sated: list[Part] = []
        """Partitions that the last turn did not fetch, as enough of their data is buffered."""
        self._backoff = Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"], core.random)

    @property
    def buffered_bytes(self) -> int:
        size = 0
        for part in self.line:
            size += part.buffered_bytes
        return size

    @property
    def under_way(self) -> bool:
        """Whether some broker was asked and has not answered yet."""
        for session in self.sessions.values():  # noqa: SIM110 - asked twice a poll: a generator would cost more than it looks at
            if session.under_way:
                return True
        return False

    @property
    def hungry(self) -> bool:
        """Whether a turn would find something to fetch that the last one did not: enough of what was ahead is read."""
        if not self._sated or (self.buffered_bytes * 2 > self._max_bytes):
            return False
        return any(self._wants(part) for part in self._sated)

    def _wants(self, part: Part) -> bool:
        return not part.chunks or part.buffered_bytes <= self._part_bytes

    # ------------------------------------------------------------ time

    def step(self, wall_ms: int, now_ms: int) -> int | None:
        next_ms = self._ask_positions(wall_ms, now_ms)
        next_ms = earliest(next_ms, self._step_questions(now_ms))
        if self._check_epochs(now_ms):  # after the answers: they may be an earlier leader's
            next_ms = now_ms
        return earliest(next_ms, self._fetch(now_ms))

    def _step_questions(self, now_ms: int) -> int | None:
        next_ms: int | None = None
        for question, versions in list(self.questions):
            next_ms = earliest(next_ms, question.step(now_ms))
            if question.done:
                self.questions.remove((question, versions))
                self._take_answers(question, versions, now_ms)
        return next_ms

    # ------------------------------------------------------------ positions

    def _ask_positions(self, wall_ms: int, now_ms: int) -> int | None:
        """Ask leaders where partitions without a position begin, and whether positions are still good."""
        resets: dict[TopicPartition, int] = {}
        checks: dict[TopicPartition, int] = {}
        next_ms: int | None = None
        for part in self.parts.values():
            if part.asking or part.state not in (RESETTING, VALIDATING):
                continue
            if part.retry_ms > now_ms:
                next_ms = earliest(next_ms, part.retry_ms)
            elif part.state == VALIDATING:
                part.asking, checks[part.name] = True, part.epoch
            else:
                timestamp_ms = self._reset_time(wall_ms) if part.reset_ms is None else part.reset_ms
                if timestamp_ms is None:
                    part.fail(NoOffset(f"{part.name} has no offset to begin with, and auto.offset.reset is none"))
                else:
                    part.asking, resets[part.name] = True, timestamp_ms
        deadline_ms = now_ms + int(self._settings["default.api.timeout.ms"])
        if resets:
            self._ask(self.offsets_by_time(resets, deadline_ms))
        if checks:
            self._ask(LeaderEpochQuery(self.core, checks, deadline_ms, self._settings))
        return now_ms if resets or checks else next_ms

    def offsets_by_time(self, wanted: Mapping[TopicPartition, int], deadline_ms: int) -> LeaderOffsetQuery:
        question = LeaderOffsetQuery(self.core, wanted, deadline_ms, self._settings)
        question.isolation = int(self._committed_only)
        return question

    def _reset_time(self, wall_ms: int) -> int | None:
        if self._reset == "none":
            return None
        if self._reset.startswith(BY_DURATION):
            return max(0, wall_ms - duration_ms(self._reset.removeprefix(BY_DURATION)))
        return EARLIEST_TIMESTAMP if self._reset == "earliest" else LATEST_TIMESTAMP

    def _ask(self, question: LeaderQuery) -> None:
        parts = [self.parts[name] for name in question.wanted]
        self.questions.append((question, [(part, part.version) for part in parts]))

    def _take_answers(self, question: LeaderQuery, versions: list[tuple[Part, int]], now_ms: int) -> None:
        again: dict[TopicPartition, int] = {}
        for part, version in versions:
            name = part.name
            if part.version != version or self.parts.get(name) is not part:
                continue
            part.asking = False
            error, row = question.errors.get(name), question.found.get(name, _NO_ROW)
            if isinstance(error, UnsupportedVersion) and part.state == VALIDATING:
                part.state = FETCHING  # a broker of old that cannot tell
            elif error is not None and isinstance(error, KafkaError) and error.retriable:
                part.retry_ms = now_ms + self._backoff.delay_ms(0)
                failing.failed(part, error, now_ms)
            elif error is not None:
                part.fail(error)
            elif part.state == VALIDATING:
                self._validated(part, row)
            elif row.offset < 0:
                again[name] = LATEST_TIMESTAMP  # nothing is that young: its end
            else:
                part.place(row.offset, row.leader_epoch)
        for name, timestamp_ms in again.items():
            self.parts[name].reset(timestamp_ms)

    def _check_epochs(self, now_ms: int) -> bool:
        """A new leader may have a shorter log than the old one had. Return whether a position is to be validated."""
        found = False
        topics = self.core.metadata.topics
        for part in self.parts.values():
            info = topics.get(part.name.topic)
            if info is None:
                info = self.core.metadata.want(part.name.topic, now_ms)
            if part.state != FETCHING or part.name.partition >= len(info.epochs):
                continue
            epoch = info.epochs[part.name.partition]
            if epoch <= part.checked_epoch:
                continue
            if 0 <= part.epoch < epoch:
                part.place(part.position, part.epoch)  # what is ahead was read from the old leader's log
                part.state = VALIDATING
                found = True
            part.checked_epoch = epoch
        return found

    def _validated(self, part: Part, row: Any) -> None:
        checked = part.checked_epoch
        if row.end_offset < 0 or row.leader_epoch < 0:
            truth = f"{part.name}: the leader knows nothing of epoch {part.epoch}"
        elif row.end_offset < part.position:
            truth = f"{part.name}: epoch {part.epoch} ends at {row.end_offset}, before position {part.position}"
        else:
            part.state = FETCHING
            return
        if self._reset == "none":
            part.fail(LogTruncated(truth))
        elif row.end_offset < 0:
            part.reset()
        else:
            part.place(row.end_offset, row.leader_epoch)
            part.checked_epoch = checked

    # ------------------------------------------------------------ requests

    def _fetch(self, now_ms: int) -> int | None:
        by_node, next_ms = self._fetchable(now_ms)
        held = self.buffered_bytes
        if held * 2 > self._max_bytes and held:
            self._sated = list(self.line)
            return next_ms
        share = max(1, (self._max_bytes - held) // max(1, len(by_node)))
        for node, parts in by_node.items():
            session = self.sessions.get(node)
            if session is None:
                session = self.sessions[node] = FetchSessionHandler()
            if session.under_way or not self.core.network.ready(node, now_ms):
                continue
            # Without a session nobody sees to it that every partition has its turn: all of them are asked for.
            most = min(share, max(session.most_bytes, self._part_bytes)) if session.id else share
            request, full = self._request(session, parts, most)
            session.under_way = True
            self.fetches_total += 1
            sent = {part.name: (part, part.version) for part in parts}
            token = _Fetched(self, node, sent, full, most, now_ms)
            limit_ms = self._settings["request.timeout.ms"] + self._settings["fetch.max.wait.ms"]
            self.core.network.send(node, request, token, now_ms, limit_ms)
        return next_ms

    def _fetchable(self, now_ms: int) -> tuple[dict[int, list[Part]], int | None]:
        by_node: dict[int, list[Part]] = {}
        next_ms: int | None = None
        self._sated = []
        for part in self.parts.values():
            if part.state != FETCHING or part.paused:
                continue
            if not self._wants(part):
                self._sated.append(part)
                continue
            if part.retry_ms > now_ms:
                next_ms = earliest(next_ms, part.retry_ms)
                continue
            if part.closer >= 0 and (now_ms >= part.closer_ms or part.closer not in self.core.network.nodes):
                part.closer = -1
            node = part.closer if part.closer >= 0 else self.core.metadata.leader(*part.name)
            if node >= 0:
                by_node.setdefault(node, []).append(part)
            elif self.core.metadata.topics.get(part.name.topic) is not None:
                self.core.metadata.request_update()
        return by_node, next_ms

    def _request(self, session: FetchSessionHandler, parts: list[Part], max_bytes: int) -> tuple[FetchRequest, bool]:
        topics = self.core.metadata.topics
        wanted: dict[TopicPartition, Wanted] = {}
        for part in parts:
            info = topics[part.name.topic]
            epoch = info.epochs[part.name.partition]
            wanted[part.name] = (part.fetch_offset, self._part_bytes, epoch, info.id)
        full = session.epoch == 0
        asked, forgotten = session.ask(wanted)
        request = FetchRequest(
            max_wait_ms=self._settings["fetch.max.wait.ms"],
            min_bytes=self._settings["fetch.min.bytes"],
            max_bytes=max_bytes,
            isolation_level=int(self._committed_only),
            topics=asked,
            session_id=session.id,
            session_epoch=session.epoch,
            forgotten_topics_data=forgotten,
            rack_id=self._settings["client.rack"],
        )
        for part in parts:
            if part.high_watermark < 0 and part.name in session.seen:
                part.high_watermark, part.last_stable, part.log_start = session.seen[part.name]
        return request, full

    # ------------------------------------------------------------ answers

    def answered(self, fetched: _Fetched, response: Any, error: Exception | None, now_ms: int) -> None:
        session = self.sessions[fetched.node]
        session.under_way = False
        code = 0 if error is not None else int(response.error_code)
        if error is not None or code:
            session.reset()
            if error is not None:
                self.core.metadata.request_update()
            if code not in SESSION_ERRORS:
                for part, _ in fetched.sent.values():
                    part.retry_ms = now_ms + self._backoff.delay_ms(0)
                    part.closer = -1
                    failing.failed(part, error or error_for(code, about=part.name), now_ms)
            return
        session.answered(fetched.full, response.session_id)
        before = self.bytes_total
        for topic in response.responses:
            name = topic.topic or session.topic_of(topic.topic_id) or self.core.metadata.names.get(topic.topic_id, "")
            for row in topic.partitions:
                found = fetched.sent.get(TopicPartition(name, row.partition_index))
                if found is not None and not row.error_code and session.id:
                    session.seen[found[0].name] = (row.high_watermark, row.last_stable_offset, row.log_start_offset)
                if found is not None and self.parts.get(found[0].name) is found[0] and found[0].version == found[1]:
                    self._fold(found[0], fetched.node, row, now_ms)
        if self.waiting_ms is not None:
            waited_ms = now_ms - max(self.waiting_ms, fetched.sent_ms)
            session.heard(fetched.max_bytes, self.bytes_total - before, waited_ms, self._max_bytes)

    def _fold(self, part: Part, node: int, row: PartitionData, now_ms: int) -> None:
        if part.state != FETCHING:
            return
        leader = row.current_leader
        if leader.leader_id >= 0:
            self.core.metadata.set_leader(*part.name, leader.leader_id, leader.leader_epoch)
        if row.error_code:
            self._refused(part, node, row.error_code, now_ms)
            return
        if part.failing is not None:
            failing.passed(part, now_ms)
        part.high_watermark, part.last_stable, part.log_start = (
            row.high_watermark,
            row.last_stable_offset,
            row.log_start_offset,
        )
        if row.preferred_read_replica >= 0:
            part.closer = row.preferred_read_replica
            part.closer_ms = now_ms + self._settings["metadata.max.age.ms"]
        if row.records is None:
            return
        aborted = [(one.producer_id, one.first_offset) for one in row.aborted_transactions or ()]
        chunk = Chunk(part.name, row.records, aborted if self._committed_only else [], self._codec_for, self._verify)
        if not chunk.bytes:
            return
        end = chunk.last_offset()
        if end is None or end < part.fetch_offset:
            return
        part.fetch_offset = end + 1
        part.chunks.append(chunk)
        part.buffered_bytes += chunk.bytes
        self.bytes_total += chunk.bytes
        self.line[part] = None

    def _refused(self, part: Part, node: int, code: int, now_ms: int) -> None:
        error = explained(error_for(code, about=part.name), "Fetch")
        if isinstance(error, OffsetOutOfRange):
            if part.chunks or node == part.closer:
                part.closer = -1
                part.retry_ms = now_ms + self._backoff.delay_ms(0)
            elif self._reset == "none":
                part.fail(error_for(code, f"{part.name} has no offset {part.fetch_offset}"))
            else:
                part.reset()
        elif isinstance(error, KafkaError) and (error.retriable or code == -1):
            part.closer = -1
            part.retry_ms = now_ms + self._backoff.delay_ms(0)
            self.core.metadata.request_update()
            failing.failed(part, error, now_ms)
        else:
            part.fail(error)

    # ------------------------------------------------------------ what a poll takes

    @property
    def ready(self) -> bool:
        """Whether a poll would find records or an error."""
        for part in self.line:
            if part.chunks and not part.paused:
                return True
        for part in self.parts.values():  # noqa: SIM110 - as above
            if part.error is not None:
                return True
        return False

    def take(self, limit: int) -> list[ConsumerRecord]:
        """Up to `limit` records, in order within a partition; positions move behind them.

        Raises what a partition failed with; `CorruptMessage` and the like come again until there is a seek.
        """
        found: list[ConsumerRecord] = []
        self.raise_error()
        for part in list(self.line):
            if part.paused:
                continue
            try:
                self._take_from(part, limit, found)
            except Exception:
                if found:
                    return found
                raise
            if len(found) >= limit:
                break
        self.records_total += len(found)
        return found

    def raise_error(self) -> None:
        """Raise the first error of a partition, if there is one."""
        for part in self.parts.values():
            if part.error is not None:
                raise self._take_error(part)

    def _take_error(self, part: Part) -> Exception:
        """Return the error of a partition, to be raised once: unless its position is lost, it is fetched again."""
        error = part.error
        assert error is not None
        if part.position >= 0 and not isinstance(error, (NoOffset, LogTruncated, OffsetOutOfRange)):
            part.place(part.position, part.epoch)
        return error

    def _take_from(self, part: Part, limit: int, found: list[ConsumerRecord]) -> None:
        while part.chunks and len(found) < limit:
            chunk = part.chunks[0]
            if chunk.taken >= len(chunk.rows):
                if not chunk.load(part.position, limit - len(found)):
                    part.buffered_bytes -= chunk.bytes
                    part.chunks.popleft()
                    continue
                if chunk.taken >= len(chunk.rows):
                    self._pass(part, chunk)
                    continue
            rows, taken = chunk.rows, chunk.taken
            chunk.taken = end = min(len(rows), taken + limit - len(found))
            found += rows[taken:end] if taken or end < len(rows) else rows
            part.position, part.epoch = found[-1].offset + 1, found[-1].leader_epoch
            if end == len(rows):
                chunk.rows, chunk.taken = [], 0
                if chunk.batch_ended:
                    self._pass(part, chunk)
        self.had_its_turn(part)

    def had_its_turn(self, part: Part) -> None:
        """It goes to the end of the line."""
        self.line.pop(part, None)
        if part.chunks:
            self.line[part] = None

    @staticmethod
    def _pass(part: Part, chunk: Chunk) -> None:
        """All of the chunk's batch was taken, or is not for this reader."""
        facts = chunk.facts
        if facts is not None and facts.last_offset >= part.position:
            part.position, part.epoch = facts.last_offset + 1, facts.leader_epoch
