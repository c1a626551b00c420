"""What the synchronous and the asyncio consumer share: every call that may wait, as a list of steps.

A call is a generator. It yields `Wait` (until something holds, or a time) and `Tell` (a call of the user's
listener), and the two consumers differ only in how they carry these out. Records are handed out, partitions
assigned and revoked, and listeners called in the user's own polls; heartbeats and fetches need none.
"""

from __future__ import annotations

import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from random import Random
from typing import Any, NamedTuple, TypeVar

from attrs import define

from logkernel.client.asking import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, OffsetsByTime
from logkernel.client.commits import Commit, Committed, full
from logkernel.client.consumption import Consumption
from logkernel.client.drivers import log, mono_ms
from logkernel.client.group import ASSIGN, LOST, REVOKE, Event
from logkernel.client.metadata import FATAL_TOPIC_ERRORS
from logkernel.client.positions import ConsumerRecord, Part
from logkernel.client.producer_base import check_topic, deadline_of
from logkernel.client.serializers import deserializer
from logkernel.client.transactions import GroupMetadata, Offsets
from logkernel.errors import ConfigError, LogkernelError, RequestTimedOut, error_for
from logkernel.kernel import Kernel
from logkernel.vocabulary import TopicPartition

CLOSE_S = 30.0
"""How long a close waits for its last commit and for leaving, where the user does not say."""
Partition = tuple[str, int]
T = TypeVar("T")


class OffsetAndTime(NamedTuple):
    """The first record at or after a time."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


@define(eq=False)
class Wait:
    """Until `ready()` or the monotonic `deadline_s`; the step is told whether it came."""

    ready: Callable[[], bool]
    deadline_s: float | None


@define(eq=False)
class Tell:
    """Call this; asyncio awaits what it returns."""

    function: Callable[[list[TopicPartition]], Any]
    partitions: list[TopicPartition]


Steps = Generator[Wait | Tell, Any, T]


class RebalanceListener:
    """Told in a poll of what a group gives and takes. A subclass overrides what it wants to hear."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """These are new; a seek here decides where they begin."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """These go to others next; what was read of them can still be committed."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """These may be others' already; nothing can be committed."""
        return self.on_partitions_revoked(partitions)


def make_consumption(settings: Mapping[str, Any], bootstrap: list[tuple[str, int]], kernel: Kernel) -> Consumption:
    """The machine of one consumer."""
    return Consumption(settings, bootstrap, Random(os.urandom(8)), kernel.codec_for)


