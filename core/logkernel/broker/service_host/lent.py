"""What the broker lends to the services that it hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from logkernel.broker.cluster_view import LiveClusterView
from logkernel.broker.governance.governance import Governance
from logkernel.broker.replicas.manager import ReplicaManager
from logkernel.broker.runtime import Runtime
from logkernel.broker.turn import Turn
from logkernel.contracts import Answer, RequestContext

LOAD_TURN_MS = 10
"""Of loading shards; after so long, requests come first."""


class Lent(NamedTuple):
    """To every service alike."""

    runtime: Runtime
    turn: Turn
    replicas: ReplicaManager
    cluster: LiveClusterView
    submit: Callable[[Any, RequestContext, Answer], None]
    """Put a request to the broker, as a client would."""
    governance: Governance
    """Creates the topics of services, and asks other brokers for shards that they lead."""
