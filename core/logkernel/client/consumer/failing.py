"""Partitions that cannot be read now and are tried again: since when, and when the log says so. Pure but for the log.

an error                 is logged, as a warning
UNKNOWN_SERVER_ERROR     at once, as it seldom passes by itself
any other                when it has lasted `PATIENCE_MS`: a leader that moves takes a while
either                   again every `AGAIN_MS` while it lasts; as information, when it has passed
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from logkernel.client.consumer.positions import Failing, Part
from logkernel.errors import KafkaError, UnknownServerError
from logkernel.vocabulary import TopicPartition

PATIENCE_MS: Final = 10_000
AGAIN_MS: Final = 30_000

log = logging.getLogger("logkernel.client")


def failed(part: Part, error: Exception, now_ms: int) -> None:
    """What was asked for a partition failed with an error that may pass. Times are monotonic ms."""
    found = part.failing
    if found is None:
        found = part.failing = Failing(error, now_ms)
        found.due_ms = now_ms if isinstance(error, UnknownServerError) else now_ms + PATIENCE_MS
    found.error = error
    if now_ms < found.due_ms:
        return
    found.due_ms, found.told = now_ms + AGAIN_MS, True
    name, offset, lasted_s = part.name, part.position, (now_ms - found.since_ms) / 1000
    log.warning(
        "%s cannot be read%s%s, and is tried again: %s",
        name, f" at offset {offset}" if offset >= 0 else "", f" for {lasted_s:.0f} s now" if lasted_s >= 1 else "",
        _told(error, name),
    )  # fmt: skip


def passed(part: Part, now_ms: int) -> None:
    """The partition was read again."""
    found, part.failing = part.failing, None
    if found is not None and found.told:
        log.info("%s is read again, after %.0f s", part.name, (now_ms - found.since_ms) / 1000)


def errors_of(parts: Iterable[Part]) -> dict[TopicPartition, Exception]:
    """The last error of each partition that should be read and cannot be."""
    return {part.name: part.failing.error for part in parts if part.failing is not None and not part.paused}


def _told(error: Exception, name: TopicPartition) -> str:
    kind = f"{type(error).__name__} (code {error.code})" if isinstance(error, KafkaError) else type(error).__name__
    return f"{kind}: {str(error).removeprefix(f'{name}: ')}"
