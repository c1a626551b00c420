"""What crosses the network, beside what the machines and the controller's orders make themselves.

from          kind            body                                    to
follower      fetch           (asked, broker epoch)                   leader
leader        records         (asked, batches, watermark, log start)  follower
leader        diverging       (asked, epoch and its end)              follower
leader        error           (asked, (log start, log end) | None)    follower
leader        proposal        (broker epoch, proposal)                controller
controller    accepted        (proposal, partition epoch)             leader
controller    refused         (proposal, for good?)                   leader
controller    metadata|order  a request of `controller.orders`        every broker
broker        told            (request, response)                     controller
client        produce         write                                   leader
leader        outcome         (write, error code, offset)             client
"""

from __future__ import annotations

from typing import Final

from logkernel.attrs_lite import field, mutable

TOPIC: Final = "t"
INCARNATION: Final = "incarnation"
"""The kind of a fact: node → the broker epoch of its last start that elections counted with."""
NOT_LEADER: Final = -1
"""The code of an outcome that names no error of a machine: ask elsewhere."""


@mutable
class ClientBatch:
    """A batch that a simulated client sends. `number` is its content, the same in each retry."""

    number: int
    client: int
    producer: int
    epoch: int
    sequence: int
    count: int


@mutable
class Standing:
    """What a broker knows of its place in the cluster."""

    node: int
    broker_epoch: int = -1
    controller_id: int = 0
    controller_epoch: int = -1
    live: frozenset[int] = frozenset()
    skew_ms: int = 0
    """How far its monotonic clock is ahead."""
    min_isr: int = 1
    others: list[int] = field(factory=list)
