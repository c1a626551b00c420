"""An observer: logs each segment that was closed. It is told afterwards, and never per record."""

from __future__ import annotations

import logging

from logkernel.hookspecs import hookimpl

log = logging.getLogger("acme.rolls")


@hookimpl
def logkernel_segment_rolled(topic: str, partition: int, base_offset: int, size_bytes: int) -> None:
    log.info("segment closed: topic=%s partition=%d base=%d bytes=%d", topic, partition, base_offset, size_bytes)
