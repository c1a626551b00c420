"""Reads of topics' settings that nobody waits for: `SharedCoordination.read_topic_settings`.

ZooKeeper answers a session's requests in the order in which they were sent. So whatever was asked for before a watched
area was read has its answer by then, and is older: `answer` is called before news of settings is reported.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Sequence

from logkernel.contracts import SettingsAnswered
from logkernel.errors import KafkaError

from . import layout, reading
from .connection import Connection, Read

log = logging.getLogger("logkernel.zookeeper")


class SettingsReads:
    """Those of one session, the oldest first."""

    def __init__(self, zk: Connection) -> None:
        self._zk = zk
        self._under_way: deque[tuple[Sequence[str], Read, SettingsAnswered]] = deque()

    def ask(self, topics: Collection[str], answered: SettingsAnswered) -> None:
        """Raises `Unanswered` while there is no connection."""
        names = list(topics)
        read = self._zk.read_later([f"{layout.TOPIC_CONFIGS}/{name}" for name in names])
        self._under_way.append((names, read, answered))

    def answer(self) -> None:
        """Hand out the answers that came."""
        while self._under_way and self._under_way[0][1].is_answered:
            names, read, answered = self._under_way.popleft()
            try:
                facts = reading.facts_of([f"topics/{name}" for name in names], read.found())
            except KafkaError as error:
                log.warning("topics' settings not read: error=%s", error)
                answered(None)
            else:
                answered(facts)
