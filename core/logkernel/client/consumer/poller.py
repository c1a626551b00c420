"""Polls: return records, carry out the group's decisions, and call listeners.

All of that is done in the user's own polls; heartbeats and fetches need none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from logkernel.client.consumer.offset_calls import OffsetCalls
from logkernel.client.consumer.positions import ConsumerRecord
from logkernel.client.consumer.reading import Reading
from logkernel.client.consumer.subscription import SubscriptionCalls
from logkernel.client.drivers.driver import log, mono_ms
from logkernel.client.helpers import Helpers
from logkernel.client.membership.base import ASSIGN, LOST, REVOKE, Event
from logkernel.client.serializers import deserializer
from logkernel.client.steps import Steps, Tell, Wait, deadline_of
from logkernel.client.vocabulary import WakeupError
from logkernel.errors import LogkernelError

T = TypeVar("T")


class Poller:
    """See the module."""

    def __init__(
        self,
        driver: Any,
        reading: Reading,
        subscription: SubscriptionCalls,
        offsets: OffsetCalls,
        helpers: Helpers,
        settings: Mapping[str, Any],
    ) -> None:
        self._driver = driver
        self._reading = reading
        self._machine = reading.machine
        self._subscription = subscription
        self._offsets = offsets
        self._helpers = helpers
        self._woken = False
        """`wakeup` was called, and no poll has raised `WakeupError` yet."""
        self._limit: int = settings["max.poll.records"]
        self._api_s: float = settings["default.api.timeout.ms"] / 1000
        self._nap_s: float = settings["max.poll.interval.ms"] / 3000
        if offsets.auto:
            self._nap_s = min(self._nap_s, max(settings["auto.commit.interval.ms"] / 1000, 0.1))
        self._key = deserializer(settings["key.deserializer"])
        self._value = deserializer(settings["value.deserializer"])

    def wakeup(self) -> None:
        """End the current or else the next poll; call it from any thread or signal handler."""
        self._woken = True
        self._driver.nudge()

    # ------------------------------------------------------------ polls

    def poll(self, timeout_s: float | None, limit: int | None = None) -> Steps[list[ConsumerRecord]]:
        if self._reading.unread:
            return self._reading.take_unread()
        most = self._limit if limit is None else limit
        rows = yield from self._poll_for(timeout_s, partial(self._machine.take, most), self._prepared)
        return rows or []

    def poll_arrow(self, timeout_s: float | None, columns: Sequence[str], max_rows: int) -> Steps[Any]:
        self._machine.arrow.check(columns)
        self._reading.hand_back()
        found = yield from self._poll_for(timeout_s, partial(self._machine.take_columns, columns, max_rows), None)
        return self._machine.arrow.nothing(columns) if found is None else found

    def _poll_for(
        self, timeout_s: float | None, take: Callable[[], T | None], prepared: Callable[[T], T | None] | None
    ) -> Steps[T | None]:
        """Return the result of `take`, as soon as `prepared` leaves something of it."""
        deadline_s = deadline_of(timeout_s)
        machine = self._machine
        while True:
            if machine.group is not None:
                with self._driver.lock:
                    self._reading.state.check_open()
                    machine.polled(mono_ms())
                yield from self._events()
            with self._driver.lock:
                self._reading.state.check_open()
                if self._woken:
                    self._wake_up()
                machine.raise_error()
                to_do = (self._offsets.auto and self._offsets.commit_due()) or self._driver.is_due()
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
        with self._driver.lock:
            return self._driver.closed or self._woken or self._machine.worth_a_look

    def _wake_up(self) -> None:
        """Raise `WakeupError` once; for the synchronous consumer only, as a task is cancelled instead."""
        self._woken = False
        raise WakeupError("wakeup() was called")

    def _prepared(self, rows: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Apply deserializers and interceptors. A record that cannot be deserialized is read again."""
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
                self._reading.back_to(rows[index:])
                if found:
                    return found
                raise
            found.append(row._replace(key=key, value=value))
        return found

    def _events(self) -> Steps[None]:
        """Carry out the group's decisions, and call the listener."""
        group = self._machine.group
        while group is not None:
            with self._driver.lock:
                event = group.events[0] if group.events else None
            if event is None:
                return
            yield from self._event(event)

    def _event(self, event: Event) -> Steps[None]:
        machine, group = self._machine, self._machine.group
        assert group is not None
        listener = self._subscription.listener
        if event.kind == ASSIGN:
            with self._driver.lock:
                if not group.is_next(event):
                    return  # the membership ended just now
                new = list(event.partitions)
                machine.add(new)
                group.handled(event)
            if listener is not None:
                yield Tell(listener.on_partitions_assigned, new)
            return
        if event.kind == REVOKE and self._offsets.auto:
            try:
                yield from self._offsets.commit(None, self._api_s)
            except LogkernelError as error:
                log.warning("what was read of revoked partitions could not be committed: %r", error)
        try:
            if listener is not None and event.kind == REVOKE:
                yield Tell(listener.on_partitions_revoked, event.partitions)
            elif listener is not None and event.kind == LOST:
                lost = getattr(listener, "on_partitions_lost", listener.on_partitions_revoked)
                yield Tell(lost, event.partitions)
        finally:
            with self._driver.lock:
                machine.keep(machine.parts.keys() - set(event.partitions))
                group.handled(event)
            self._driver.wake()

    def before_close(self, deadline_s: float) -> Steps[None]:
        """Commit the offsets of returned records, and call the listener with the revoked partitions."""
        machine, group = self._machine, self._machine.group
        if self._driver.closed or group is None:
            return
        left_s = max(0.0, deadline_s - time.monotonic())
        if self._offsets.auto and (group.member or not machine.by_group):
            try:
                yield from self._offsets.commit(None, left_s)
            except LogkernelError as error:
                log.warning("the last commit failed: %r", error)
        with self._driver.lock:
            owned = sorted(group.owned)
        if owned and self._subscription.listener is not None and machine.by_group:
            try:
                yield Tell(self._subscription.listener.on_partitions_revoked, owned)
            except Exception:
                log.exception("on_partitions_revoked failed")
