"""The machine of a connection that a test watches, and disturbs by its faults."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from logkernel.contracts import BrokerDoor
from logkernel.errors import KafkaError
from logkernel.plugins.transport.tcp.codecs import PendingResponse
from logkernel.plugins.transport.tcp.connection import REFUSED, ServerConnection
from logkernel.requests.data import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from logkernel.testing.kafka.faults import (
    CLOSE,
    CUT_ANSWER,
    DELAY,
    ERROR,
    OF_CLUSTERS,
    STALL,
    Conditions,
    Fault,
    Faults,
)
from logkernel.testing.kafka.named import FetchSession, partitions_named
from logkernel.testing.kafka.requests import ClientRequest, again, kept, shown
from logkernel.vocabulary import FileSlice, TopicPartition


class Watch(Protocol):
    """What a connection asks of the test's broker, on the broker's thread."""

    faults: Faults

    @property
    def node_id(self) -> int: ...

    def now_ms(self) -> int:
        """Wall time."""
        ...

    def saw(self, request: ClientRequest, size: int) -> None:
        """A request came, which holds `size` bytes of records; it was not answered yet."""
        ...

    def topic_name(self, topic_id: Any) -> str:
        """The name of a topic, "" where there is none."""
        ...

    def topic_id(self, topic: str) -> Any:
        """The id of a topic, zero where there is none."""
        ...

    def refusal(self, request: Any, error: KafkaError) -> Any:
        """The response that says that a request failed as a whole."""
        ...

    def later(self, wait_ms: int, work: Callable[[], None]) -> None:
        """Do `work` then, by the broker's clock, on its thread and outside of its turns."""
        ...

    def unless_gone(self, work: Callable[[], None]) -> Callable[[], None]:
        """Has `work` done soon where it is called, unless this broker has ended by then."""
        ...

    def act(self, fault: Fault, named: Sequence[TopicPartition], go_on: Callable[[], None]) -> None:
        """Do to the cluster what a fault says, about these partitions; then call `go_on`, if this broker still runs."""
        ...


