"""Has tested brokers do what their clock, which was moved, makes due."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from logkernel.testing.kafka.waiting import wait_for

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker

MOST_S: Final = 30.0
"""How long the work may take."""


def do_due_work(brokers: Callable[[], Collection[Broker]], run: Callable[[Callable[[], Any]], Any]) -> None:
    """Have everything done that is due, and what follows from it. `brokers` are those that run, asked for by `run`,
    which does work on their thread. Raises `AssertionError` where that takes too long."""
    for broker in run(brokers):
        if broker.runtime.is_driven:  # a loop has set its alarm by the time before
            heard: Future[None] = Future()
            broker.runtime.workers.call(lambda heard=heard: heard.set_result(None))
            heard.result(MOST_S)

    def is_done() -> bool:
        busy = [broker for broker in brokers() if not _is_idle(broker)]  # each is stepped
        return not busy

    wait_for(lambda: run(is_done), MOST_S, lambda: "a broker is still busy with what fell due")
    run(lambda: None)  # what the last of it had done soon


def _is_idle(broker: Broker) -> bool:
    deadline_ms = broker.step()
    due = deadline_ms is not None and deadline_ms <= broker.runtime.clock.mono_ms()
    return not (due or broker.retention.busy or broker.cleaner.busy)
