"""The protocol of replication under a seed: pure machines over list-logs, a controller, a network that fails.

    client ──▶ Leader ◀── fetch ── Follower          one partition; virtual time; one queue of events
                 │ proposal    ▲ order
                 ▼             │
              controller: elections, judge_proposal, over the cluster's image

Everything that decides is what a broker runs: `partition.leader`, `partition.follower`, `partition.replica_fetch`,
`controller.election_rules`, `controller.alter_partition`. This room is only the world around them: who is alive, which
message arrives when, and what must hold after each event.

    schedule      what a seed draws: the shape of the world, and its faults, as data
    timeline      virtual time, the queue of events, the trace, the counters of rare states
    network       connections: order, delay, loss, cuts
    messages      what crosses the network
    coordination  the cluster's own store, and what is lost between it and a broker
    replica       a log and the machine of its role, carried out in the order of the effects
    broker        a process, its session, the orders that it takes
    controller    a broker's part in being the controller
    clients       idempotent producers
    faults        carries the schedule out
    promises      what must hold after every event
    history       one run: all of these together, then the healing

    history = Protocol(seed, strategy).run()
    history.timeline.trace_hash()     the same for the same seed
    history.rare                      how often each rare state was seen

Raises Violation, which names the seed and the last events.
"""

from __future__ import annotations

from logkernel.testing.simulation.protocol.history import Protocol
from logkernel.testing.simulation.protocol.timeline import Violation

__all__ = ["Protocol", "Violation"]
