"""The protocol of replication under a seed: pure machines over list-logs, a controller, a network that fails.

    client ──▶ Leader ◀── fetch ── Follower          one partition; virtual time; one queue of events
                 │ proposal    ▲ order
                 ▼             │
              controller: elections, judge_proposal, over the cluster's image

Everything that decides is what a broker runs: `partition.leader`, `partition.follower`, `partition.replica_fetch`,
`controller.elections`, `controller.alter_partition`. This room is only the world around them: who is alive, which
message arrives when, and what must hold after each event.

    timeline      virtual time, the queue of events, the trace, the counters of rare states
    messages      what crosses the network
    network       connections: order, delay, loss, cuts
    broker        one replica: its log and its machine, carried out in the order of the effects
    controller    sessions, elections, proposals, orders
    clients       idempotent producers
    faults        what goes wrong, and when
    promises      what must hold after every event
    history       one run: all of these together, then the healing

    history = Protocol(seed).run()
    history.trace         the same for the same seed
    history.rare          how often each rare state was seen

Raises Violation, which names the seed and the last events.
"""

from __future__ import annotations

from logkernel.testing.simulation.protocol.history import Protocol
from logkernel.testing.simulation.protocol.timeline import RARE, Violation

__all__ = ["RARE", "Protocol", "Violation"]
