"""The produce interceptors of one partition, in the order of `produce.interceptors`.

    interceptors say           the client gets
    the records, or others     what any write gets; the checks of the topic's settings are made of the result
    a refusal                  INVALID_RECORD, with the reason of each refused record; nothing of the batch is written
    nonsense, an exception     UNKNOWN_SERVER_ERROR, with the plugin and its distribution; likewise
    (the plugin is missing)    likewise: the records would pass unchecked

A batch that the log holds already is not shown again: its producer repeats it because it missed the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logkernel.broker.replicas.chains import Chain
from logkernel.config.topic import TopicSettings
from logkernel.contracts import RequestContext, WriteFacts
from logkernel.errors import KafkaError, LogkernelError, UnknownServerError
from logkernel.kernel import Kernel
from logkernel.partition.producers import ProducerStates
from logkernel.record.validate import Intercept, refused_records
from logkernel.vocabulary import BatchFacts, Record, TopicPartition

if TYPE_CHECKING:
    from logkernel.guards.produce_interceptor import GuardedProduceInterceptor

THIS_PROCESS = RequestContext(client_id="embedded", internal=True)


class TopicInterceptors:
    def __init__(self, name: TopicPartition, chain: Chain[GuardedProduceInterceptor]) -> None:
        self._name = name
        self.chain = chain

    def intercept(
        self, producers: ProducerStates, client: RequestContext | None, wall_ms: int, guard: int | None
    ) -> Intercept:
        """Return what `check_produce` calls for one batch. It raises `RecordsRefused`, `UnknownServerError`, and what
        `ProducerStates.check_append` raises."""

        def intercept(facts: BatchFacts, records: list[Record]) -> None:
            if facts.producer_id >= 0 and producers.check_append(facts, guard) is not None:
                return
            write = WriteFacts(*self._name, client or THIS_PROCESS, wall_ms, facts.is_transactional)
            for each in self.chain.all():
                try:
                    refused = each.intercept(records, write)
                except KafkaError:
                    raise
                except LogkernelError as error:
                    raise UnknownServerError(str(error)) from error
                if refused:
                    raise refused_records(refused)

        return intercept


def interceptors_of(
    kernel: Kernel, name: TopicPartition, settings: TopicSettings, before: TopicInterceptors | None
) -> TopicInterceptors | None:
    """The interceptors that the topic's settings name; `before` if these have not changed."""
    names = settings.produce_interceptors
    if not names:
        return None
    if before is not None and before.chain.made_for == (names, settings.plugin):
        return before
    return TopicInterceptors(name, Chain(names, settings.plugin, kernel.produce_interceptor, name, "writes fail"))
