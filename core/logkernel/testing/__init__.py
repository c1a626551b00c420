"""Tools for tests of plugins, without broker, socket or clock.

ServiceHarness    runs the machines of a service: requests in, records appended and replayed, timers by virtual time
SentRequest       a request that a machine sent to the broker, for the test to answer
ClusterStub       the cluster that a tested service sees
history           the judge of what clients recorded: `logkernel.testing.history`
simulate          simulated clusters under faults, with an election of yours or the built-in ones
"""

from __future__ import annotations

from logkernel.testing.cluster_stub import ClusterStub
from logkernel.testing.service_harness import Reply, SentRequest, ServiceHarness
from logkernel.testing.simulation.simulate import SimulationFailed, SimulationReport, simulate

__all__ = [
    "ClusterStub",
    "Reply",
    "SentRequest",
    "ServiceHarness",
    "SimulationFailed",
    "SimulationReport",
    "simulate",
]
