"""The consumer's machine: positions, fetching, group and commits, over one core. Pure.

Topics are named, or match an expression: of Python's `re` against the names that the metadata has, or of RE2, which the
group's coordinator matches (KIP-848). Partitions come by one of three ways:

    subscribe, with a group      the group assigns them; a position is the committed offset, else auto.offset.reset
    subscribe, without a group   all partitions of the topics, also those that are added; auto.offset.reset
    assign                       those that the user names; the committed offset where there is a group
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from re import Pattern
from typing import Any

from logkernel.client.cluster.calls import ClientCore, earliest
from logkernel.client.cluster.leader_queries import LeaderQuery
from logkernel.client.cluster.metadata import FATAL_TOPIC_ERRORS
from logkernel.client.cluster.permissions import explained
from logkernel.client.consumer.arrow import ArrowTaker
from logkernel.client.consumer.commits import Commit, Commits, Reading, is_fleeting
from logkernel.client.consumer.fetcher import Fetcher
from logkernel.client.consumer.metrics import ConsumerMetrics
from logkernel.client.consumer.positions import UNKNOWN, ConsumerRecord, Part
from logkernel.client.membership.base import FAILED, LEFT, GroupMembership
from logkernel.client.membership.classic_member import ClassicMember
from logkernel.client.membership.kip848_member import Kip848Member
from logkernel.client.vocabulary import GroupMetadata
from logkernel.contracts import Codec
from logkernel.errors import error_for
from logkernel.vocabulary import TopicPartition


class ConsumerMachine:
    """See the module. Users' calls come with the driver's lock held."""

    name = "consumer"

    def __init__(
        self,
        settings: Mapping[str, Any],
        bootstrap: list[tuple[str, int]],
        random: Random,
        codec_for: Callable[[int], Codec],
    ) -> None:
        self.settings = settings
        self.core = ClientCore(settings, bootstrap, random, create=settings["allow.auto.create.topics"], apart=True)
        self.metrics = ConsumerMetrics(settings)
        self.fetcher = Fetcher(self.core, settings, codec_for)
        self.arrow = ArrowTaker(self.fetcher)
        self.group: GroupMembership | None = None
        self.commits: Commits | None = None
        if settings["group.id"] is not None:
            speaks = Kip848Member if settings["group.protocol"] == "consumer" else ClassicMember
            self.group = speaks(self.core, settings, self.metrics)
            self.commits = Commits(self.core, self.group, settings, self.metrics)
        self.topics: frozenset[str] = frozenset()
        self.pattern: Pattern[str] | None = None
        """What the names of `topics` match, as far as they are known."""
        self.by_group = False
        """Whether the group assigns."""
        self.finished: list[Callable[[], None]] = []
        self.questions: list[LeaderQuery] = []
        self.error: Exception | None = None
        """Why committed offsets could not be read, or a broker refused the client; the next poll raises it."""
        self._refusals = 0
        self._matched = -1
        """The version of the metadata that the pattern was last held against."""
        self._ending = False
        self._taken: tuple[frozenset[str], int, int] | None = None
        """(topics, version of the metadata, partitions) when all of them were last taken."""
        self._fetches = 0
        self._bytes = 0
        self._reading_retry_ms = 0
        self._now_ms = 0

    @property
    def parts(self) -> dict[TopicPartition, Part]:
        return self.fetcher.parts

    # ------------------------------------------------------------ time

    def step(self, wall_ms: int, now_ms: int) -> int | None:
        self._now_ms = now_ms
        next_ms: int | None = self.metrics.roll(now_ms)
        if self.pattern is not None:
            self._match()
        for topic in self.topics:
            self.core.metadata.want(topic, now_ms)
        if self.group is not None and self.by_group:
            next_ms = earliest(next_ms, self.group.step(now_ms))
        if self.commits is not None:
            next_ms = earliest(next_ms, self.commits.step(now_ms))
        if self.topics and self.group is None:
            self._take_all()
        if not self._ending:
            next_ms = earliest(next_ms, self._read_committed(now_ms), self.fetcher.step(wall_ms, now_ms))
        for question in list(self.questions):
            next_ms = earliest(next_ms, question.step(now_ms))
            if question.done:
                self.questions.remove(question)
        self._count()
        core_ms = self.core.step(wall_ms, now_ms)
        if self._refusals != self.core.refusals:
            self._refusals = self.core.refusals
            self.error = self.core.refused
            return now_ms  # what was asked above ends, too
        return earliest(next_ms, core_ms)

    def _count(self) -> None:
        fetches, size = self.fetcher.fetches_total, self.fetcher.bytes_total
        if fetches != self._fetches or size != self._bytes:
            self.metrics.fetched(fetches - self._fetches, size - self._bytes)
            self._fetches, self._bytes = fetches, size

    def _take_all(self) -> None:
        if self._taken == (self.topics, self.core.metadata.updates, len(self.parts)):
            return
        for topic in self.topics:
            info = self.core.metadata.topics[topic]
            for index in range(len(info.leaders)):
                name = TopicPartition(topic, index)
                if name not in self.parts:
                    self._add(name)
        self._taken = self.topics, self.core.metadata.updates, len(self.parts)

    def _add(self, name: TopicPartition) -> None:
        part = self.parts[name] = Part(name)
        if self.commits is None:
            part.reset()

    def _read_committed(self, now_ms: int) -> int | None:
        """Ask for the committed offsets of partitions that have no position."""
        if self.commits is None:
            return None
        if now_ms < self._reading_retry_ms:
            return self._reading_retry_ms
        wanted = [part for part in self.parts.values() if part.state == UNKNOWN and not part.asking]
        if not wanted or self.error is not None:
            return None
        versions = {}
        for part in wanted:
            part.asking = True
            versions[part.name] = (part, part.version)
        deadline_ms = now_ms + int(self.settings["default.api.timeout.ms"])
        self.commits.read(versions, deadline_ms, lambda reading: self._placed(versions, reading))
        return None

    def _placed(self, versions: Mapping[TopicPartition, tuple[Part, int]], reading: Reading) -> None:
        for name, (part, version) in versions.items():
            if part.version != version or self.parts.get(name) is not part:
                continue
            part.asking = False
            if reading.error is not None:
                continue
            committed = (reading.found or {}).get(name)
            if committed is None:
                part.reset()
            else:
                part.place(committed.offset, committed.leader_epoch)
        if reading.error is not None:
            self._reading_retry_ms = self._now_ms + int(self.settings["retry.backoff.ms"])
            if not is_fleeting(reading.error):
                self.error = reading.error

    # ------------------------------------------------------------ what is read

    def subscribe(self, topics: Iterable[str], now_ms: int, pattern: Pattern[str] | None = None) -> None:
        """Read these topics, and those that match."""
        self._choose(frozenset(topics), pattern)
        for topic in self.topics:
            self.core.metadata.want(topic, now_ms)
        if self.group is None:
            self._keep_topics()
        else:
            self._group_assigns()
            self.group.subscribe(self.topics)

    def subscribe_regex(self, regex: str) -> None:
        """Read the topics that the coordinator finds to match this expression of RE2; needs a KIP-848 group."""
        assert self.group is not None
        self._choose(frozenset(), None)
        self._group_assigns()
        self.group.subscribe((), regex)

    def _choose(self, topics: frozenset[str], pattern: Pattern[str] | None) -> None:
        self.topics, self.pattern, self._matched = topics, pattern, -1
        self.core.metadata.want_all(pattern is not None)
        if pattern is not None:
            self._match()

    def _group_assigns(self) -> None:
        if not self.by_group:
            self.keep([])
        self.by_group = True

    def _match(self) -> None:
        """Update the subscription by pattern to the topics that exist."""
        metadata = self.core.metadata
        assert self.pattern is not None
        if self._matched == metadata.updates:
            return
        self._matched = metadata.updates
        hidden = self.settings["exclude.internal.topics"]
        fitting = self.pattern.fullmatch
        found = frozenset(
            name for name, internal in metadata.known.items() if fitting(name) and not (internal and hidden)
        )
        for name in self.topics - found:
            metadata.topics.pop(name, None)
        self.topics = found
        if self.group is None:
            self._keep_topics()
        else:
            self.group.subscribe(found)

    def _keep_topics(self) -> None:
        self.keep([name for name in self.parts if name.topic in self.topics])

    def assign(self, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Read these partitions; those that are being read keep their positions."""
        wanted = list(dict.fromkeys(partitions))
        self._choose(frozenset(), None)
        self.by_group = False
        for name in wanted:
            self.core.metadata.want(name.topic, now_ms)
        self.keep(wanted)
        self.add(wanted)

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        for name in partitions:
            if name not in self.parts:
                self._add(name)

    def keep(self, partitions: Iterable[TopicPartition]) -> None:
        """Read no others any more."""
        kept = set(partitions)
        for name in [name for name in self.parts if name not in kept]:
            part = self.parts.pop(name)
            part.drop()
            self.fetcher.line.pop(part, None)

    def positions(self) -> dict[TopicPartition, tuple[int, int, str | None]]:
        """What a commit of everything that was returned holds."""
        return {part.name: (part.position, part.epoch, "") for part in self.parts.values() if part.position >= 0}

    def member(self) -> GroupMetadata:
        assert self.group is not None
        group = self.group
        return GroupMetadata(group.group_id, group.generation, group.member_id, group.instance_id)

    # ------------------------------------------------------------ polls

    def polled(self, now_ms: int) -> None:
        assert self.group is not None
        self.group.polled(now_ms)

    @property
    def worth_a_look(self) -> bool:
        """Whether a poll would find something: records, an error, an event of the group."""
        group = self.group
        return (
            self.fetcher.ready
            or self.error is not None
            or (group is not None and (bool(group.events) or group.state == FAILED))
            or self._topic_error() is not None
        )

    def _topic_error(self) -> Exception | None:
        for name in self.topics:
            info = self.core.metadata.topics.get(name)
            if info is not None and info.error_code in FATAL_TOPIC_ERRORS:
                return explained(error_for(info.error_code, about=name), "Fetch")
        return None

    def raise_error(self) -> None:
        """Raise the error that a poll has to raise, if there is one. After a topic's error its metadata is requested
        again."""
        if self.group is not None and self.group.error is not None:
            raise self.group.error
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        failed = self._topic_error()
        if failed is not None:
            for name in self.topics:
                self.core.metadata.topics.pop(name, None)
            raise failed

    def take(self, limit: int) -> list[ConsumerRecord]:
        found = self.fetcher.take(limit)
        if found:
            self.metrics.taken(len(found))
        return found

    def take_columns(self, columns: Sequence[str], max_rows: int) -> Any:
        """As `take`: an Arrow record batch of one partition, or None."""
        found = self.arrow.take(columns, max_rows)
        if found is not None:
            self.metrics.taken(found.num_rows)
        return found

    def commit(self, commit: Commit) -> None:
        assert self.commits is not None
        self.commits.commit(commit)

    # ------------------------------------------------------------ what a driver asks

    @property
    def busy(self) -> bool:
        return bool(self.commits is not None and self.commits.line) or bool(
            self.group is not None and self.group.leaving
        )

    def take_finished(self) -> list[Callable[[], None]]:
        finished, self.finished = self.finished, []
        return finished

    def begin_end(self) -> None:
        self._ending = True
        if self.group is not None and self.by_group and self.group.state != LEFT:
            self.group.leave()

    def abandon(self, error: Exception) -> None:
        if self.commits is not None:
            self.commits.abandon(error)

    @property
    def windows(self) -> int:
        return self.metrics.closed_windows

    def lags(self) -> dict[TopicPartition, int | None]:
        committed_only = self.settings["isolation.level"] == "read_committed"
        return {name: part.lag(committed_only) for name, part in self.parts.items()}

    def snapshot(self, now_ms: int) -> dict[str, Any]:
        age_ms = now_ms - max(0, self.core.metadata.answered_ms)
        return self.metrics.snapshot(self.lags(), self.core.network, age_ms, now_ms)
