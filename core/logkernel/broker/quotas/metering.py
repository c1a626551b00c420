"""Measures clients' requests against their quotas, tells them `throttle_time_ms`, and holds them back (KIP-219).

Where a quota of bytes or time is set, `Broker` has requests come by here on their way to the router; else it does not
know of this. A request is always carried out, and its answer always leaves: then its connection is not read for the
longest of the times. A fetch is answered with its records, where Kafka's answer is empty: the rate is the same.

Not measured are requests of brokers to one another, and of the broker to itself. Who sends what only brokers may send,
and is refused, is measured like any client, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from logkernel.broker.fetch_sessions import replica_of
from logkernel.broker.quotas.clients import PERCENT_OF_NS, Applied, ClientQuotas, Mutations
from logkernel.broker.quotas.connections import ConnectionRates
from logkernel.broker.quotas.limits import Quotas
from logkernel.broker.quotas.windows import Window
from logkernel.broker.runtime import Runtime
from logkernel.contracts import Answer, ClientLimit, ClientQuotaCallback, RequestContext
from logkernel.requests.data import ProduceRequest
from logkernel.vocabulary import FileSlice

Route = Callable[[Any, RequestContext, Answer], None]
Acts = Callable[[RequestContext], bool]
"""Whether a client may act for the cluster."""

BROKERS_OWN: Final = frozenset(
    {
        "UpdateMetadataRequest", "LeaderAndIsrRequest", "StopReplicaRequest", "AlterPartitionRequest",
        "AllocateProducerIdsRequest", "ControlledShutdownRequest", "WriteTxnMarkersRequest",
        "InitializeShareGroupStateRequest", "ReadShareGroupStateRequest", "ReadShareGroupStateSummaryRequest",
        "WriteShareGroupStateRequest", "DeleteShareGroupStateRequest",
    }
)  # fmt: skip
"""Requests for which Kafka asks for CLUSTER_ACTION: those of brokers."""
FETCHES: Final = frozenset({"FetchRequest", "ShareFetchRequest"})


class Metering:
    """The quotas of one broker."""

    def __init__(self, runtime: Runtime, callback: ClientQuotaCallback | None, acts: Acts) -> None:
        self._runtime = runtime
        self._acts = acts
        get = runtime.config.get
        window = Window(get("quota.window.num"), get("quota.window.size.seconds") * 1000)
        mutations = Window(get("controller.quota.window.num"), get("controller.quota.window.size.seconds") * 1000)
        self.quotas = ClientQuotas(window, mutations, callback)
        self.connections = ConnectionRates(window)

    def configure(self, quotas: Quotas) -> None:
        self.quotas.configure(quotas)
        self.connections.configure(quotas)

    # ------------------------------------------------------------ requests

    def through(self, route: Route) -> Route:
        return partial(self._measure, route)

    def _measure(self, route: Route, request: Any, context: RequestContext, answer: Answer) -> None:
        quotas, name = self.quotas, type(request).__name__
        applied = None if context.internal else quotas.applied(context.principal, context.client_id or "")
        if applied is None or (_is_of_brokers(name, request, context) and self._acts(context)):
            route(request, context, answer)
            return
        if name in FETCHES and applied.read is not None:
            request.max_bytes = min(request.max_bytes, quotas.read.most_at_once(applied.read))
        written = _written_bytes(request) if name == "ProduceRequest" else 0
        call = _Call(self, context, applied, answer, written)
        if applied.busy is not None:
            call.begin()
            route(request, context, call.answer)
            call.end()
        else:
            route(request, context, call.answer)

    def throttle_ms(self, applied: Applied, written: int, response: Any, busy_ns: int) -> int:
        """Record what a request used; returns for how long its client is to be held back."""
        quotas, now_ms, throttle_ms = self.quotas, self._runtime.clock.mono_ms(), 0
        if written and applied.written is not None:
            throttle_ms = quotas.written.use(applied.written, written, now_ms)
        read = 0 if applied.read is None else _read_bytes(response)
        if read and applied.read is not None:
            throttle_ms = max(throttle_ms, quotas.read.use(applied.read, read, now_ms))
        if applied.busy is not None:
            throttle_ms = max(throttle_ms, quotas.busy.use(applied.busy, busy_ns * PERCENT_OF_NS, now_ms))
        return throttle_ms

    def note_busy(self, limit: ClientLimit, busy_ns: int) -> None:
        self.quotas.busy.note(limit, busy_ns * PERCENT_OF_NS, self._runtime.clock.mono_ms())

    def mono_ns(self) -> int:
        return self._runtime.clock.mono_ns()

    def mutations(self, context: RequestContext) -> Mutations | None:
        """The quota of a request that creates or deletes partitions; None where none applies."""
        if context.internal:
            return None
        now_ms, strict = self._runtime.clock.mono_ms(), "throttling_quota" in context.capabilities
        return self.quotas.mutations(context.principal, context.client_id or "", now_ms, strict=strict)


class _Call:
    """A request on its way. What the thread spends on it is split at its answer: the time before decides for how long
    the client is held back, the time after counts against the next request."""

    __slots__ = ("_answer", "_applied", "_begun_ns", "_context", "_metering", "_written")

    def __init__(
        self, metering: Metering, context: RequestContext, applied: Applied, answer: Answer, written: int
    ) -> None:
        self._metering = metering
        self._context = context
        self._applied = applied
        self._answer = answer
        self._written = written
        self._begun_ns: int | None = None
        """None while the handler does not run, or nothing limits its time."""

    def begin(self) -> None:
        reading_ns = self._context.reading_ns
        self._begun_ns = self._metering.mono_ns() - (0 if reading_ns is None else reading_ns())

    def end(self) -> None:
        """The handler returned."""
        if self._begun_ns is not None and self._applied.busy is not None:
            self._metering.note_busy(self._applied.busy, self._metering.mono_ns() - self._begun_ns)
            self._begun_ns = None

    def answer(self, response: Any) -> None:
        context, metering, busy = self._context, self._metering, self._applied.busy
        busy_ns = 0
        if busy is not None:
            now_ns = metering.mono_ns()
            busy_ns = 0 if self._begun_ns is None else now_ns - self._begun_ns
        throttle_ms = metering.throttle_ms(self._applied, self._written, response, busy_ns)
        if throttle_ms:
            _hold_back(context, response, throttle_ms)
        if busy is not None and context.mute is not None:
            now_ns = metering.mono_ns()
            self._answer(response)  # which encodes it
            after_ns = metering.mono_ns()
            metering.note_busy(busy, after_ns - now_ns)
            self._begun_ns = None if self._begun_ns is None else after_ns
            return
        self._begun_ns = None  # in this process: its answer may be followed by the client's next request
        self._answer(response)


def _is_of_brokers(name: str, request: Any, context: RequestContext) -> bool:
    return name in BROKERS_OWN or (name == "FetchRequest" and context.commands and replica_of(request) >= 0)


def _hold_back(context: RequestContext, response: Any, throttle_ms: int) -> None:
    told_ms = getattr(response, "throttle_time_ms", None)
    if told_ms is not None and told_ms < throttle_ms:
        response.throttle_time_ms = throttle_ms
    if context.mute is not None:
        context.mute(throttle_ms)


def _written_bytes(request: ProduceRequest) -> int:
    return sum(len(data.records or b"") for topic in request.topic_data for data in topic.partition_data)


def _read_bytes(response: Any) -> int:
    """The bytes of batches in the answer to a fetch; 0 for others."""
    if type(response).__name__ not in ("FetchResponse", "ShareFetchResponse"):
        return 0
    found = (data.records for topic in response.responses for data in topic.partitions)
    return sum(
        records.size if isinstance(records, FileSlice) else memoryview(records).nbytes
        for records in found
        if records is not None
    )
