"""What the records of Kafka's own internal topics mean, and of our metadata log, for `logkernel dump`.

    schema    a small language for record layouts, and the reader that goes by it
    tables    the layouts of __consumer_offsets, __transaction_state and __share_group_state
    metadata  __logkernel_metadata

A folder may come from any broker, so this depends on no service: a record of a kind that no service here writes is
decoded as well.
"""

from __future__ import annotations

from collections.abc import Iterable

from logkernel.contracts import RecordDecoder
from logkernel.hookspecs import hookimpl


@hookimpl
def logkernel_decoder(topic: str) -> RecordDecoder | None:
    if topic == "__logkernel_metadata":
        from .metadata import MetadataDecoder

        return MetadataDecoder()
    from .tables import TOPICS

    return TOPICS.get(topic)


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    topics = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__logkernel_metadata")
    return [("decoder", topic) for topic in topics]
