"""The same for tests on an event loop: calls that wait do so in a thread, so that the program under test goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from logkernel.testing.kafka.broker import BrokerClock
from logkernel.testing.kafka.cluster import KafkaCluster
from logkernel.testing.kafka.faults import AskedFault, FaultCalls
from logkernel.testing.kafka.requests import KeptRequests
from logkernel.testing.kafka.view import KafkaView

P = ParamSpec("P")
T = TypeVar("T")


class _Awaited(Generic[P, T]):
    """A method of a view as a coroutine."""

    def __init__(self, method: Callable[Concatenate[Any, P], T]) -> None:
        self._name = method.__name__
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> _Awaited[P, T]: ...
    @overload
    def __get__(self, instance: AsyncKafka, owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, instance: AsyncKafka | None, owner: type) -> Any:
        if instance is None:
            return self
        method: Callable[P, T] = getattr(instance.kafka, self._name)

        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return await asyncio.to_thread(method, *args, **kwargs)

        return call


class AsyncKafka:
    """A `Kafka` or `KafkaNamespace` whose calls are awaited. `kafka` is the one for threads."""

    def __init__(self, kafka: KafkaView) -> None:
        self.kafka = kafka

    delete_topic = _Awaited(KafkaView.delete_topic)
    produce = _Awaited(KafkaView.produce)
    records = _Awaited(KafkaView.records)
    assert_produced = _Awaited(KafkaView.assert_produced)
    compact = _Awaited(KafkaView.compact)
    apply_retention = _Awaited(KafkaView.apply_retention)
    wait_for_offset = _Awaited(KafkaView.wait_for_offset)
    wait_for_group = _Awaited(KafkaView.wait_for_group)
    wait_for_commit = _Awaited(KafkaView.wait_for_commit)

    async def create_topic(self, name: str, partitions: int = -1, **settings: Any) -> None:
        """See `KafkaView.create_topic`."""
        await asyncio.to_thread(self.kafka.create_topic, name, partitions, **settings)

    def client_settings(
        self,
        user: str | None = None,
        *,
        mechanism: str | None = None,
        password: str | None = None,
        spelling: str = "kafka",
    ) -> dict[str, str]:
        """See `KafkaView.client_settings`."""
        return self.kafka.client_settings(user, mechanism=mechanism, password=password, spelling=spelling)

    @property
    def bootstrap_servers(self) -> str:
        return self.kafka.bootstrap_servers

    @property
    def clock(self) -> BrokerClock:
        """Its `advance` takes some milliseconds, and is not awaited."""
        return self.kafka.clock

    @property
    def faults(self) -> FaultCalls[AskedFault]:
        """What goes wrong with clients' requests."""
        return self.kafka.faults

    @property
    def requests(self) -> KeptRequests:
        return self.kafka.requests

    def topic(self, name: str) -> str:
        """See `KafkaView.topic`."""
        return self.kafka.topic(name)

    def group(self, name: str) -> str:
        """See `KafkaView.group`."""
        return self.kafka.group(name)


class AsyncKafkaCluster(AsyncKafka):
    """A `KafkaCluster` whose calls are awaited, those of its brokers, too."""

    def __init__(self, kafka: KafkaCluster) -> None:
        super().__init__(kafka)
        self._kafka = kafka

    kill = _Awaited(KafkaCluster.kill)
    stop = _Awaited(KafkaCluster.stop)
    start = _Awaited(KafkaCluster.start)
    restart = _Awaited(KafkaCluster.restart)
    move_leader = _Awaited(KafkaCluster.move_leader)
    wait_for_isr = _Awaited(KafkaCluster.wait_for_isr)
    wait_for_leader = _Awaited(KafkaCluster.wait_for_leader)
    save = _Awaited(KafkaCluster.save)
    restore = _Awaited(KafkaCluster.restore)

    @property
    def brokers(self) -> dict[int, str]:
        """See `KafkaCluster.brokers`."""
        return self._kafka.brokers

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """See `KafkaCluster.leader`."""
        return self._kafka.leader(topic, partition)

    def isr(self, topic: str, partition: int = 0) -> list[int]:
        """See `KafkaCluster.isr`."""
        return self._kafka.isr(topic, partition)

    def pause(self, node: int) -> None:
        """See `KafkaCluster.pause`."""
        self._kafka.pause(node)

    def resume(self, node: int) -> None:
        """See `KafkaCluster.resume`."""
        self._kafka.resume(node)
