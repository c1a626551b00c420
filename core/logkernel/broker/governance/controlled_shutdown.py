"""Has others lead what this broker leads, before it stops."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from logkernel.broker.controller.channel import ControllerChannel
from logkernel.broker.controller.view import ControllerView
from logkernel.broker.runtime import Runtime
from logkernel.requests.replication import ControlledShutdownRequest, ControlledShutdownResponse

log = logging.getLogger("logkernel.cluster")


class ControlledShutdown:
    """Asks the controller, `controlled.shutdown.max.retries` times at most, with pauses of
    `controlled.shutdown.retry.backoff.ms`.

    It does not pause when all other replicas of what is left are on brokers that are away: they may be away for good.
    Kafka's controller answers that at once, too; its broker only stops later.
    """

    def __init__(
        self,
        runtime: Runtime,
        view: ControllerView,
        channel: ControllerChannel,
        has_living_follower: Callable[[tuple[str, int]], bool],
    ) -> None:
        """`has_living_follower`: whether a partition that is led here has another replica on a broker that is alive."""
        self._runtime = runtime
        self._view = view
        self._channel = channel
        self._has_living_follower = has_living_follower

    def begin(self, done: Callable[[], None]) -> None:
        """`done` is called when no partition is led here that others could lead, or after the last attempt."""
        get = self._runtime.config.get
        attempts = int(get("controlled.shutdown.max.retries")) if get("controlled.shutdown.enable") else 0
        if attempts > 0:
            self._ask(attempts, done)
        else:
            done()

    def _ask(self, attempts: int, done: Callable[[], None]) -> None:
        request = ControlledShutdownRequest(self._runtime.node_id, self._view.broker_epoch)
        self._channel.ask(request, partial(self._answered, attempts - 1, done))

    def _answered(self, left: int, done: Callable[[], None], response: Any) -> None:
        node_id, failed = self._runtime.node_id, response is None or response.error_code
        if not failed and not response.remaining_partitions:
            done()
            return
        if response is None:
            why = "the controller gave no answer"
        elif failed:
            why = f"error {response.error_code} from the controller"
        else:
            names = [f"{row.topic_name}-{row.partition_index}" for row in response.remaining_partitions]
            why = f"{len(names)} partitions have no other replica in sync ({', '.join(names[:10])})"
        log.info("leadership is not handed over yet: node_id=%d attempts_left=%d reason=%s", node_id, left, why)
        if left and (failed or self._may_be_led_elsewhere(response)):
            pause_ms = int(self._runtime.config.get("controlled.shutdown.retry.backoff.ms"))
            self._runtime.after(pause_ms, partial(self._ask, left, done))
        else:
            log.warning("the broker stops without handing leadership over: node_id=%d reason=%s", node_id, why)
            done()

    def _may_be_led_elsewhere(self, response: ControlledShutdownResponse) -> bool:
        """Whether a replica of some partition that is left is alive: it may be in sync soon."""
        names = ((row.topic_name, row.partition_index) for row in response.remaining_partitions)
        return any(self._has_living_follower(name) for name in names)
