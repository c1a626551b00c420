"""Contract kits: one suite of tests for each kind of plugins, which a plugin's author subclasses.

    from logkernel.testing.contracts import PartitionerContract

    class TestMine(PartitionerContract):
        name = "mine"

They need pytest and hypothesis: `pip install 'logkernel[kits]'`. Each is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logkernel.testing.contracts.assignor import AssignorContract as AssignorContract
    from logkernel.testing.contracts.authorizer import AuthorizerContract as AuthorizerContract
    from logkernel.testing.contracts.cleanup import CleanupContract as CleanupContract
    from logkernel.testing.contracts.client_quota_callback import (
        ClientQuotaCallbackContract as ClientQuotaCallbackContract,
    )
    from logkernel.testing.contracts.codec import CodecContract as CodecContract
    from logkernel.testing.contracts.compaction_strategy import CompactionStrategyContract as CompactionStrategyContract
    from logkernel.testing.contracts.coordination import CoordinationContract as CoordinationContract
    from logkernel.testing.contracts.decoder import DecoderContract as DecoderContract
    from logkernel.testing.contracts.election import ElectionContract as ElectionContract
    from logkernel.testing.contracts.fetch_filter import FetchFilterContract as FetchFilterContract
    from logkernel.testing.contracts.interceptor import InterceptorContract as InterceptorContract
    from logkernel.testing.contracts.isr import IsrContract as IsrContract
    from logkernel.testing.contracts.kit import ContractBroken as ContractBroken
    from logkernel.testing.contracts.kit import Kit as Kit
    from logkernel.testing.contracts.metrics_reporter import MetricsReporterContract as MetricsReporterContract
    from logkernel.testing.contracts.partitioner import PartitionerContract as PartitionerContract
    from logkernel.testing.contracts.password_checker import PasswordCheckerContract as PasswordCheckerContract
    from logkernel.testing.contracts.placement import PlacementContract as PlacementContract
    from logkernel.testing.contracts.produce_interceptor import ProduceInterceptorContract as ProduceInterceptorContract
    from logkernel.testing.contracts.quota import QuotaContract as QuotaContract
    from logkernel.testing.contracts.service import ServiceContract as ServiceContract
    from logkernel.testing.contracts.shared_coordination import SharedCoordinationContract as SharedCoordinationContract
    from logkernel.testing.contracts.task_assignor import TaskAssignorContract as TaskAssignorContract
    from logkernel.testing.contracts.transport import TransportContract as TransportContract

_HOMES = {
    "AssignorContract": "assignor",
    "AuthorizerContract": "authorizer",
    "CleanupContract": "cleanup",
    "ClientQuotaCallbackContract": "client_quota_callback",
    "CodecContract": "codec",
    "CompactionStrategyContract": "compaction_strategy",
    "ContractBroken": "kit",
    "CoordinationContract": "coordination",
    "DecoderContract": "decoder",
    "ElectionContract": "election",
    "FetchFilterContract": "fetch_filter",
    "InterceptorContract": "interceptor",
    "IsrContract": "isr",
    "Kit": "kit",
    "MetricsReporterContract": "metrics_reporter",
    "PartitionerContract": "partitioner",
    "PasswordCheckerContract": "password_checker",
    "PlacementContract": "placement",
    "ProduceInterceptorContract": "produce_interceptor",
    "QuotaContract": "quota",
    "ServiceContract": "service",
    "SharedCoordinationContract": "shared_coordination",
    "TaskAssignorContract": "task_assignor",
    "TransportContract": "transport",
}
__all__ = [
    "AssignorContract",
    "AuthorizerContract",
    "CleanupContract",
    "ClientQuotaCallbackContract",
    "CodecContract",
    "CompactionStrategyContract",
    "ContractBroken",
    "CoordinationContract",
    "DecoderContract",
    "ElectionContract",
    "FetchFilterContract",
    "InterceptorContract",
    "IsrContract",
    "Kit",
    "MetricsReporterContract",
    "PartitionerContract",
    "PasswordCheckerContract",
    "PlacementContract",
    "ProduceInterceptorContract",
    "QuotaContract",
    "ServiceContract",
    "SharedCoordinationContract",
    "TaskAssignorContract",
    "TransportContract",
    "kits",
]


def kits() -> dict[str, type[Kit[Any]]]:
    """Kind of plugins, as `logkernel_names` gives it → its kit."""
    found = [__getattr__(name) for name in _HOMES if name.endswith("Contract")]
    return {kit.kind: kit for kit in sorted(found, key=lambda kit: str(kit.kind))}


def __dir__() -> list[str]:
    """The public names, also those that are imported on first use."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import on first use. Raises `ImportError` where pytest or hypothesis is missing."""
    if name in _HOMES:
        lacking = [needed for needed in ("pytest", "hypothesis") if find_spec(needed) is None]
        if lacking:
            raise ImportError(f"contract kits need {' and '.join(lacking)}; pip install 'logkernel[kits]'")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
