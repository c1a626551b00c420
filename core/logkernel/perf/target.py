"""The log to measure: a cluster, a data directory in this process, or memory."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from random import Random
from typing import Any

import logkernel
from logkernel.errors import ConfigError, RequestTimedOut, TopicAlreadyExists

NOTHING: Mapping[str, Any] = {}
TOPIC_S = 30.0
VALUES = 1000


def open_log(bootstrap: str | None, data: str | None, settings: Mapping[str, Any] = NOTHING) -> Any:
    """Open a log in a cluster, in a data directory, or without either in memory; all have the same methods. `settings`
    are keywords of `connect`."""
    if bootstrap is not None:
        return logkernel.connect(bootstrap, **settings)
    return logkernel.open(data)


def make_topic(log: Any, topic: str, partitions: int | None = None, **more: Any) -> bool:
    """Create the topic if it is missing, with 1 partition by default, and wait until it is in the metadata.

    Return whether it was created. Raises `ConfigError` if it exists with another number of partitions."""
    known: Mapping[str, int] = log.topics()
    if topic in known:
        if partitions is not None and known[topic] != partitions:
            raise ConfigError(
                f"topic {topic!r} exists with {known[topic]} partitions, not {partitions}; use another --topic, or"
                " leave out --partitions"
            )
        return False
    with contextlib.suppress(TopicAlreadyExists):
        log.create_topic(topic, partitions=partitions or 1, **more)
    end_s = time.monotonic() + TOPIC_S
    while topic not in log.topics():  # a cluster may tell of it a little later
        if time.monotonic() > end_s:
            raise RequestTimedOut(
                f"topic {topic!r} was created, but is not in the metadata after {TOPIC_S:g} s; try again"
            )
        time.sleep(0.02)
    return True


def payloads(size: int, seed: int = 0) -> list[bytes]:
    """Return a thousand values of capital letters, like those of Kafka's tool."""
    random = Random(seed)
    return [bytes(random.choices(range(65, 91), k=size)) for _ in range(VALUES if size <= 10_000 else 20)]
