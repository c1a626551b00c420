"""What the connections of one tested broker ask, answered: `connection.Watch`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from logkernel.errors import KafkaError
from logkernel.testing.kafka.clock import LentClock
from logkernel.testing.kafka.faults import Fault, Faults
from logkernel.testing.kafka.requests import ClientRequest, RequestLog
from logkernel.vocabulary import NO_ID, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker

Act = Callable[[Fault, int, Sequence[TopicPartition], Callable[[], None]], None]
"""Carries out what a fault does to the cluster: the fault, the broker that was asked, the partitions that are meant,
and what to call then, from any thread."""


class BrokerWatch:
    """One broker's, whichever of its lives that is in."""

    def __init__(
        self,
        broker: Callable[[], Broker | None],
        faults: Faults,
        requests: RequestLog,
        clock: LentClock,
        act: Act | None = None,
    ) -> None:
        """`broker` is the one that runs now, None while none does. A single broker has no `act`."""
        self.faults = faults
        self._broker = broker
        self._requests = requests
        self._clock = clock
        self._act = act

    @property
    def node_id(self) -> int:
        return self._running().runtime.node_id

    def now_ms(self) -> int:
        return self._clock.wall_ms()

    def saw(self, request: ClientRequest, size: int) -> None:
        self._requests.add(request, size)

    def topic_name(self, topic_id: UUID) -> str:
        return self._running().cluster.topic_name(topic_id) or ""

    def topic_id(self, topic: str) -> UUID:
        return self._running().cluster.topic_id(topic) or NO_ID

    def refusal(self, request: Any, error: KafkaError) -> Any:
        return self._running().router.refusal(type(request).__name__, request, error)

    def later(self, wait_ms: int, work: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()

        def soon() -> None:
            loop.call_soon(work)

        self._running().runtime.after(wait_ms, soon)

    def unless_gone(self, work: Callable[[], None]) -> Callable[[], None]:
        """Does `work` later, on the broker's thread, where it is called while the same broker runs as now."""
        broker = self._running()

        def call() -> None:
            if self._broker() is broker:
                self.later(0, work)

        return call

    def act(self, fault: Fault, named: Sequence[TopicPartition], go_on: Callable[[], None]) -> None:
        assert self._act is not None, "`Faults` takes such a fault of a cluster alone"
        self._act(fault, self.node_id, named, self.unless_gone(go_on))

    def _running(self) -> Broker:
        broker = self._broker()
        assert broker is not None, "a connection ends with its broker"
        return broker
