"""Settings of topics that this broker has just heard of, read from the coordination before the topics are served.

A controller's orders and the news of settings come by two ways, and the orders may be first. Who served a new topic
then would do it by the cluster's defaults: with too few in-sync replicas, or deleting what is to be kept. So the
settings of each topic are read once, and nobody waits for that but what needs them:

    found        topics whose settings a start has read with all others
    when_read    work for which the settings of one topic are needed: now, or when they were read
    all_read     the same for a request about several topics, which does not wait for ever

All topics that a turn asks for are one read. A read without an answer is tried again for as long as it takes, as is one
whose session was lost. A topic that was made again under its name has another id, and is read again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final
from uuid import UUID

from logkernel.broker.runtime import Runtime
from logkernel.broker.turn import Turn
from logkernel.contracts import MetadataChange, SharedCoordination
from logkernel.errors import KafkaError, KafkaStorageError

log = logging.getLogger("logkernel.cluster")

READ_AGAIN_MS: Final = 100
"""Back-off after a read without an answer."""
PATIENCE_MS: Final = 5_000
"""How long a request waits for settings that it is about."""
Topic = tuple[str, UUID]
Work = Callable[[], None]


class TopicSettingsReads:
    """See the module."""

    def __init__(
        self,
        runtime: Runtime,
        turn: Turn,
        session: Callable[[], SharedCoordination],
        fold: Callable[[Sequence[MetadataChange]], None],
        poll_soon: Callable[[], None],
    ) -> None:
        """`fold` takes facts as news of watched kinds; `poll_soon` polls the session at the end of the turn."""
        self._runtime = runtime
        self._turn = turn
        self._session = session
        self._fold = fold
        self._poll_soon = poll_soon
        self._read: dict[str, UUID] = {}
        """Topic → the id of the topic of that name whose settings are known."""
        self._waiting: dict[Topic, list[Work]] = {}
        self._to_ask: dict[Topic, None] = {}
        """Those of `_waiting` that no read under way is for."""
        self._will_ask = self._failing = self._closed = False

    def close(self) -> None:
        """Read nothing any more; what waits never runs."""
        self._closed = True
        self._waiting.clear()
        self._to_ask.clear()

    def found(self, topics: Mapping[str, UUID]) -> None:
        """The settings of these topics are known."""
        self._read.update(topics)

    def forget(self, topic: str, topic_id: UUID) -> None:
        """The topic was deleted."""
        if self._read.get(topic) == topic_id:
            del self._read[topic]

    def is_read(self, topic: str, topic_id: UUID) -> bool:
        return self._read.get(topic) == topic_id and (topic, topic_id) not in self._waiting

    def when_read(self, topic: str, topic_id: UUID, work: Work) -> None:
        """Run `work` at once if the settings are known, else in a later turn's end, in the order of the calls."""
        if self.is_read(topic, topic_id):
            work()
            return
        if self._closed:
            return
        key = (topic, topic_id)
        if key not in self._waiting:
            self._waiting[key] = []
            self._to_ask[key] = None
            self._ask_soon()
        self._waiting[key].append(work)

    def all_read(
        self, topics: Sequence[Topic], again: Callable[[], None], refused: Callable[[KafkaError], None]
    ) -> bool:
        """Whether the settings of all are known. If not, `again` is called when they are, or `refused` after
        `PATIENCE_MS`."""
        unread = {key for key in topics if not self.is_read(*key)}
        if not unread:
            return True

        def read(key: Topic) -> None:
            if key in unread:
                unread.discard(key)
                if not unread:
                    timer.cancel()
                    again()

        def give_up() -> None:
            names = ", ".join(sorted(topic for topic, _ in unread))
            unread.clear()
            refused(KafkaStorageError(f"the coordination did not tell the settings of {names}; try again"))

        timer = self._runtime.after(PATIENCE_MS, give_up)
        for key in list(unread):
            self.when_read(*key, partial(read, key))
        return False

    def ask_again(self) -> None:
        """A new session began: what was asked in the one before gets no answer."""
        self._to_ask.update(dict.fromkeys(self._waiting))
        if self._to_ask:
            self._ask_soon()

    # ------------------------------------------------------------ reads

    def _ask_soon(self) -> None:
        """At the end of this turn, after the topics that it still names."""
        if not self._will_ask:
            self._will_ask = True
            self._turn.call_soon(self._ask)

    def _ask(self) -> None:
        self._will_ask = False
        asked = list(self._to_ask)
        self._to_ask.clear()
        if not asked or self._closed:
            return
        try:
            self._session().read_topic_settings({topic for topic, _ in asked}, partial(self._answered, asked))
        except KafkaError as error:
            self._ask_later(asked, error)
        else:
            self._poll_soon()

    def _ask_later(self, asked: Collection[Topic], why: object) -> None:
        if not self._failing:
            self._failing = True
            log.warning(
                "settings of topics not read, and tried again; their partitions wait: topics=%d why=%s", len(asked), why
            )
        self._to_ask.update(dict.fromkeys(key for key in asked if key in self._waiting))
        self._runtime.after(READ_AGAIN_MS, self._ask)

    def _answered(self, asked: Sequence[Topic], facts: Sequence[MetadataChange] | None) -> None:
        if self._closed:
            return
        if facts is None:
            self._ask_later(asked, "no answer")
            return
        if self._failing:
            self._failing = False
            log.info("settings of topics are read again: topics=%d", len(asked))
        self._fold(facts)
        for topic, topic_id in asked:
            self._read[topic] = topic_id
            for work in self._waiting.pop((topic, topic_id), ()):
                self._turn.call_soon(work)
