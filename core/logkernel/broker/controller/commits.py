"""How a controller changes the cluster: commits that name its term.

A commit that is refused for its term ends the term. One that nobody waits for and that could not be kept is decided
again. Once the term is over, nothing is committed any more.
"""

from __future__ import annotations

import logging
from typing import Any, Final, Protocol

from logkernel.attrs_lite import mutable
from logkernel.broker.controller.view import ControllerView
from logkernel.broker.metadata_compaction import MetadataCompaction
from logkernel.broker.runtime import Runtime
from logkernel.broker.timers import Timer
from logkernel.contracts import SharedCoordination
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.controller.image import NO_LEADER, ClusterImage
from logkernel.controller.orders import Orders
from logkernel.errors import KafkaError, NotController, StaleControllerEpoch

log = logging.getLogger("logkernel.controller")

DECIDE_AGAIN_MS: Final = 1_000
"""After a decision that could not be kept."""


@mutable
class Counters:
    """Counters since this broker started; read-only."""

    elections: int = 0
    """Partitions that got another leader, or the same in a new epoch."""
    unclean_elections: int = 0
    """Of them, those whose leader was not in sync."""
    isr_shrinks: int = 0
    isr_expansions: int = 0


class CommitEvents(Protocol):
    """What follows from commits; `ActiveController` does it."""

    def on_committed(self) -> None:
        """Changes were kept and folded."""
        ...

    def on_unsure(self) -> None:
        """A commit failed, and may have been stored: ask the coordination."""
        ...

    def on_deposed(self) -> None:
        """Another term is in force."""
        ...

    def decide_again(self) -> None:
        """A commit failed; the cause may be transient."""
        ...


class Commits:
    """Of one term."""

    def __init__(
        self,
        runtime: Runtime,
        view: ControllerView,
        coordination: SharedCoordination,
        orders: Orders,
        compaction: MetadataCompaction,
        counters: Counters,
        events: CommitEvents,
    ) -> None:
        self._runtime = runtime
        self._view = view
        self._coordination = coordination
        self._orders = orders
        self._compaction = compaction
        self._counters = counters
        self._events = events
        self._again: Timer | None = None
        self.is_open = True
        """Whether the term lasts; read-only."""

    def close(self) -> None:
        """The term is over."""
        self.is_open = False
        if self._again is not None:
            self._again.cancel()
            self._again = None

    def commit(self, result: ControllerResult) -> Any:
        """Commit what the controller decided, and order what follows; returns the response. Raises `NotController`, and
        `KafkaError` if the coordination cannot be reached. The commit may still have been stored; the session is then
        unsure, and everything is reloaded before the next decision."""
        if not self.is_open:
            raise self._view.not_controller()
        if result.changes:
            orders = self._orders
            try:
                self._coordination.commit_as_controller(result.changes, orders.term)
            except StaleControllerEpoch as error:
                self._events.on_deposed()
                raise NotController(f"broker {self._runtime.node_id} was the controller until now") from error
            except KafkaError:
                self._events.on_unsure()
                raise
            self._count(result.effects, orders.image)
            orders.fold(result.changes)
            self._compact(orders.image)
            self._events.on_committed()
        return result.response

    def attempt(self, result: ControllerResult) -> None:
        """As `commit`, for what no request waits for: what could not be kept is decided again."""
        try:
            self.commit(result)
        except NotController:
            pass  # another one decides
        except (KafkaError, OSError) as error:
            log.error("not committed, tried again: changes=%d error=%s", len(result.changes), error)
            if self._again is None and self.is_open:
                self._again = self._runtime.after(DECIDE_AGAIN_MS, self._decide_again)

    def _decide_again(self) -> None:
        self._again = None
        self._events.decide_again()

    def _count(self, effects: Effects, image: ClusterImage) -> None:
        """Before the result is folded."""
        for change in effects.leaders:
            self._counters.elections += 1
            row = image.topics[change.topic].partitions[change.partition]
            if change.leader != NO_LEADER and change.leader not in row.isr:
                self._counters.unclean_elections += 1
                log.warning(
                    "unclean election, records may be lost: topic=%s partition=%d leader=%d isr_was=%s",
                    change.topic, change.partition, change.leader, list(row.isr),
                )  # fmt: skip

    def _compact(self, image: ClusterImage) -> None:
        if self._compaction.is_due(self._coordination, image.size):
            self._compaction.replace(self._coordination, list(image.snapshot()))
