"""Tools for tests: of programs that talk to Kafka, and of plugins.

Kafka             a broker that real clients reach, in this process, with its records, requests, time and faults in
                  the test's hands; the pytest plugin (`testing.pytest_plugin`) has it as fixtures
KafkaCluster      several such brokers, whose leaders move and die
LogkernelContainer  the same with the calls of testcontainers' KafkaContainer
SchemaRegistry    a schema registry that the serializers of Kafka's clients reach
containing        matches a JSON object that has more fields
ServiceHarness    runs the machines of a service: requests in, records appended and replayed, timers by virtual time
SentRequest       a request that a machine sent to the broker, for the test to answer
ClusterStub       the cluster that a tested service sees
history           the judge of what clients recorded: `logkernel.testing.history`
simulate          simulated clusters under faults, with an election of yours or the built-in ones
contracts         a suite of tests for each kind of plugins: `logkernel.testing.contracts`

Each is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logkernel.testing.cluster_stub import ClusterStub as ClusterStub
    from logkernel.testing.container import LogkernelContainer as LogkernelContainer
    from logkernel.testing.kafka.cluster import KafkaCluster as KafkaCluster
    from logkernel.testing.kafka.kafka import Kafka as Kafka
    from logkernel.testing.kafka.matching import containing as containing
    from logkernel.testing.schema_registry.errors import RegistryError as RegistryError
    from logkernel.testing.schema_registry.server import SchemaRegistry as SchemaRegistry
    from logkernel.testing.service_harness import Reply as Reply
    from logkernel.testing.service_harness import SentRequest as SentRequest
    from logkernel.testing.service_harness import ServiceHarness as ServiceHarness
    from logkernel.testing.simulation.simulate import SimulationFailed as SimulationFailed
    from logkernel.testing.simulation.simulate import SimulationReport as SimulationReport
    from logkernel.testing.simulation.simulate import simulate as simulate

_HOMES = {
    "ClusterStub": "cluster_stub",
    "Kafka": "kafka.kafka",
    "KafkaCluster": "kafka.cluster",
    "LogkernelContainer": "container",
    "RegistryError": "schema_registry.errors",
    "Reply": "service_harness",
    "SchemaRegistry": "schema_registry.server",
    "SentRequest": "service_harness",
    "ServiceHarness": "service_harness",
    "SimulationFailed": "simulation.simulate",
    "SimulationReport": "simulation.simulate",
    "containing": "kafka.matching",
    "simulate": "simulation.simulate",
}
__all__ = [
    "ClusterStub",
    "Kafka",
    "KafkaCluster",
    "LogkernelContainer",
    "RegistryError",
    "Reply",
    "SchemaRegistry",
    "SentRequest",
    "ServiceHarness",
    "SimulationFailed",
    "SimulationReport",
    "containing",
    "simulate",
]


def __dir__() -> list[str]:
    """The public names, also those that are imported on first use."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import on first use: a suite that only installs the pytest plugin pays for none of it."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"logkernel.testing.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'logkernel.testing' has no attribute {name!r}")
