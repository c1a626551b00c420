"""The admin client's machine: plans (`plans`) over the core of every client. Pure.

a plan yields     what is done                                         it is sent
questions         each becomes a call of the core                      the outcomes, once all have ended
a Pause           nothing, for a back-off's time                       None; past its deadline it is thrown an error
its result        the operation is done
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from attrs import define, field

from logkernel.client.admin.plans import TOO_LATE, Ask, Pause, Plan
from logkernel.client.cluster.calls import Call, ClientCore, earliest
from logkernel.client.cluster.permissions import all_explained, request_name
from logkernel.errors import RequestTimedOut
from logkernel.peer.backoff import Backoff


@define(eq=False)
class Operation:
    """A plan under way. `done` is set last."""

    plan: Plan[Any]
    deadline_ms: int
    done: bool = False
    result: Any = None
    error: Exception | None = None
    outcomes: list[Any] = field(factory=list)
    open: int = 0
    """Questions of this round without an outcome."""
    resume_ms: int | None = None
    """The end of a pause."""
    request: str = ""
    """That of the last questions, by its name; what it needs says what one that is refused has to ask for."""


def _call(operation: Operation, ask: Ask, index: int) -> Call:
    def done(response: Any, error: Exception | None) -> None:
        ask.node = call.node
        operation.outcomes[index] = response if error is None else error
        operation.open -= 1

    call = Call(ask.target, ask.request, operation.deadline_ms, done, ask.verdict, ask.withheld, once=ask.once)
    return call


class AdminMachine:
    """See the module. Users' calls come with the driver's lock held."""

    name = "admin client"

    def __init__(self, settings: Mapping[str, Any], bootstrap: list[tuple[str, int]], random: Random) -> None:
        self.settings = settings
        self.core = ClientCore(settings, bootstrap, random, create=False)
        self._operations: list[Operation] = []
        self._backoff = Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"], random)
        self._counts = {"operations-total": 0, "operations-failed-total": 0}

    def start(self, plan: Plan[Any], deadline_ms: int) -> Operation:
        """Take up a plan; raises what it raises before its first question."""
        operation = Operation(plan, deadline_ms)
        self._counts["operations-total"] += 1
        self._go_on(operation, partial(plan.send, None), 0, raises=True)
        if not operation.done:
            self._operations.append(operation)
        return operation

    def cancel(self, operation: Operation) -> None:
        """Nobody waits for it any more; what was sent may be done nevertheless."""
        if operation in self._operations:
            self._operations.remove(operation)
            operation.plan.close()

    # ------------------------------------------------------------ time

    def step(self, wall_ms: int, now_ms: int) -> int | None:
        while True:
            pause_ms = self._step_operations(now_ms)
            core_ms = self.core.step(wall_ms, now_ms)
            if not any(operation.open == 0 and operation.resume_ms is None for operation in self._operations):
                return earliest(pause_ms, core_ms)

    def _step_operations(self, now_ms: int) -> int | None:
        next_ms: int | None = None
        for operation in list(self._operations):
            while not operation.done and operation.open == 0:
                if operation.resume_ms is None:
                    outcomes, operation.outcomes = operation.outcomes, []
                    self._go_on(operation, partial(operation.plan.send, outcomes), now_ms)
                elif now_ms >= operation.resume_ms:
                    self._end_pause(operation, now_ms)
                else:
                    next_ms = earliest(next_ms, operation.resume_ms)
                    break
        self._operations = [operation for operation in self._operations if not operation.done]
        return next_ms

    def _end_pause(self, operation: Operation, now_ms: int) -> None:
        operation.resume_ms = None
        plan = operation.plan
        if now_ms >= operation.deadline_ms:
            self._go_on(operation, partial(plan.throw, RequestTimedOut(TOO_LATE)), now_ms)
        else:
            self._go_on(operation, partial(plan.send, None), now_ms)

    def _go_on(
        self, operation: Operation, resume: Callable[[], Sequence[Ask] | Pause], now_ms: int, *, raises: bool = False
    ) -> None:
        try:
            found = resume()
        except StopIteration as end:
            operation.result, operation.done = end.value, True
        except Exception as error:
            self._counts["operations-failed-total"] += 1
            all_explained(error, operation.request)
            if raises:
                raise
            operation.error, operation.done = error, True
        else:
            if isinstance(found, Pause):
                wait_ms = self._backoff.delay_ms(found.failures)
                operation.resume_ms = min(now_ms + wait_ms, max(now_ms, operation.deadline_ms))
            else:
                self._ask(operation, found)

    def _ask(self, operation: Operation, asks: Sequence[Ask]) -> None:
        operation.outcomes = [None] * len(asks)
        operation.open = len(asks)
        if asks:
            operation.request = asks[0].purpose or request_name(asks[0].request)
        for index, ask in enumerate(asks):
            if isinstance(ask.target, int) and ask.target not in self.core.metadata.brokers:
                self.core.metadata.request_update()

            self.core.call(_call(operation, ask, index))

    # ------------------------------------------------------------ for the driver

    @property
    def busy(self) -> bool:
        """Never: `close` of an admin client comes after its calls."""
        return False

    def take_finished(self) -> list[Callable[[], None]]:
        return []

    def begin_end(self) -> None:
        pass

    def abandon(self, error: Exception) -> None:
        operations, self._operations = self._operations, []
        for operation in operations:
            operation.plan.close()
            operation.error, operation.done = error, True

    @property
    def windows(self) -> int:
        return 0

    def snapshot(self, now_ms: int) -> dict[str, Any]:
        network = self.core.network
        return {
            **self._counts,
            "connection-count": network.connections_made - network.connections_closed,
            "request-total": network.requests_sent,
            "response-total": network.responses,
        }
