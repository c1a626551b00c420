"""Commits of a consumer, and its requests for offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from logkernel.client.cluster.calls import with_cause
from logkernel.client.cluster.leader_queries import LeaderOffsetQuery
from logkernel.client.cluster.metadata import FATAL_TOPIC_ERRORS
from logkernel.client.cluster.permissions import explained
from logkernel.client.consumer.commits import Commit, full
from logkernel.client.consumer.reading import Reading
from logkernel.client.drivers.driver import log, mono_ms
from logkernel.client.helpers import Helpers
from logkernel.client.steps import Steps, Wait, check_topic, deadline_of
from logkernel.client.vocabulary import Committed, OffsetAndTime, Offsets, Partition
from logkernel.errors import RequestTimedOut, error_for
from logkernel.vocabulary import TopicPartition


class OffsetCalls:
    """See the module; the public methods of a consumer say what each does."""

    def __init__(self, driver: Any, reading: Reading, helpers: Helpers, settings: Mapping[str, Any]) -> None:
        self._driver = driver
        self._reading = reading
        self._machine = reading.machine
        self._helpers = helpers
        self._api_s: float = settings["default.api.timeout.ms"] / 1000
        self._auto_s: float = settings["auto.commit.interval.ms"] / 1000
        self.auto: bool = settings["enable.auto.commit"]
        """Whether offsets of returned records are committed automatically."""
        self._auto_next_s = time.monotonic() + self._auto_s
        self._auto_last: dict[TopicPartition, tuple[int, int, str | None]] = {}

    # ------------------------------------------------------------ commits

    def commit_due(self) -> bool:
        """Start the automatic commit if it is due; return whether one must be sent."""
        if not self.auto or time.monotonic() < self._auto_next_s:
            return False
        self._auto_next_s = time.monotonic() + self._auto_s
        found = self._reading.positions()
        changed = {name: row for name, row in found.items() if self._auto_last.get(name) != row}
        group = self._machine.group
        if changed and group is not None and (group.member or not self._machine.by_group):
            self._auto_last = found
            self._start_commit(changed, self._api_s, _complain)
            return True
        return False

    def _start_commit(
        self,
        offsets: dict[TopicPartition, tuple[int, int, str | None]],
        timeout_s: float,
        callback: Callable[[dict[TopicPartition, Any], Exception | None], Any] | None,
    ) -> Commit:
        def on_done(commit: Commit) -> None:
            if commit.error is None and self._helpers.interceptors:
                self._machine.finished.append(lambda: self._helpers.tell("on_commit", commit.offsets))
            if callback is not None:
                self._machine.finished.append(lambda: callback(commit.offsets, commit.error))

        commit = Commit(offsets, mono_ms() + int(timeout_s * 1000), on_done)
        self._machine.commit(commit)
        return commit

    def commit(self, offsets: Offsets | None, timeout_s: float | None) -> Steps[None]:
        given = None if offsets is None else full(offsets)
        limit_s = self._api_s if timeout_s is None else timeout_s
        with self._driver.lock:
            self._reading.need_group()
            commit = self._start_commit(self._reading.positions() if given is None else given, limit_s, None)
        yield Wait(lambda: commit.done, deadline_of(limit_s + 1))
        if not commit.done:
            raise RequestTimedOut(f"the commit did not complete within {limit_s} s; try again")
        if commit.error is not None:
            raise commit.error

    def commit_async(
        self,
        offsets: Offsets | None = None,
        callback: Callable[[dict[TopicPartition, Any], Exception | None], Any] | None = None,
    ) -> None:
        given = None if offsets is None else full(offsets)
        with self._driver.lock:
            self._reading.need_group()
            self._start_commit(self._reading.positions() if given is None else given, self._api_s, callback)
        self._driver.wake()

    def committed(self, partitions: Iterable[Partition]) -> Steps[dict[TopicPartition, Committed]]:
        with self._driver.lock:
            self._reading.need_group()
            assert self._machine.commits is not None
            names = [TopicPartition(*name) for name in partitions]
            deadline_ms = mono_ms() + int(self._api_s * 1000)
            reading = self._machine.commits.read(names, deadline_ms, lambda reading: None)
        yield Wait(lambda: reading.done, deadline_of(self._api_s + 1))
        if reading.error is not None or reading.found is None:
            raise reading.error or RequestTimedOut("no answer within default.api.timeout.ms; try again")
        return reading.found

    # ------------------------------------------------------------ questions

    def position(self, partition: Partition) -> Steps[int]:
        with self._driver.lock:
            part = self._reading.part(partition)

        def known() -> bool:
            return part.position >= 0 or part.error is not None or self._machine.error is not None

        yield Wait(known, deadline_of(self._api_s))
        with self._driver.lock:
            if part.error is not None:
                raise part.error
            self._machine.raise_error()
            name = TopicPartition(*partition)
            found = self._reading.positions().get(name)
        if found is None:
            raise RequestTimedOut(f"no position of {name} within default.api.timeout.ms; check the brokers")
        return found[0]

    def by_time(self, times: Mapping[Partition, int]) -> Steps[dict[TopicPartition, OffsetAndTime | None]]:
        wanted = {TopicPartition(*name): int(time_ms) for name, time_ms in times.items()}
        with self._driver.lock:
            self._reading.state.check_open()
            question: LeaderOffsetQuery = self._machine.fetcher.offsets_by_time(
                wanted, mono_ms() + int(self._api_s * 1000)
            )
            self._machine.questions.append(question)
        yield Wait(lambda: question.done, deadline_of(self._api_s + 1))
        with self._driver.lock:
            for error in question.errors.values():
                raise error
            if not question.done:
                raise RequestTimedOut("the partitions' leaders did not answer within default.api.timeout.ms; try again")
            return {
                name: None if row.offset < 0 else OffsetAndTime(row.offset, row.timestamp, row.leader_epoch)
                for name, row in question.found.items()
            }

    def ends(self, partitions: Iterable[Partition], timestamp_ms: int) -> Steps[dict[TopicPartition, int]]:
        found = yield from self.by_time(dict.fromkeys(partitions, timestamp_ms))
        return {name: row.offset for name, row in found.items() if row is not None}

    def partitions_for(self, topic: str) -> Steps[list[int]]:
        check_topic(topic)
        core = self._machine.core
        metadata = core.metadata
        with self._driver.lock:
            self._reading.state.check_open()
            info = metadata.want(topic, mono_ms())
            refusals = core.refusals

        def known() -> bool:
            return bool(info.leaders) or info.error_code in FATAL_TOPIC_ERRORS or core.refusals != refusals

        yield Wait(known, deadline_of(self._api_s))
        with self._driver.lock:
            if core.refusals != refusals and core.refused is not None and not info.leaders:
                raise core.refused
            if info.error_code in FATAL_TOPIC_ERRORS:
                metadata.topics.pop(topic, None)
                raise explained(error_for(info.error_code, about=topic), "Metadata")
            if not info.leaders:
                metadata.topics.pop(topic, None)
                said = f"no metadata of topic {topic!r} within default.api.timeout.ms"
                raise RequestTimedOut(with_cause(said, core.network.last_loss, "check its name"))
            return list(range(len(info.leaders)))


def _complain(offsets: dict[TopicPartition, Any], error: Exception | None) -> None:
    if error is not None:
        log.warning("an automatic commit failed: %r", error)
