"""What the synchronous and the asyncio consumer share: polls, the group's events, the end.

A call that may wait is a list of `steps`. Records are handed out, partitions assigned and revoked, and listeners
called in the user's own polls; heartbeats and fetches need none. Its other rooms: `subscription` (where it
reads), `offset_calls` (commits and queries), `root` (what all of them work on).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, TypeVar

from logkernel.client.consumer.consumer_machine import ConsumerMachine
from logkernel.client.consumer.offset_calls import OffsetCalls
from logkernel.client.consumer.positions import ConsumerRecord
from logkernel.client.consumer.subscription import Places
from logkernel.client.drivers.driver import log, mono_ms
from logkernel.client.membership.base import ASSIGN, LOST, REVOKE, Event
from logkernel.client.steps import End, Steps, Tell, Wait, check_topic, deadline_of
from logkernel.client.vocabulary import GroupMetadata, WakeupError
from logkernel.client.vocabulary import RebalanceListener as RebalanceListener
from logkernel.errors import ConfigError, LogkernelError
from logkernel.kernel import Kernel
from logkernel.vocabulary import TopicPartition

T = TypeVar("T")
CLOSE_S = 30.0
"""How long a close waits for its last commit and for leaving, where the user does not say."""


def make_consumer_machine(
    settings: Mapping[str, Any], bootstrap: list[tuple[str, int]], kernel: Kernel
) -> ConsumerMachine:
    """The machine of one consumer."""
    return ConsumerMachine(settings, bootstrap, Random(os.urandom(8)), kernel.codec_for)


class ConsumerBase(Places, OffsetCalls):
    """See the module."""

    # ------------------------------------------------------------ figures

    @property
    def lag(self) -> dict[TopicPartition, int | None]:
        """Partition → records that are not read yet; None before its first fetch."""
        with self._lock:
            return self._machine.lags()

    def group_metadata(self) -> GroupMetadata:
        """Who this member is, for `send_offsets_to_transaction`. Raises `LogkernelError` without a group."""
        with self._lock:
            self._need_group()
            return self._machine.member()

    # ------------------------------------------------------------ polls

    def _poll(self, timeout_s: float | None, limit: int | None = None) -> Steps[list[ConsumerRecord]]:
        if self._unread:
            return self._all_unread()
        most = self._limit if limit is None else limit
        rows = yield from self._poll_for(timeout_s, partial(self._machine.take, most), self._prepared)
        return rows or []

    def _poll_arrow(self, timeout_s: float | None, columns: Sequence[str], max_rows: int) -> Steps[Any]:
        self._machine.arrow.check(columns)
        self._hand_back()
        found = yield from self._poll_for(timeout_s, partial(self._machine.take_columns, columns, max_rows), None)
        return self._machine.arrow.nothing(columns) if found is None else found

    def _poll_for(
        self, timeout_s: float | None, take: Callable[[], T | None], prepared: Callable[[T], T | None] | None
    ) -> Steps[T | None]:
        """What `take` gives, as soon as it gives something of which `prepared` leaves something."""
        deadline_s = deadline_of(timeout_s)
        machine = self._machine
        while True:
            if machine.group is not None:
                with self._lock:
                    self._state.check_open()
                    machine.polled(mono_ms())
                yield from self._events()
            with self._lock:
                self._state.check_open()
                if self._woken:
                    self._wake_up()
                machine.raise_error()
                to_do = (self._auto and self._commit_due()) or self._driver.is_due()
                taken = take()
                to_do = to_do or machine.fetcher.hungry
                under_way = not to_do and machine.fetcher.under_way
            if taken:
                if to_do:
                    self._driver.wake()
                found = taken if prepared is None else prepared(taken)
                if found:
                    return found
                continue
            nap_s = time.monotonic() + self._nap_s
            until_s = nap_s if deadline_s is None else min(deadline_s, nap_s)
            machine.fetcher.waiting_ms = mono_ms()
            try:
                came = yield Wait(self._worth_a_look, until_s, under_way)
            finally:
                machine.fetcher.waiting_ms = None
            if not came and deadline_s is not None and time.monotonic() >= deadline_s:
                return None

    def _worth_a_look(self) -> bool:
        with self._lock:
            return self._driver.closed or self._woken or self._machine.worth_a_look

    def _wake_up(self) -> None:
        """Only the synchronous consumer is ever woken; a task is cancelled."""
        self._woken = False
        raise WakeupError("wakeup() was called")

    def _prepared(self, rows: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """As deserializers and interceptors make them. A record that cannot be read is come to again."""
        if self._key is not None or self._value is not None:
            rows = self._deserialized(rows)
        for interceptor in self._helpers.interceptors:
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
                if not group.is_next(event):
                    return  # the membership ended just now
                new = list(event.partitions)
                machine.add(new)
                group.handled(event)
            if self._listener is not None:
                yield Tell(self._listener.on_partitions_assigned, new)
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

    # ------------------------------------------------------------ the end

    def _close(self, timeout_s: float | None) -> Steps[None]:
        if self.closed:
            return
        deadline_s = time.monotonic() + (CLOSE_S if timeout_s is None else timeout_s)
        try:
            yield from self._before_close(deadline_s)
        finally:
            with self._lock:
                self._state.closed = True
                self._unread.fill(())
                self._machine.begin_end()
            try:
                yield End(deadline_s)
            finally:
                self._helpers.close()

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


def consumer_settings(topics: tuple[str, ...], group: str | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of `log.consumer(...)` as settings. Raises `ConfigError`."""
    from logkernel.client.settings.consumer import load_consumer

    given = dict(settings)
    if group is not None:
        if "group_id" in given or "group.id" in given:
            raise ConfigError("group and group_id name the same; give one")
        given["group_id"] = group
    for topic in topics:
        check_topic(topic)
    return load_consumer(given)
