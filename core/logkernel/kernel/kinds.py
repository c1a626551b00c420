"""What a kernel provides by name: for each kind its hook, its contract, and the guard that the object gets."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from logkernel import contracts, hookspecs

if TYPE_CHECKING:
    from logkernel.contracts import (
        Assignor,
        CleanupPolicy,
        Codec,
        Connector,
        Coordination,
        ElectionStrategy,
        Interceptor,
        IsrPolicy,
        MetricsReporter,
        Partitioner,
        PasswordChecker,
        PlacementStrategy,
        Service,
        Transport,
    )
    from logkernel.guards.authorizer import GuardedAuthorizer
    from logkernel.guards.client_quota_callback import GuardedClientQuotaCallback
    from logkernel.guards.compaction_strategy import GuardedCompactionStrategy
    from logkernel.guards.fetch_filter import GuardedFetchFilter
    from logkernel.guards.produce_interceptor import GuardedProduceInterceptor
    from logkernel.guards.quota import GuardedQuota
    from logkernel.guards.task_assignor import GuardedTaskAssignor

P = TypeVar("P")
"""What the kernel hands out: the contract, or its guard where hosts use more of that."""


class Kind(Generic[P]):
    """A row of the table. `name` is the kind as `logkernel_names` gives it."""

    __slots__ = ("_guard", "contract", "hook", "name")

    def __init__(self, name: str, contract: type[Any], guard: str = "", *, hook: str = "") -> None:
        self.name = name
        self.contract = contract
        self.hook = hook or hookspecs.KINDS[name]
        self._guard = guard

    def guard(self) -> Callable[..., P] | None:
        """Return the guard's class, imported when its kind is asked for first; None if the plugin's own object is
        handed out."""
        if not self._guard:
            return None
        module, _, name = self._guard.rpartition(".")
        found: Callable[..., P] = getattr(import_module(f"logkernel.guards.{module}"), name)
        return found


ASSIGNOR: Final[Kind[Assignor]] = Kind("assignor", contracts.Assignor, "assignor.GuardedAssignor")
AUTHORIZER: Final[Kind[GuardedAuthorizer]] = Kind("authorizer", contracts.Authorizer, "authorizer.GuardedAuthorizer")
CLEANUP: Final[Kind[CleanupPolicy]] = Kind("cleanup policy", contracts.CleanupPolicy, "cleanup.GuardedPolicy")
CLIENT_QUOTA_CALLBACK: Final[Kind[GuardedClientQuotaCallback]] = Kind(
    "client quota callback", contracts.ClientQuotaCallback, "client_quota_callback.GuardedClientQuotaCallback"
)
CODEC: Final[Kind[Codec]] = Kind("codec", contracts.Codec)
COMPACTION_STRATEGY: Final[Kind[GuardedCompactionStrategy]] = Kind(
    "compaction strategy", contracts.CompactionStrategy, "compaction_strategy.GuardedCompactionStrategy"
)
CONNECTOR: Final[Kind[Connector]] = Kind("connector", contracts.Connector)
COORDINATION: Final[Kind[Coordination]] = Kind("coordination", contracts.Coordination)
ELECTION: Final[Kind[ElectionStrategy]] = Kind("election", contracts.ElectionStrategy, "election.GuardedElection")
FETCH_FILTER: Final[Kind[GuardedFetchFilter]] = Kind(
    "fetch filter", contracts.FetchFilter, "fetch_filter.GuardedFetchFilter"
)
INTERCEPTOR: Final[Kind[Interceptor]] = Kind("interceptor", contracts.Interceptor)
ISR: Final[Kind[IsrPolicy]] = Kind("isr", contracts.IsrPolicy, "isr.GuardedIsr")
METRICS_REPORTER: Final[Kind[MetricsReporter]] = Kind("metrics reporter", contracts.MetricsReporter)
PARTITIONER: Final[Kind[Partitioner]] = Kind("partitioner", contracts.Partitioner, "partitioner.GuardedPartitioner")
PASSWORD_CHECKER: Final[Kind[PasswordChecker]] = Kind(
    "password checker", contracts.PasswordChecker, "password_checker.GuardedPasswordChecker"
)
PLACEMENT: Final[Kind[PlacementStrategy]] = Kind("placement", contracts.PlacementStrategy, "placement.GuardedPlacement")
PRODUCE_INTERCEPTOR: Final[Kind[GuardedProduceInterceptor]] = Kind(
    "produce interceptor", contracts.ProduceInterceptor, "produce_interceptor.GuardedProduceInterceptor"
)
QUOTA: Final[Kind[GuardedQuota]] = Kind("quota", contracts.Quota, "quota.GuardedQuota")
SERVICE: Final[Kind[Service]] = Kind("service", contracts.Service, hook="logkernel_service")
TASK_ASSIGNOR: Final[Kind[GuardedTaskAssignor]] = Kind(
    "task assignor", contracts.TaskAssignor, "task_assignor.GuardedTaskAssignor"
)
TRANSPORT: Final[Kind[Transport]] = Kind("transport", contracts.Transport)
