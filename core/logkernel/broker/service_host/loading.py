"""The shards of a partition whose leadership came are loaded in turns, while requests wait for nobody.

| step | requests are refused with |
|---|---|
| the log is replayed, `LOAD_TURN_MS` at a time, up to its end | COORDINATOR_LOAD_IN_PROGRESS |
| the watermark is to pass that end: until then, what was read may be cut off yet | COORDINATOR_LOAD_IN_PROGRESS |
| the machines are told `on_loaded` | (they are answered) |
| the leadership went | NOT_COORDINATOR |

A broker that stands alone loads a shard at the first request to it, in one go (`host.ServiceHost.shard`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from logkernel.broker.replicas.leader_replica import LeaderReplica
from logkernel.broker.runtime import Runtime
from logkernel.broker.service_host.lent import LOAD_TURN_MS
from logkernel.broker.service_host.replay import no_collector, replay_in_steps
from logkernel.broker.service_host.shard import Shard
from logkernel.broker.timers import Timer


class Loading:
    """Of the shards that share one partition. Exactly one of `done` and `failed` is called, later or now, unless it is
    cancelled."""

    def __init__(
        self,
        runtime: Runtime,
        shards: Sequence[Shard],
        replica: LeaderReplica,
        done: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._runtime = runtime
        self._replica = replica
        self._done = done
        self._failed = failed
        self._steps: Iterator[None] | None = replay_in_steps(shards, replica)
        self._timer: Timer | None = None
        self._end = 0
        self.cancelled = False

    def cancel(self) -> None:
        """Cancel the load; neither callback is called."""
        self.cancelled = True
        self._replica.news.unsubscribe(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def go_on(self) -> None:
        """Replay for a while, or look whether all of it is committed."""
        self._timer = None
        if self.cancelled:
            return
        if self._steps is not None and not self._replayed(self._steps):
            return
        if self._replica.leader.high_watermark >= self._end:
            self._done()
        else:
            self._replica.news.subscribe(self)

    def _replayed(self, steps: Iterator[None]) -> bool:
        clock = self._runtime.clock
        begun_ms = clock.mono_ms()
        try:
            with no_collector():
                for _ in steps:
                    if clock.mono_ms() - begun_ms >= LOAD_TURN_MS:
                        self._again()
                        return False
        except Exception as error:
            self.cancelled = True
            self._failed(error)
            return False
        self._steps = None
        self._end = self._replica.log.end_offset
        return True

    def on_news(self) -> None:
        """The watermark moved, or the leadership went."""
        self._again()

    def _again(self) -> None:
        if self._timer is None and not self.cancelled:
            self._timer = self._runtime.after(0, self.go_on)
