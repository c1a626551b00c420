"""What every coordination that several brokers share promises: one controller, fenced terms, and news for all."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import pytest

from logkernel.contracts import MetadataChange, SharedCoordination
from logkernel.errors import DuplicateBrokerRegistration, KafkaStorageError, StaleControllerEpoch
from logkernel.kernel import Kernel
from logkernel.testing.contracts.coordination import ListLog
from logkernel.testing.contracts.kit import Kit

FACT: Final[Mapping[str, object]] = {"listeners": {"PLAINTEXT": ["h", 1]}, "rack": None}
"""A broker's registration."""
WAIT_S: Final = 20.0
ORDERS = MetadataChange("config", "topic:orders", {"retention.ms": "1"})
LATER = MetadataChange("config", "topic:orders", {"retention.ms": "2"})
READ: Final = ("read",)
"""Noted where settings were read."""
GONE = MetadataChange("config", "topic:orders", None)
ROW = [[1], [1], 1, 0, 0]
TOPIC_ID: Final = "7d7d6d32-6a7d-4fb8-a4ec-3fe6f1f2a1b1"
TOPIC = MetadataChange("topic", "t", {"id": TOPIC_ID, "internal": False, "partitions": [ROW]})


class Events:
    """Notes what a session reports."""

    def __init__(self, kit: SharedCoordinationContract, session: SharedCoordination) -> None:
        self.kit = kit
        self.session = session
        self.heard: list[tuple[object, ...]] = []
        self.wakeups = 0
        session.subscribe(self, self.wakeup)

    def on_changes(self, changes: Sequence[MetadataChange]) -> None:
        self.heard.append(("changes", *((each.kind, each.key, each.value) for each in changes)))

    def on_controller(self, node_id: int | None, term: int) -> None:
        self.heard.append(("controller", node_id, term))

    def on_session(self, state: str) -> None:
        self.heard.append(("session", state))

    def wakeup(self) -> None:
        self.wakeups += 1

    def until(self, *wanted: tuple[object, ...]) -> list[tuple[object, ...]]:
        """Poll until each was heard, in a group of changes or alone; return what was heard since the last time."""
        deadline = time.monotonic() + self.kit.wait_s
        self.session.poll()
        while not all(self.has(each) for each in wanted):
            if time.monotonic() > deadline:
                self.kit.broken(f"a session hears {self.heard or 'nothing'}, but never {wanted}; report it by poll()")
            time.sleep(0.002)
            self.session.poll()
        heard, self.heard = self.heard, []
        return heard

    def has(self, wanted: tuple[object, ...]) -> bool:
        return any(wanted == row or (row[0] == "changes" and wanted in row[1:]) for row in self.heard)


