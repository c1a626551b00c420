"""What a broker logs while it is not announced in its cluster yet, and while it can't hand its partitions over."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hand_clock import HandClock

from logkernel.broker.governance.controlled_shutdown import ControlledShutdown
from logkernel.broker.governance.membership import ANNOUNCE_AGAIN_MS, LOG_AGAIN_MS, Membership
from logkernel.broker.runtime import Runtime
from logkernel.broker.turn import Turn
from logkernel.config.broker import BrokerConfig
from logkernel.errors import KafkaStorageError, NotController
from logkernel.kernel import Kernel
from logkernel.requests.replication import ControlledShutdownResponse, RemainingPartition

KERNEL = Kernel()


class Surroundings:
    """A runtime over a hand clock."""

    def __init__(self) -> None:
        self.clock = HandClock(1)
        config = BrokerConfig.load(None, ("node.id=1",), KERNEL.declarations())
        self.runtime = Runtime(config, KERNEL, clock=self.clock)

    def pass_ms(self, ms: int) -> None:
        end = self.clock.now_ms + ms
        while (due := self.runtime.timers.next_deadline()) is not None and due <= end:
            self.clock.now_ms = due
            self.runtime.timers.run(due)
        self.clock.now_ms = end


class Election:
    """Announces once the coordination answers."""

    def __init__(self) -> None:
        self.attempts = 0
        self.is_reached = False

    def begin(self, session: Any, wakeup: Any) -> None:
        pass

    def poll(self) -> None:
        pass

    def announce(self, value: Any) -> int:
        self.attempts += 1
        if not self.is_reached:
            raise KafkaStorageError("no answer")
        return 1


class Session:
    stale_ms = 1_000


def test_a_broker_that_is_not_announced_yet_says_so_twice_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """It said so every half second."""
    world, election = Surroundings(), Election()
    turn = cast("Turn", type("Turn", (), {"end": lambda self: None})())
    membership = Membership(
        world.runtime, turn, lambda: cast("Any", Session()), cast("Any", election), dict, lambda: None
    )
    membership.begin()
    membership.join()
    world.pass_ms(2 * LOG_AGAIN_MS + ANNOUNCE_AGAIN_MS)
    assert election.attempts == 2 * LOG_AGAIN_MS // ANNOUNCE_AGAIN_MS + 2
    assert [message for message in caplog.messages if "announced" in message] == [
        "not announced yet, and tried again: node_id=1 error=no answer"
    ] * 3
    election.is_reached = True
    world.pass_ms(ANNOUNCE_AGAIN_MS)
    assert world.runtime.timers.next_deadline() is None


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (None, "the controller gave no answer"),
        (ControlledShutdownResponse(NotController.code), "error 41 from the controller"),
        (
            ControlledShutdownResponse(0, [RemainingPartition("t", 3)]),
            "1 partitions have no other replica in sync (t-3)",
        ),
    ],
    ids=["no answer", "refused", "nobody else"],
)
def test_a_broker_that_cannot_hand_over_says_why(response: Any, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    """Without an answer it said that partitions were led here still, and named none."""
    world, done = Surroundings(), []
    asks = type("Channel", (), {"ask": lambda self, request, answered: answered(response)})()
    view = type("View", (), {"broker_epoch": 1})()
    leaving = ControlledShutdown(world.runtime, cast("Any", view), cast("Any", asks), lambda name: False)
    leaving.begin(lambda: done.append(True))
    world.pass_ms(60_000)
    assert done == [True]
    last = caplog.messages[-1]
    assert last == f"the broker stops without handing leadership over: node_id=1 reason={reason}"
