"""A shared coordination stores the metadata of several brokers, and elects their controller."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from logkernel.contracts.coordination import Coordination, MetadataChange

SettingsAnswered = Callable[[Sequence[MetadataChange] | None], object]
"""Gets the "config" facts of topics that were asked for, None where no answer came."""


class SessionEvents(Protocol):
    """What a session of a `SharedCoordination` reports to its broker, always from within `SharedCoordination.poll`."""

    def on_changes(self, changes: Sequence[MetadataChange]) -> None:
        """Changes were committed, by any session including this one. Each fact is reported after its last change, with
        the value that it has then: values in between may be left out, and one may come twice, but none after a newer.

        Settings, users, quotas, access rules and features are reported to every session, announcements to the
        controller at least. The controller's own commits may be reported to no session, because it already knows
        them."""
        ...

    def on_controller(self, node_id: int | None, term: int) -> None:
        """`node_id` is the controller of `term`; None while there is no controller. Terms only grow."""
        ...

    def on_session(self, state: str) -> None:
        """The state of the session changed.

        "unsure": the session may be lost; commit nothing. "back": it is alive and missed nothing. "lost": its
        announcement and campaign are gone; start a new session."""
        ...


@runtime_checkable
class SharedCoordination(Coordination, Protocol):
    """A coordination that several brokers share. Each broker has a session of its own.

    The fact of a broker ("broker", node id) lives as long as its session. The broker that `campaign` elects may commit
    as controller. Each such commit names its term, so that a deposed controller is refused.

    Every call raises `KafkaStorageError` if the session has ended or is unsure, or if no answer came. A commit without
    an answer may have been stored. The session is unsure from then on: the next `poll` reports it, no commit is
    possible before the session is "back", and then `changes` shows what was stored. A commit of more than a few dozen
    facts may be stored in parts; if it raises, some of them may have been stored.

    A session that only reads (`changes`, `broker_epochs`, `read_controller`) changes nothing.
    """

    stale_ms: int
    """How long in ms a killed broker's registration may remain. A restarted broker retries its own for this long."""

    def changes(self, kinds: Collection[str] | None = None) -> Iterator[MetadataChange]:
        """Return the facts that are stored now, of `kinds` or of all, registrations included. `poll` reports later
        ones, unless they are returned here already."""
        ...

    def renew(self) -> SharedCoordination:
        """Begin a new session in place of this one, which is lost. Raises `KafkaError` if that is not possible at once;
        try again later, on this session."""
        ...

    def announce(self, node_id: int, value: Mapping[str, Any]) -> int:
        """Register the broker until the session ends; return its broker epoch, larger than any before (KIP-380).

        Raises `DuplicateBrokerRegistration` while another session has that node id: that of another broker, or of an
        earlier incarnation of this one that was killed and whose session has not ended yet."""
        ...

    def campaign(self, node_id: int) -> int | None:
        """Try to become controller: return the new term, or None if another broker is the controller. `on_controller`
        reports when to try again."""
        ...

    def resign(self) -> None:
        """Stop being the controller; does nothing if this session is not."""
        ...

    def commit_as_controller(self, changes: Sequence[MetadataChange], term: int) -> None:
        """As `commit`, if `term` is the current one. Raises `StaleControllerEpoch` otherwise, and stores nothing more.

        A long commit may be stored in parts, in order; facts of kind "incarnation" are stored after all others."""
        ...

    def broker_epochs(self) -> Mapping[int, int]:
        """Return node id → broker epoch of every announced broker."""
        ...

    def read_controller(self) -> tuple[int | None, int]:
        """Return (node id of the controller or None, term) as of now. Subscribers get `on_controller` instead."""
        ...

    def partition_count(self, topic: str) -> int | None:
        """Return the number of partitions of a topic as it is stored now, None if there is no such topic. Includes
        every commit of any session that was answered before this call."""
        ...

    def read_topic_settings(self, topics: Collection[str], answered: SettingsAnswered) -> None:
        """Ask for the settings of topics as they are stored now: every commit of any session that was answered before
        this call counts. Return at once, whatever the coordination does meanwhile.

        Once, within a later `poll` of a subscribed session, `answered` gets a fact of kind "config" for each topic; its
        value is None where the topic has no settings. `poll` reports nothing older of these topics afterwards. It gets
        None if no answer came: ask again. It is not called any more once the session has ended."""
        ...

    def subscribe(self, events: SessionEvents, wakeup: Callable[[], object]) -> None:
        """Report events to `events` from now on. Earlier commits are in `changes`: a broker subscribes before it reads
        them, and polls when it has joined, so that it misses none.

        `wakeup` is called, from any thread, when there may be something to `poll`."""
        ...

    def poll(self) -> None:
        """Report pending events to the subscriber, on the calling thread."""
        ...