class SharedCoordinationContract(Kit[SharedCoordination]):
    """`logkernel.contracts.SharedCoordination`. `make` returns another session of the same coordination on each call.

    Override `expire`, `cut`, `heal` and `lose_answer` to test what faults lead to; without them, those tests are
    skipped.
    """

    kind = "shared coordination"
    methods = (
        "announce", "broker_epochs", "campaign", "changes", "close", "commit", "commit_as_controller", "kept",
        "partition_count", "poll", "read_controller", "read_topic_settings", "renew", "replace", "resign", "stale_ms",
        "subscribe",
    )  # fmt: skip
    wait_s: float = WAIT_S
    """How long to wait for what a session has to report."""

    def provide(self, kernel: Kernel, name: str) -> SharedCoordination:
        found = kernel.coordination(name, ListLog, self.config)
        if not isinstance(found, SharedCoordination):
            self.broken(f'{found!r} is no SharedCoordination; name it as a plain "coordination", or add what it lacks')
        return found

    # ------------------------------------------------------------ faults

    def expire(self, session: SharedCoordination) -> None:
        """End a session from the other side, as when its broker was not heard of for too long."""
        pytest.skip("override `expire` to test what follows when a session ends")

    def cut(self, session: SharedCoordination) -> None:
        """Cut a session's connection, so that it becomes unsure."""
        pytest.skip("override `cut` and `heal` to test lost connections")

    def heal(self, session: SharedCoordination) -> None:
        """Let the session connect again."""

    def lose_answer(self, session: SharedCoordination, *, stored: bool) -> None:
        """Let the next commit have no answer, whether it is stored or not."""
        pytest.skip("override `lose_answer` to test commits without an answer")

    # ------------------------------------------------------------ what is stored, and who hears of it

    def test_all_hear_of_a_commit_and_none_of_an_older_value_after_a_newer(self) -> None:
        (one, at_one), (two, at_two) = self._listening(), self._listening()
        one.commit([ORDERS])
        for events in (at_one, at_two):
            events.until(_heard(ORDERS))
        two.commit([LATER])
        one.commit([GONE])
        for events in (at_one, at_two):
            rows = events.until(_heard(GONE))
            last = [each for row in rows if row[0] == "changes" for each in row[1:]][-1]
            if last != _heard(GONE):
                self.broken(f"a session hears of {last} after the newer {_heard(GONE)}; keep the order of commits")
        if at_two.wakeups < 2:
            self.broken(f"`wakeup` was called {at_two.wakeups} times for several commits; call it when there is news")

    def test_a_new_session_finds_what_was_stored(self) -> None:
        one, _ = self._listening()
        one.commit([ORDERS])
        epoch = one.announce(1, FACT)
        two = self.make()
        kept = sorted((each.kind, each.key, each.value) for each in two.changes() if each.kind in ("config", "broker"))
        self._same("changes()", kept, [("broker", "1", FACT), _heard(ORDERS)])
        self._same('changes({"config"})', list(two.changes({"config"})), [ORDERS])
        self._same("broker_epochs()", two.broker_epochs(), {1: epoch})

    def test_partitions_of_a_topic_are_counted_as_they_are_stored(self) -> None:
        (one, _), (two, _) = self._listening(), self._listening()
        self._same("partition_count() of no topic", two.partition_count("t"), None)
        term = self._elected(one, 1)
        grown = MetadataChange("topic", "t", {"id": TOPIC_ID, "internal": False, "partitions": [ROW, ROW, ROW]})
        for change, count in ((TOPIC, 1), (grown, 3), (MetadataChange("topic", "t", None), None)):
            one.commit_as_controller([change], term)
            self._same("partition_count() after another session's commit", two.partition_count("t"), count)

    def test_settings_of_a_topic_are_read_as_they_are_stored(self) -> None:
        """A broker that is told of a topic serves it by them, whatever it has heard of settings until then."""
        (one, _), (two, at_two) = self._listening(), self._listening()
        for change in (ORDERS, LATER, GONE):
            one.commit([change])
            self._same(
                "the answer to read_topic_settings() after another session's commit",
                sorted(self._read(two, at_two, "orders", "unset"), key=lambda fact: fact.key),
                [change, MetadataChange("config", "topic:unset", None)],
            )

    def test_nothing_older_is_heard_after_settings_were_read(self) -> None:
        (one, _), (two, at_two) = self._listening(), self._listening()
        one.commit([ORDERS])
        one.commit([LATER])
        self._same("the answer to read_topic_settings()", self._read(two, at_two, "orders"), [LATER])
        one.commit([GONE])
        heard = at_two.until(_heard(GONE))
        after = heard[heard.index(READ) + 1 :]
        older = [each for row in after if row[0] == "changes" for each in row[1:] if each == _heard(ORDERS)]
        if older:
            self.broken(f"a session hears of {older[0]} after it has read {_heard(LATER)}; keep the order")

    def test_settings_are_read_without_waiting(self) -> None:
        """The broker goes on meanwhile; the answer comes within poll()."""
        session, events = self._listening()
        answers: list[object] = []
        session.read_topic_settings(["orders"], answers.append)
        if answers:
            self.broken("read_topic_settings() calls back before it returns; answer within a later poll()")
        session.commit([ORDERS])
        if answers:
            self.broken("commit() hands out an answer to read_topic_settings(); answer within poll()")
        events.until(_heard(ORDERS))
        self._until_answered(session, answers)

    def test_a_session_that_is_unsure_reads_no_settings(self) -> None:
        session, events = self._listening()
        self.cut(session)
        events.until(("session", "unsure"))
        self.refused("read_topic_settings() of an unsure session", KafkaStorageError,
                      lambda: session.read_topic_settings(["orders"], lambda facts: None))  # fmt: skip
        self.heal(session)
        events.until(("session", "back"))
        self._read(session, events, "orders")

    # ------------------------------------------------------------ brokers

    def test_a_broker_is_there_as_long_as_its_session(self) -> None:
        (one, _), (two, at_two) = self._listening(), self._listening()
        self._elected(two, 2)
        first = one.announce(1, FACT)
        at_two.until(("broker", "1", FACT))
        self.refused("announce() of a node id that another session has", DuplicateBrokerRegistration,
                      lambda: two.announce(1, FACT))  # fmt: skip
        one.close()
        at_two.until(("broker", "1", None))
        self._same("broker_epochs() after the session's end", two.broker_epochs(), {})
        self._grows("announce()", "broker epoch", first, self._listening()[0].announce(1, FACT))

    def test_a_broker_that_announces_itself_again_has_a_new_epoch(self) -> None:
        one, _ = self._listening()
        self._grows("announce()", "broker epoch", one.announce(1, FACT), one.announce(1, FACT))

    # ------------------------------------------------------------ the controller

    def test_one_is_controller_and_terms_grow(self) -> None:
        (one, _), (two, at_two) = self._listening(), self._listening()
        term = self._elected(one, 1)
        if (second := two.campaign(2)) is not None:
            self.broken(f"campaign() returned {second} though another session is the controller; return None")
        at_two.until(("controller", 1, term))
        one.close()
        at_two.until(("controller", None, term))
        self._grows("campaign()", "term", term, self._elected(two, 2))

    def test_every_session_can_ask_for_the_controller(self) -> None:
        one, two = self.make(), self.make()
        self._same("read_controller() without a controller", two.read_controller()[0], None)
        term = self._elected(one, 1)
        for session in (one, two):
            self._same("read_controller()", session.read_controller(), (1, term))
        one.resign()
        self._same("read_controller() after resign()", two.read_controller(), (None, term))

    def test_a_deposed_controller_commits_nothing(self) -> None:
        (one, _), (two, at_two) = self._listening(), self._listening()
        term = self._elected(one, 1)
        one.commit_as_controller([TOPIC], term)
        one.resign()
        later = self._elected(two, 2)
        changed = MetadataChange("partition", "t:0", {"row": [[1], [1], -1, 1, 1]})
        for session in (one, two):
            commit = partial(session.commit_as_controller, [changed], term)
            self.refused("commit_as_controller() in an old term", StaleControllerEpoch, commit)
        self.refused("replace() of a deposed controller", StaleControllerEpoch, lambda: one.replace([]))
        two.commit_as_controller([changed, ORDERS], later)
        at_two.until(_heard(ORDERS))

    # ------------------------------------------------------------ sessions and faults

    def test_a_session_that_expired_is_told_and_refused(self) -> None:
        (one, at_one), (two, at_two) = self._listening(), self._listening()
        one.announce(1, FACT)
        term = self._elected(one, 1)
        at_two.until(("controller", 1, term))
        self.expire(one)
        at_one.until(("session", "lost"))
        self.refused("commit() of a lost session", KafkaStorageError, lambda: one.commit([ORDERS]))
        self.refused("commit_as_controller() of a lost session", KafkaStorageError,
                      lambda: one.commit_as_controller([TOPIC], term))  # fmt: skip
        at_two.until(("controller", None, term))
        self._same("broker_epochs() after a session was lost", two.broker_epochs(), {})

    def test_a_lost_session_is_followed_by_a_new_one(self) -> None:
        one, at_one = self._listening()
        first = one.announce(1, FACT)
        self.expire(one)
        at_one.until(("session", "lost"))
        self.heal(one)
        again = self._renewed(one)
        try:
            self._grows("announce() of a renewed session", "broker epoch", first, again.announce(1, FACT))
        finally:
            again.close()

    def test_a_session_that_is_unsure_commits_nothing_until_it_is_back(self) -> None:
        (one, at_one), (two, _) = self._listening(), self._listening()
        self.cut(one)
        at_one.until(("session", "unsure"))
        self.refused("commit() of an unsure session", KafkaStorageError, lambda: one.commit([ORDERS]))
        two.commit([ORDERS])
        self.heal(one)
        told = at_one.until(("session", "back"))
        if told[-1] != ("session", "back") or not any(_heard(ORDERS) in row for row in told[:-1]):
            self.broken(f"a session that is back hears {told}; report what it missed, then ('session', 'back')")
        one.commit([LATER])

    def test_a_commit_without_an_answer_leaves_the_session_unsure(self) -> None:
        for stored in (True, False):
            one, at_one = self._listening()
            before = list(one.changes({"config"}))
            self.lose_answer(one, stored=stored)
            changed = GONE if before == [ORDERS] else ORDERS
            for turn in ("a commit() without an answer", "the next commit()"):
                self.refused(turn, KafkaStorageError, partial(one.commit, [changed]))
            at_one.until(("session", "unsure"))
            self.heal(one)
            at_one.until(("session", "back"))
            self._same("changes() after that", list(one.changes({"config"})) != before, stored)

    def test_a_controller_whose_commit_was_stored_without_an_answer_loads_it(self) -> None:
        self._controller_without_an_answer(stored=True)

    def test_a_controller_whose_commit_was_lost_without_an_answer_does_not_load_it(self) -> None:
        self._controller_without_an_answer(stored=False)

    def _controller_without_an_answer(self, *, stored: bool) -> None:
        one, at_one = self._listening()
        term = self._elected(one, 1)
        one.commit_as_controller([TOPIC], term)
        self.lose_answer(one, stored=stored)
        new = [[1], [1], -1, 1, 1]
        changed = [MetadataChange("partition", "t:0", {"row": new})]
        self.refused(
            "commit_as_controller() without an answer",
            KafkaStorageError,
            lambda: one.commit_as_controller(changed, term),
        )
        at_one.until(("session", "unsure"))
        self.heal(one)
        told = at_one.until(("session", "back"))
        self._same("the controller after that", ("controller", None, term) in told, False)
        self._same("the row of the partition after that", _row_of(one), new if stored else ROW)
        later = [[1], [1], 1, _row_of(one)[3] + 1, _row_of(one)[4] + 1]
        one.commit_as_controller([MetadataChange("partition", "t:0", {"row": later})], term)
        self._same("the row of the partition at last", _row_of(one), later)

    # ------------------------------------------------------------ steps

    def teardown_method(self) -> None:
        """Close what a test left open."""
        for session in vars(self).pop("_open", ()):
            with suppress(KafkaStorageError):
                session.close()

    def _listening(self) -> tuple[SharedCoordination, Events]:
        session = self.make()
        vars(self).setdefault("_open", []).append(session)
        events = Events(self, session)
        session.poll()
        events.heard.clear()
        return session, events

    def _read(self, session: SharedCoordination, events: Events, *topics: str) -> list[MetadataChange]:
        """The answer to `read_topic_settings`; `READ` is noted among what was heard."""
        answers: list[Sequence[MetadataChange] | None] = []

        def answered(facts: Sequence[MetadataChange] | None) -> None:
            answers.append(facts)
            events.heard.append(READ)

        session.read_topic_settings(topics, answered)
        self._until_answered(session, answers)
        if answers[0] is None:
            self.broken("read_topic_settings() got no answer over a sound connection; give a fact for each topic")
        return list(answers[0])

    def _until_answered(self, session: SharedCoordination, answers: Sequence[object]) -> None:
        deadline = time.monotonic() + self.wait_s
        while not answers:
            if time.monotonic() > deadline:
                self.broken("read_topic_settings() is never answered; call `answered` within poll()")
            session.poll()
            time.sleep(0.002)
        if len(answers) > 1:
            self.broken(f"read_topic_settings() is answered {len(answers)} times; call `answered` once")

    def _elected(self, session: SharedCoordination, node_id: int) -> int:
        term = session.campaign(node_id)
        if term is None:
            self.broken("campaign() returned None though no session is the controller; return a term")
        list(session.changes())
        return term

    def _renewed(self, session: SharedCoordination) -> SharedCoordination:
        """A session in place of this one; a coordination that does not answer at once gives it later."""
        deadline = time.monotonic() + self.wait_s
        while True:
            try:
                return session.renew()
            except KafkaStorageError as error:
                if time.monotonic() > deadline:
                    self.broken(f"renew() gives no session in place of a lost one: {error}")

    def _same(self, what: str, found: Any, expected: Any) -> None:
        if found != expected:
            self.broken(f"{what} is {found!r} instead of {expected!r}")

    def _grows(self, call: str, number: str, first: int, second: int) -> None:
        if second <= first:
            self.broken(f"{call} returned the {number} {second} after {first}; each has to be larger than all before")


def _heard(change: MetadataChange) -> tuple[object, ...]:
    return (change.kind, change.key, change.value)


def _row_of(session: SharedCoordination) -> list[int]:
    """The row of partition t:0."""
    found: list[int] = []
    for change in session.changes():
        if change.kind == "topic" and change.value is not None:
            (found,) = change.value["partitions"]
        elif change.kind == "partition" and change.value is not None:
            found = change.value["row"]
    return found
