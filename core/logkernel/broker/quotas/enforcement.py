"""The client quotas in force on this broker. What measures is imported, and stands in the way of requests, only where
there is something to measure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from logkernel.broker.runtime import Runtime
from logkernel.contracts import ADMITTED, Admission, RequestContext
from logkernel.controller.image import ClusterImage

if TYPE_CHECKING:
    from logkernel.broker.quotas.clients import Mutations
    from logkernel.broker.quotas.cluster_news import ClusterNews
    from logkernel.broker.quotas.metering import Acts, Metering, Route

RATE: Final = "max.connection.creation.rate"
UNLIMITED: Final = 2**31 - 1


def anybody_acts(context: RequestContext) -> bool:
    """Where there is no authorizer."""
    return True


class Enforcement:
    def __init__(self, runtime: Runtime, image: ClusterImage, acts: Acts = anybody_acts) -> None:
        """Raises `PluginError` where no plugin has the name that `client.quota.callback.class` gives."""
        self._runtime = runtime
        self._acts = acts
        self._image = image
        self._metering: Metering | None = None
        name = str(runtime.config.get("client.quota.callback.class") or "").strip()
        self._callback = runtime.kernel.client_quota_callback(name, runtime.config) if name else None
        self.on_limits: Callable[[], None] = lambda: None
        """Called when the plugin says that limits changed, which no quota did: have `asked_way` chosen."""
        self._news: ClusterNews | None = None
        """None where no plugin wants to know."""
        if self._callback is not None and self._callback.wants_cluster:
            from logkernel.broker.quotas.cluster_news import ClusterNews

            self._news = ClusterNews(runtime, image, self._callback, lambda: self.on_limits())

    def way(self, route: Route) -> Route:
        """By which requests are to go, now that the cluster's quotas may be others: `route` itself, or one that
        measures them."""
        if self._metering is None:
            if not self._image.quotas and self._callback is None:
                return route
            self._metering = self._made()
        self._metering.configure(self._image.quotas)
        return self._chosen(self._metering, route)

    def asked_way(self, route: Route) -> Route:
        """As `way`, where quotas are the same, and a plugin may limit other types."""
        if self._metering is None:
            return route
        self._metering.quotas.ask_types()
        return self._chosen(self._metering, route)

    @staticmethod
    def _chosen(metering: Metering, route: Route) -> Route:
        return metering.through(route) if metering.quotas else route

    def cluster_changed(self) -> None:
        """Topics, their replicas or brokers may be others."""
        if self._news is not None:
            self._news.changed()

    def mutations(self, context: RequestContext) -> Mutations | None:
        """The quota of a request that creates or deletes partitions; None where none applies."""
        return None if self._metering is None else self._metering.mutations(context)

    def admit(self, listener: str, host: str, *, of_brokers: bool) -> Admission:
        """A connection came to a listener; to one `of_brokers`, the broker-wide rate does not apply, as in Kafka."""
        config = self._runtime.config
        broker_rate = None if of_brokers else _limit(config.get(RATE))
        listener_rate = _limit(config.of_listener(listener, RATE, UNLIMITED))
        if self._metering is None:
            if broker_rate is listener_rate is None:
                return ADMITTED
            self._metering = self._made()
        now_ms = self._runtime.clock.mono_ms()
        return self._metering.connections.admit(listener, host, now_ms, broker_rate, listener_rate)

    def _made(self) -> Metering:
        from logkernel.broker.quotas.metering import Metering

        return Metering(self._runtime, self._callback, self._acts)


def _limit(rate: int) -> int | None:
    return None if rate == UNLIMITED else rate