class ConsumerBase:
    """See the module. For one thread or task at a time; `driver` steps the machine."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self._driver = driver
        driver.owner = weakref.ref(self)
        self._machine: Consumption = driver.machine
        self._lock = driver.lock
        self._pid = os.getpid()
        self._closed = False
        self._listener: Any = None
        self._unread: deque[ConsumerRecord] = deque()
        """What iteration took from a poll and did not hand out yet."""
        self._limit: int = settings["max.poll.records"]
        self._api_s = settings["default.api.timeout.ms"] / 1000
        self._auto: bool = settings["enable.auto.commit"]
        self._auto_s = settings["auto.commit.interval.ms"] / 1000
        self._auto_next_s = time.monotonic() + self._auto_s
        self._auto_last: dict[TopicPartition, tuple[int, int, str | None]] = {}
        self._nap_s = settings["max.poll.interval.ms"] / 3000
        if self._auto:
            self._nap_s = min(self._nap_s, max(self._auto_s, 0.1))
        self._key = deserializer(settings["key.deserializer"])
        self._value = deserializer(settings["value.deserializer"])
        self._interceptors: list[Any] = [
            kernel.interceptor(given, settings) if isinstance(given, str) else _made(given)
            for given in settings["interceptor.classes"]
        ]
        driver.reporters = [
            kernel.metrics_reporter(given, settings) if isinstance(given, str) else _made(given)
            for given in settings["metric.reporters"]
        ]

    @property
    def closed(self) -> bool:
        return self._closed

    def forked(self) -> None:
        """In the child of a fork: no lock of the parent's is waited for."""
        self._lock = self._driver.lock

    def _check_open(self) -> None:
        if self._pid != os.getpid():
            raise LogkernelError("this consumer belongs to the process that made it; open another after a fork")
        if self._driver.broken is not None:
            raise LogkernelError(f"the consumer ended: {self._driver.broken!r}")
        if self._closed or self._driver.closed:
            raise LogkernelError("this consumer is closed; open another")

    # ------------------------------------------------------------ what is read

    def subscribe(self, topics: str | Iterable[str], listener: Any = None) -> None:
        """Read these topics instead of what was read before: with a group what it assigns, else all partitions.

        `listener`: a `RebalanceListener`, or any object with its methods. Raises `InvalidTopicException`.
        """
        wanted = [topics] if isinstance(topics, str) else list(topics)
        for topic in wanted:
            check_topic(topic)
        with self._lock:
            self._check_open()
            self._listener = listener
            self._unread.clear()
            self._machine.subscribe(wanted, mono_ms())
        self._driver.wake()

    def assign(self, partitions: Iterable[Partition]) -> None:
        """Read these partitions, whatever a group's members read."""
        wanted = [TopicPartition(*name) for name in partitions]
        for name in wanted:
            check_topic(name.topic)
        with self._lock:
            self._check_open()
            self._unread.clear()
            self._machine.assign(wanted, mono_ms())
        self._driver.wake()

    def subscription(self) -> set[str]:
        return set(self._machine.topics)

    def assignment(self) -> set[TopicPartition]:
        with self._lock:
            return set(self._machine.parts)

    def _part(self, partition: Partition) -> Part:
        self._check_open()
        part = self._machine.parts.get(TopicPartition(*partition))
        if part is None:
            raise LogkernelError(f"{TopicPartition(*partition)} is not assigned to this consumer")
        return part

    def _moved(self, part: Part) -> None:
        """What iteration still held of a partition is not wanted."""
        self._machine.fetcher.line.pop(part, None)
        self._unread = deque(row for row in self._unread if (row.topic, row.partition) != part.name)

    def seek(self, partition: Partition, offset: int) -> None:
        """The next poll begins here. Raises `LogkernelError` for what is not assigned, ValueError below 0."""
        if offset < 0:
            raise ValueError(f"{offset} is no offset")
        with self._lock:
            part = self._part(partition)
            part.place(offset)
            self._moved(part)
        self._driver.wake()

    def seek_to_beginning(self, *partitions: Partition) -> None:
        """To the first offsets, of all assigned partitions where none is named."""
        self._seek_by_time(partitions, EARLIEST_TIMESTAMP)

    def seek_to_end(self, *partitions: Partition) -> None:
        """To the end, as `isolation.level` sees it."""
        self._seek_by_time(partitions, LATEST_TIMESTAMP)

    def _seek_by_time(self, partitions: Iterable[Partition], timestamp_ms: int) -> None:
        with self._lock:
            for name in list(partitions) or list(self._machine.parts):
                part = self._part(name)
                part.reset(timestamp_ms)
                self._moved(part)
        self._driver.wake()

    def pause(self, *partitions: Partition) -> None:
        """Polls return nothing of these until `resume`; they stay assigned."""
        self._set_paused(partitions, True)

    def resume(self, *partitions: Partition) -> None:
        self._set_paused(partitions, False)
        self._driver.wake()

    def _set_paused(self, partitions: Iterable[Partition], paused: bool) -> None:
        with self._lock:
            for part in [self._part(name) for name in partitions]:
                part.paused = paused

    def paused(self) -> set[TopicPartition]:
        with self._lock:
            return {part.name for part in self._machine.parts.values() if part.paused}

    # ------------------------------------------------------------ figures

    @property
    def lag(self) -> dict[TopicPartition, int | None]:
        """Partition → records that are not read yet; None before its first fetch."""
        with self._lock:
            return self._machine.lags()

    def metrics(self) -> dict[str, Any]:
        """Metric name, as Kafka's consumer has it, → number."""
        found: dict[str, Any] = self._driver.metrics()
        return found

    def group_metadata(self) -> GroupMetadata:
        """Who this member is, for `send_offsets_to_transaction`. Raises `LogkernelError` without a group."""
        with self._lock:
            self._need_group()
            return self._machine.member()

    def _need_group(self) -> None:
        self._check_open()
        if self._machine.group is None:
            raise LogkernelError("this needs the setting group.id")

    # ------------------------------------------------------------ polls

    def _poll(self, timeout_s: float | None, limit: int | None = None) -> Steps[list[ConsumerRecord]]:
        if self._unread:
            found, self._unread = list(self._unread), deque()
            return found
        deadline_s = deadline_of(timeout_s)
        machine = self._machine
        while True:
            with self._lock:
                self._check_open()
                machine.polled(mono_ms())
            yield from self._events()
            with self._lock:
                self._check_open()
                machine.raise_error()
                self._commit_due()
                found = machine.take(self._limit if limit is None else limit)
                hungry = machine.fetcher.hungry
            if found:
                if hungry:
                    self._driver.wake()
                found = self._prepared(found)
                if found:
                    return found
                continue
            nap_s = time.monotonic() + self._nap_s
            came = yield Wait(self._worth_a_look, nap_s if deadline_s is None else min(deadline_s, nap_s))
            if not came and deadline_s is not None and time.monotonic() >= deadline_s:
                return []

    def _worth_a_look(self) -> bool:
        with self._lock:
            return self._driver.closed or self._machine.worth_a_look

    def _prepared(self, rows: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """As deserializers and interceptors make them. A record that cannot be read is come to again."""
        if self._key is not None or self._value is not None:
            rows = self._deserialized(rows)
        for interceptor in self._interceptors:
            try:
                rows = interceptor.on_consume(rows)
            except Exception:
                log.exception("on_consume of %r failed", interceptor)
        return rows

    def _deserialized(self, rows: list[ConsumerRecord]) -> list[ConsumerRecord]:
        found: list[ConsumerRecord] = []
        for index, row in enumerate(rows):
            try:
                key = row.key if self._key is None else self._key(row.topic, row.key)
                value = row.value if self._value is None else self._value(row.topic, row.value)
            except Exception:
                self._back_to(rows[index:])
                if found:
                    return found
                raise
            found.append(row._replace(key=key, value=value))
        return found

    def _back_to(self, rows: list[ConsumerRecord]) -> None:
        """These were not handed out."""
        first: dict[TopicPartition, int] = {}
        for row in rows:
            first.setdefault(TopicPartition(row.topic, row.partition), row.offset)
        with self._lock:
            for name, offset in first.items():
                part = self._machine.parts.get(name)
                if part is not None:
                    part.place(offset)
                    self._machine.fetcher.line.pop(part, None)

    def _events(self) -> Steps[None]:
        """Carry out what the group decided, and tell the listener."""
        group = self._machine.group
        while group is not None:
            with self._lock:
                event = group.events[0] if group.events else None
            if event is None:
                return
            yield from self._event(event)

    def _event(self, event: Event) -> Steps[None]:
        machine, group = self._machine, self._machine.group
        assert group is not None
        if event.kind == ASSIGN:
            with self._lock:
                machine.add(event.partitions)
                group.handled(event)
            if self._listener is not None:
                yield Tell(self._listener.on_partitions_assigned, event.partitions)
            return
        if event.kind == REVOKE and self._auto:
            try:
                yield from self._commit(None, self._api_s)
            except LogkernelError as error:
                log.warning("what was read of revoked partitions could not be committed: %r", error)
        try:
            if self._listener is not None and event.kind == REVOKE:
                yield Tell(self._listener.on_partitions_revoked, event.partitions)
            elif self._listener is not None and event.kind == LOST:
                lost = getattr(self._listener, "on_partitions_lost", self._listener.on_partitions_revoked)
                yield Tell(lost, event.partitions)
        finally:
            with self._lock:
                machine.keep(machine.parts.keys() - set(event.partitions))
                group.handled(event)
            self._driver.wake()

    # ------------------------------------------------------------ commits

    def _positions(self) -> dict[TopicPartition, tuple[int, int, str | None]]:
        """Behind all that was handed out."""
        found = self._machine.positions()
        for row in self._unread:
            name = TopicPartition(row.topic, row.partition)
            if name in found and row.offset < found[name][0]:
                found[name] = (row.offset, -1, "")
        return found

    def _commit_due(self) -> None:
        """The automatic commit, where it is time."""
        if not self._auto or time.monotonic() < self._auto_next_s:
            return
        self._auto_next_s = time.monotonic() + self._auto_s
        found = self._positions()
        changed = {name: row for name, row in found.items() if self._auto_last.get(name) != row}
        group = self._machine.group
        if changed and group is not None and (group.member or not self._machine.by_group):
            self._auto_last = found
            self._start_commit(changed, self._api_s, _complain)

    def _start_commit(
        self,
        offsets: dict[TopicPartition, tuple[int, int, str | None]],
        timeout_s: float,
        callback: Callable[[dict[TopicPartition, Any], Exception | None], Any] | None,
    ) -> Commit:
        def told(commit: Commit) -> None:
            if commit.error is None and self._interceptors:
                self._machine.finished.append(lambda: self._intercept_commit(commit.offsets))
            if callback is not None:
                self._machine.finished.append(lambda: callback(commit.offsets, commit.error))

        commit = Commit(offsets, mono_ms() + int(timeout_s * 1000), told)
        self._machine.commit(commit)
        return commit

    def _intercept_commit(self, offsets: dict[TopicPartition, Any]) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.on_commit(offsets)
            except Exception:
                log.exception("on_commit of %r failed", interceptor)

    def _commit(self, offsets: Offsets | None, timeout_s: float | None) -> Steps[None]:
        given = None if offsets is None else full(offsets)
        limit_s = self._api_s if timeout_s is None else timeout_s
        with self._lock:
            self._need_group()
            commit = self._start_commit(self._positions() if given is None else given, limit_s, None)
        yield Wait(lambda: commit.done, deadline_of(limit_s + 1))
        if not commit.done:
            raise RequestTimedOut(f"the commit has no outcome after {limit_s} s")
        if commit.error is not None:
            raise commit.error

    def commit_async(
        self,
        offsets: Offsets | None = None,
        callback: Callable[[dict[TopicPartition, Any], Exception | None], Any] | None = None,
    ) -> None:
        """As `commit`, without waiting, in the order of the calls; `callback(offsets, error)` is told the outcome."""
        given = None if offsets is None else full(offsets)
        with self._lock:
            self._need_group()
            self._start_commit(self._positions() if given is None else given, self._api_s, callback)
        self._driver.wake()

    def _committed(self, partitions: Iterable[Partition]) -> Steps[dict[TopicPartition, Committed]]:
        with self._lock:
            self._need_group()
            assert self._machine.commits is not None
            names = [TopicPartition(*name) for name in partitions]
            deadline_ms = mono_ms() + int(self._api_s * 1000)
            reading = self._machine.commits.read(names, deadline_ms, lambda reading: None)
        yield Wait(lambda: reading.done, deadline_of(self._api_s + 1))
        if reading.error is not None or reading.found is None:
            raise reading.error or RequestTimedOut("committed offsets could not be read in time")
        return reading.found

    # ------------------------------------------------------------ questions

    def _position(self, partition: Partition) -> Steps[int]:
        with self._lock:
            part = self._part(partition)

        def known() -> bool:
            return part.position >= 0 or part.error is not None or self._machine.error is not None

        yield Wait(known, deadline_of(self._api_s))
        with self._lock:
            if part.error is not None:
                raise part.error
            self._machine.raise_error()
            name = TopicPartition(*partition)
            found = self._positions().get(name)
        if found is None:
            raise RequestTimedOut(f"no position of {name} within default.api.timeout.ms")
        return found[0]

    def _by_time(self, times: Mapping[Partition, int]) -> Steps[dict[TopicPartition, OffsetAndTime | None]]:
        wanted = {TopicPartition(*name): int(time_ms) for name, time_ms in times.items()}
        with self._lock:
            self._check_open()
            question: OffsetsByTime = self._machine.fetcher.offsets_by_time(wanted, mono_ms() + int(self._api_s * 1000))
            self._machine.questions.append(question)
        yield Wait(lambda: question.done, deadline_of(self._api_s + 1))
        with self._lock:
            for error in question.errors.values():
                raise error
            if not question.done:
                raise RequestTimedOut("the partitions' leaders gave no answer in time")
            return {
                name: None if row.offset < 0 else OffsetAndTime(row.offset, row.timestamp, row.leader_epoch)
                for name, row in question.found.items()
            }

    def _ends(self, partitions: Iterable[Partition], timestamp_ms: int) -> Steps[dict[TopicPartition, int]]:
        found = yield from self._by_time(dict.fromkeys(partitions, timestamp_ms))
        return {name: row.offset for name, row in found.items() if row is not None}

    def _partitions_for(self, topic: str) -> Steps[list[int]]:
        check_topic(topic)
        metadata = self._machine.core.metadata
        with self._lock:
            self._check_open()
            info = metadata.want(topic, mono_ms())
        yield Wait(lambda: bool(info.leaders) or info.error_code in FATAL_TOPIC_ERRORS, deadline_of(self._api_s))
        with self._lock:
            if info.error_code in FATAL_TOPIC_ERRORS:
                metadata.topics.pop(topic, None)
                raise error_for(info.error_code, topic)
            if not info.leaders:
                metadata.topics.pop(topic, None)
                raise RequestTimedOut(f"no metadata of topic {topic!r} within default.api.timeout.ms")
            return list(range(len(info.leaders)))

    # ------------------------------------------------------------ the end

    def _before_close(self, deadline_s: float) -> Steps[None]:
        """Commit what was handed out, and tell the listener what goes."""
        machine, group = self._machine, self._machine.group
        if self._driver.closed or group is None:
            return
        left_s = max(0.0, deadline_s - time.monotonic())
        if self._auto and (group.member or not machine.by_group):
            try:
                yield from self._commit(None, left_s)
            except LogkernelError as error:
                log.warning("the last commit failed: %r", error)
        with self._lock:
            owned = sorted(group.owned)
        if owned and self._listener is not None and machine.by_group:
            try:
                yield Tell(self._listener.on_partitions_revoked, owned)
            except Exception:
                log.exception("on_partitions_revoked failed")

    def _begin_close(self) -> None:
        with self._lock:
            self._closed = True
            self._unread.clear()
            self._machine.begin_end()

    def _close_helpers(self) -> None:
        for helper in [*self._interceptors, *self._driver.reporters]:
            try:
                helper.close()
            except Exception:
                log.exception("close of %r failed", helper)


def _made(given: Any) -> Any:
    return given() if isinstance(given, type) else given


def _complain(offsets: dict[TopicPartition, Any], error: Exception | None) -> None:
    if error is not None:
        log.warning("an automatic commit failed: %r", error)


def consumer_settings(topics: tuple[str, ...], group: str | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of `log.consumer(...)` as settings. Raises `ConfigError`."""
    from logkernel.client.consumer_settings import load_consumer

    given = dict(settings)
    if group is not None:
        if "group_id" in given or "group.id" in given:
            raise ConfigError("group and group_id name the same; give one")
        given["group_id"] = group
    for topic in topics:
        check_topic(topic)
    return load_consumer(given)
