"""What the core's request handlers may use of the broker that they answer for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from logkernel.broker.cluster_view import LiveClusterView
from logkernel.broker.fetch_sessions import FetchSessions
from logkernel.broker.governance.governance import Governance
from logkernel.broker.log_manager import LogManager
from logkernel.broker.metadata_manager import MetadataManager
from logkernel.broker.moves import Moves
from logkernel.broker.purgatory import RequestPurgatory
from logkernel.broker.quotas.enforcement import Enforcement
from logkernel.broker.replicas.manager import ReplicaManager
from logkernel.broker.runtime import Runtime
from logkernel.broker.service_host.registry import ServiceRegistry
from logkernel.contracts import Answer, RequestContext

if TYPE_CHECKING:
    from logkernel.broker.authorization.asking import Asking, Authorization
    from logkernel.broker.delegation_tokens import DelegationTokens
    from logkernel.broker.verifications import Verifications

R = TypeVar("R")


class HandlerContext:
    """The parts of the broker."""

    def __init__(
        self,
        *,
        runtime: Runtime,
        purgatory: RequestPurgatory,
        metadata: MetadataManager,
        replicas: ReplicaManager,
        cluster: LiveClusterView,
        logs: LogManager,
        moves: Moves,
        services: ServiceRegistry,
        governance: Governance,
        quotas: Enforcement,
        tokens: Callable[[], DelegationTokens],
        dispatch: Callable[[Any, RequestContext, Answer], None],
        serves: Callable[[], frozenset[str]],
        authorization: Authorization | None = None,
    ) -> None:
        """`dispatch` has a request answered within this turn; `serves` names the requests that are answered here. Both
        lead to the router, which is made of this context."""
        self.runtime = runtime
        self.purgatory = purgatory
        self.metadata = metadata
        self.replicas = replicas
        self.cluster = cluster
        self.logs = logs
        self.moves = moves
        self.services = services
        self.governance = governance
        self.quotas = quotas
        self._tokens = tokens
        self.authorization = authorization
        """None: everybody may do everything."""
        self.commit = governance.commit
        self.dispatch = dispatch
        self._serves = serves
        get = runtime.config.get
        self.fetch_max_bytes = int(get("fetch.max.bytes"))
        slots = int(get("max.incremental.fetch.session.cache.slots"))
        self.sessions = FetchSessions(slots, int.from_bytes(runtime.random.bytes(4), "big"))

    def asking(self, context: RequestContext, request: str) -> Asking | None:
        """For what only a handler knows to ask of the authorizer; None: the sender may do everything.
        Raises `UnknownServerError` if the authorizer fails."""
        if self.authorization is None or context.internal:
            return None
        return self.authorization.asking(context, request)

    @property
    def tokens(self) -> DelegationTokens:
        return self._tokens()

    @cached_property
    def verifications(self) -> Verifications:
        """Transactional writes that wait for their coordinator; made when the first one comes."""
        from logkernel.broker.verifications import Verifications

        return Verifications(self.runtime, self.replicas, self._serves, self.dispatch)


Handler = Callable[[HandlerContext, Any, RequestContext, Answer], None]
"""Answers one kind of request, now or later, exactly once. What it raises is answered as a refusal of the whole."""
Handlers = Mapping[str, Handler]


def on(kind: type[R], handler: Callable[[HandlerContext, R, RequestContext, Answer], None]) -> tuple[str, Handler]:
    """A row of a module's `HANDLERS`: the request class's name, and the function that answers it."""
    return kind.__name__, handler
