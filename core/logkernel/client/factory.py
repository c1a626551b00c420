"""How the clients of a log are made: alike for an embedded one and a cluster, for threads and for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    from logkernel.client.admin.base import AdminBase
    from logkernel.client.consumer.base import ConsumerBase
    from logkernel.client.producer.base import ProducerBase
    from logkernel.kernel import Kernel

P = TypeVar("P", bound="ProducerBase[Any]")
C = TypeVar("C", bound="ConsumerBase")
A = TypeVar("A", bound="AdminBase")
T = TypeVar("T", bound="ProducerBase[Any] | ConsumerBase | AdminBase")
New = Callable[[Any, "Kernel", Mapping[str, Any]], T]
"""Makes a client, from its driver, the kernel and its settings."""
NewDriver = Callable[[Any, Mapping[str, Any]], Any]
"""Makes the driver of a machine with these settings."""
IN_PROCESS = [("embedded", 0)]
"""Where an embedded client finds its only broker."""


class ClientFactory:
    """`common` are settings of all clients; None of an embedded log.

    What was made is closed with the log; where it is held `weak`, unless it was dropped before.
    """

    def __init__(self, kernel: Kernel, common: Mapping[str, Any] | None = None, *, weak: bool = False) -> None:
        self._kernel = kernel
        self._common = common
        self._weak = weak
        self._made: WeakSet[Any] = WeakSet()
        self._held: list[Any] = []

    def producer(self, client: New[P], driver: NewDriver, given: Mapping[str, Any]) -> P:
        from logkernel.client.producer.base import make_sender
        from logkernel.client.settings.producer import load_producer, widen_batches

        values = load_producer(self._with_common(given))
        if self._common is None:
            widen_batches(values, given)
        machine = make_sender(values, self._addresses(values), self._kernel)
        return self._begin(client, driver(machine, values), values)

    def consumer(
        self, client: New[C], driver: NewDriver, topics: tuple[str, ...], group: str | None, given: Mapping[str, Any]
    ) -> C:
        from logkernel.client.consumer.base import consumer_settings, make_consumer_machine

        values = consumer_settings(topics, group, self._with_common(given))
        machine = make_consumer_machine(values, self._addresses(values), self._kernel)
        made = self._begin(client, driver(machine, values), values)
        if topics:
            made.subscribe(topics)
        return made

    def admin(self, client: New[A], driver: NewDriver, given: Mapping[str, Any]) -> A:
        from logkernel.client.admin.base import make_admin
        from logkernel.client.settings.admin import load_admin

        values = load_admin(self._with_common(given))
        machine = make_admin(values, self._addresses(values))
        return self._begin(client, driver(machine, values), values)

    def let_go(self) -> list[Any]:
        """Return the clients to close, readers before writers."""
        open_ones = [client for client in self._made if not client.closed]
        self._made.clear()
        self._held = []
        return sorted(open_ones, key=lambda client: not hasattr(client, "poll"))

    def _with_common(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**(self._common or {}), **given}

    def _addresses(self, values: Mapping[str, Any]) -> list[tuple[str, int]]:
        if self._common is None:
            return IN_PROCESS
        from logkernel.client.cluster.bootstrap import bootstrap_addresses

        return bootstrap_addresses(values)

    def _begin(self, client: New[T], driver: Any, values: Mapping[str, Any]) -> T:
        try:
            made = client(driver, self._kernel, values)
        except BaseException:
            driver.end_soon()
            raise
        driver.start()
        self._made.add(made)
        if not self._weak:
            self._held = [known for known in self._held if not known.closed] + [made]
        return made