class WatchedConnection(ServerConnection):
    """See the module."""

    __slots__ = ("_fetched", "_held", "_marks", "_watch")

    def __init__(self, watch: Watch, door: BrokerDoor, *given: Any, **named: Any) -> None:
        super().__init__(door, *given, **named)
        self._watch = watch
        self._fetched = FetchSession()
        self._held: deque[tuple[PendingResponse, ClientRequest, Any]] | None = None
        """What came while a request is held up: it waits behind that, as in Kafka. None while none is."""
        self._marks: dict[int, tuple[list[TopicProduceResponse], Fault | None]] = {}
        """Of pending responses: what is added to the response, and the fault that strikes its bytes."""

    # ------------------------------------------------------------ in

    def submit(self, pending: PendingResponse, request: Any) -> None:
        codec = pending.codec
        name, version = self.software
        copy, size = kept(request)
        seen = ClientRequest(
            codec.api.row.name, codec.version, self.client_id, f"{name} {version}".strip(), self.id,
            pending.correlation_id, self._watch.now_ms(), shown(copy), self._watch.node_id,
            "" if self.principal is None else str(self.principal),
        )  # fmt: skip
        self._watch.saw(seen, size)
        if self._held is None:
            self._judge(pending, seen, request, copy)
        else:
            self._held.append((pending, seen, copy))

    def _judge(self, pending: PendingResponse, seen: ClientRequest, request: Any, copy: Any) -> None:
        """`request` is what may be handed on now, `copy` what may be later."""
        named = self._named(request) if isinstance(request, FetchRequest) else None
        fault = self._watch.faults.strikes(seen, lambda: self._named(request) if named is None else named)
        if fault is None:
            super().submit(pending, request)
        elif fault.kind == ERROR:
            self._fail(pending, request, fault, named or [])
        elif fault.kind in (DELAY, STALL, *OF_CLUSTERS):
            self._hold(pending, copy, fault)
        elif fault.kind == CLOSE:
            self._end(REFUSED)
            if not self._feeding:
                self._wake()
        else:
            self._marks[id(pending)] = [], fault
            super().submit(pending, request)

    def _named(self, request: Any) -> list[TopicPartition]:
        named = partitions_named(request, self._watch.topic_name)
        if isinstance(request, FetchRequest):
            return self._fetched.follow(request, named, self._watch.topic_name)
        return named

    # ------------------------------------------------------------ held up

    def _hold(self, pending: PendingResponse, copy: Any, fault: Fault) -> None:
        self._held = deque()

        def go_on() -> None:
            """Also when the client is gone: a slow broker carries out what it has read."""
            held, self._held = self._held or deque(), None
            ServerConnection.submit(self, pending, again(copy))
            while held and self._held is None:
                then, what, kept_copy = held.popleft()
                self._judge(then, what, again(kept_copy), kept_copy)
            if self._held is not None:
                self._held.extend(held)

        if fault.kind == DELAY:
            self._watch.later(fault.wait_ms, go_on)
        elif fault.kind == STALL:
            fault.released.append(self._watch.unless_gone(go_on))
        else:
            named = partitions_named(copy, self._watch.topic_name)
            self._watch.act(fault, [name for name in named if fault.conditions.covers(name)], go_on)

    # ------------------------------------------------------------ errors

    def _fail(self, pending: PendingResponse, request: Any, fault: Fault, fetched: list[TopicPartition]) -> None:
        assert fault.error is not None
        if isinstance(request, FetchRequest):
            self.answer(pending, self._failed_fetch(request, fault.conditions, fault.error, fetched))
            return
        if isinstance(request, ProduceRequest):
            failed, rest = self._parted(request, fault.conditions, fault.error)
            if rest:
                self._marks[id(pending)] = failed, None
                request.topic_data = rest
                super().submit(pending, request)
            else:
                self.answer(pending, ProduceResponse(failed))
            return
        self.answer(pending, self._watch.refusal(request, fault.error))

    def _parted(
        self, request: ProduceRequest, conditions: Conditions, error: KafkaError
    ) -> tuple[list[TopicProduceResponse], list[TopicProduceData]]:
        """What is answered with the error, and what is carried out."""
        failed, rest = [], []
        for topic in request.topic_data:
            name = topic.name or self._watch.topic_name(topic.topic_id)
            struck = [row for row in topic.partition_data if conditions.covers(TopicPartition(name, row.index))]
            others = [row for row in topic.partition_data if row not in struck]
            if struck:
                rows = [PartitionProduceResponse(row.index, error.code, -1, error_message=str(error)) for row in struck]
                failed.append(TopicProduceResponse(topic.name, rows, topic.topic_id))
            if others:
                rest.append(TopicProduceData(topic.name, others, topic.topic_id))
        return failed, rest

    def _failed_fetch(
        self, request: FetchRequest, conditions: Conditions, error: KafkaError, fetched: list[TopicPartition]
    ) -> FetchResponse:
        """Partitions that the fault does not cover have nothing new. The broker knows nothing of this request: within
        a session the next one has an unexpected epoch, and the client begins a new session."""
        response = FetchResponse(session_id=request.session_id)
        ids = {topic.topic or self._watch.topic_name(topic.topic_id): topic.topic_id for topic in request.topics}
        for name in fetched:
            code = error.code if conditions.covers(name) else 0
            if code or request.session_epoch <= 0:
                topic_id = ids.get(name.topic) or self._watch.topic_id(name.topic)
                rows = [PartitionData(name.partition, code, -1)]
                response.responses.append(FetchableTopicResponse(name.topic, rows, topic_id))
        return response

    # ------------------------------------------------------------ out

    def encode(self, pending: PendingResponse, response: Any) -> None:
        added, fault = self._marks.pop(id(pending), ((), None))
        if added:
            response.responses = [*response.responses, *added]
        super().encode(pending, response)
        if fault is not None:
            parts = pending.parts or ()
            whole = b"".join(part.read() if isinstance(part, FileSlice) else part for part in parts)
            pending.parts = [whole[: max(1, int(len(whole) * fault.part))]] if fault.kind == CUT_ANSWER else []
            pending.last = True
