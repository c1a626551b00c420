"""The quotas of a topic on this broker, by its setting `quotas`: the longest of their times counts.

A client over its quota is answered, with `throttle_time_ms`; then its connection is not read for that time (KIP-219).
A quota that fails, or is not installed, fails the partitions of the request with UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logkernel.broker.replicas.chains import Chain
from logkernel.config.topic import TopicSettings
from logkernel.contracts import RequestContext, Usage
from logkernel.errors import KafkaError, LogkernelError, UnknownServerError
from logkernel.kernel import Kernel

if TYPE_CHECKING:
    from logkernel.guards.quota import GuardedQuota


class TopicQuotas:
    def __init__(self, topic: str, chain: Chain[GuardedQuota]) -> None:
        self._topic = topic
        self.chain = chain

    def on_write(self, partition: int, client: RequestContext, size: int, mono_ms: int) -> int:
        """For how many ms the client is held back. Raises `KafkaError`."""
        return self._ask(Usage(self._topic, partition, client, size, 0, mono_ms))

    def on_read(self, partition: int, client: RequestContext, size: int, mono_ms: int) -> int:
        """As `on_write`."""
        return self._ask(Usage(self._topic, partition, client, 0, size, mono_ms))

    def _ask(self, usage: Usage) -> int:
        try:
            return max(each.throttle(usage) for each in self.chain.all())
        except KafkaError:
            raise
        except LogkernelError as error:
            raise UnknownServerError(str(error)) from error


def quotas_of(kernel: Kernel, topic: str, settings: TopicSettings, before: TopicQuotas | None) -> TopicQuotas:
    """The quotas that the topic's settings name; `before` if these have not changed."""
    names = settings.quotas
    if before is not None and before.chain.made_for == (names, settings.plugin):
        return before
    return TopicQuotas(topic, Chain(names, settings.plugin, kernel.quota, topic, "clients' requests fail"))
