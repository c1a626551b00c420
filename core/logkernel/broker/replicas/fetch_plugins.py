"""The plugins that see what a consumer fetches of one partition: filters, then the topic's quotas.

Of the filters, in the order of `fetch.filters`, a record has to pass all.

filters say                the consumer gets
True, of a record          the record
False                      the offsets without it, as after compaction
nonsense, an exception     UNKNOWN_SERVER_ERROR for the partition; the broker's log names plugin and distribution
(the plugin is missing)    likewise: it could get what it should not
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from logkernel.broker.replicas.chains import Chain
from logkernel.broker.replicas.quotas import TopicQuotas
from logkernel.config.topic import TopicSettings
from logkernel.contracts import ReadFacts, RequestContext
from logkernel.errors import KafkaError, LogkernelError, UnknownServerError
from logkernel.kernel import Kernel
from logkernel.record.bounds import CodecFor
from logkernel.record.reader_filter import leave_for_reader
from logkernel.vocabulary import FileSlice, Record, TopicPartition

if TYPE_CHECKING:
    from logkernel.guards.fetch_filter import GuardedFetchFilter


class FetchPlugins:
    """What the topic names; one of the two at least."""

    __slots__ = ("filters", "quotas")

    def __init__(self, filters: TopicFilters | None, quotas: TopicQuotas | None) -> None:
        self.filters = filters
        self.quotas = quotas

    def see(
        self, partition: int, found: FileSlice, client: RequestContext, rack_id: str, mono_ms: int
    ) -> tuple[bytes | FileSlice | None, int]:
        """(what the client gets of `found`, ms for which it is held back). Raises `KafkaError` and `OSError`."""
        left: bytes | FileSlice | None = found
        if self.filters is not None:
            left = self.filters.leave(found, client, rack_id)
        if self.quotas is None or left is None:
            return left, 0
        size = left.size if isinstance(left, FileSlice) else len(left)
        return left, self.quotas.on_read(partition, client, size, mono_ms)


class TopicFilters:
    def __init__(self, name: TopicPartition, chain: Chain[GuardedFetchFilter], codec_for: CodecFor) -> None:
        self._name = name
        self.chain = chain
        self._codec_for = codec_for

    def leave(self, found: FileSlice, client: RequestContext, rack_id: str) -> bytes | None:
        """What a client gets of `found`; None if that holds no whole batch. Raises `KafkaError` and `OSError`."""
        chain = self.chain.all()
        read = ReadFacts(*self._name, client, rack_id)

        def mark(records: Sequence[Record], mask: bytearray) -> None:
            for each in chain:
                each.mark(records, read, mask)

        try:
            return leave_for_reader(found.read(), self._codec_for, mark) or None
        except KafkaError:
            raise
        except LogkernelError as error:
            raise UnknownServerError(str(error)) from error


def filters_of(
    kernel: Kernel, name: TopicPartition, settings: TopicSettings, before: TopicFilters | None
) -> TopicFilters | None:
    """The filters that the topic's settings name; `before` if these have not changed."""
    names = settings.fetch_filters
    if not names:
        return None
    if before is not None and before.chain.made_for == (names, settings.plugin):
        return before
    chain = Chain(names, settings.plugin, kernel.fetch_filter, name, "consumers get nothing")
    return TopicFilters(name, chain, kernel.codec_for)
