"""Contracts of the objects that plugins provide, and of the objects that plugins are given.

A hook (see `hookspecs`) is called when its object is set up: for a topic, partition, listener, broker or producer, and
for an ISR policy again when the topic's settings change; never per record or batch. The object that it returns is then
called directly. An object keeps its own state.

Each kind has a file of its own, which is imported when one of its names is first asked for: take the names from here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logkernel.contracts.assignor import Assignor as Assignor
    from logkernel.contracts.assignor import GroupFacts as GroupFacts
    from logkernel.contracts.assignor import Subscriber as Subscriber
    from logkernel.contracts.authorizer import Authorizer as Authorizer
    from logkernel.contracts.cleanup import BatchRun as BatchRun
    from logkernel.contracts.cleanup import CleanupPolicy as CleanupPolicy
    from logkernel.contracts.cleanup import DropBefore as DropBefore
    from logkernel.contracts.cleanup import KeepRule as KeepRule
    from logkernel.contracts.cleanup import LogFacts as LogFacts
    from logkernel.contracts.cleanup import Rewrite as Rewrite
    from logkernel.contracts.cleanup import RunRule as RunRule
    from logkernel.contracts.client_quota_callback import QUOTA_TYPES as QUOTA_TYPES
    from logkernel.contracts.client_quota_callback import ClientLimit as ClientLimit
    from logkernel.contracts.client_quota_callback import ClientQuotaCallback as ClientQuotaCallback
    from logkernel.contracts.client_quota_callback import ClusterFacts as ClusterFacts
    from logkernel.contracts.client_quota_callback import ClusterQuotaCallback as ClusterQuotaCallback
    from logkernel.contracts.client_quota_callback import LedPartition as LedPartition
    from logkernel.contracts.client_quota_callback import QuotaEntity as QuotaEntity
    from logkernel.contracts.codec import Codec as Codec
    from logkernel.contracts.common import Answer as Answer
    from logkernel.contracts.common import Buffer as Buffer
    from logkernel.contracts.common import RequestContext as RequestContext
    from logkernel.contracts.common import Settings as Settings
    from logkernel.contracts.compaction_strategy import BatchView as BatchView
    from logkernel.contracts.compaction_strategy import CompactionStrategy as CompactionStrategy
    from logkernel.contracts.compaction_strategy import no_strategy as no_strategy
    from logkernel.contracts.connector import Connector as Connector
    from logkernel.contracts.connector import Pipeline as Pipeline
    from logkernel.contracts.coordination import Coordination as Coordination
    from logkernel.contracts.coordination import MetadataChange as MetadataChange
    from logkernel.contracts.coordination import StateLog as StateLog
    from logkernel.contracts.decoder import RecordDecoder as RecordDecoder
    from logkernel.contracts.election import Candidates as Candidates
    from logkernel.contracts.election import Elected as Elected
    from logkernel.contracts.election import ElectionStrategy as ElectionStrategy
    from logkernel.contracts.fetch_filter import FetchFilter as FetchFilter
    from logkernel.contracts.fetch_filter import ReadFacts as ReadFacts
    from logkernel.contracts.interceptor import Interceptor as Interceptor
    from logkernel.contracts.isr import FollowerFacts as FollowerFacts
    from logkernel.contracts.isr import IsrPolicy as IsrPolicy
    from logkernel.contracts.metrics_reporter import MetricsReporter as MetricsReporter
    from logkernel.contracts.partitioner import Partitioner as Partitioner
    from logkernel.contracts.password_checker import Login as Login
    from logkernel.contracts.password_checker import PasswordChecker as PasswordChecker
    from logkernel.contracts.placement import PlacementFacts as PlacementFacts
    from logkernel.contracts.placement import PlacementStrategy as PlacementStrategy
    from logkernel.contracts.produce_interceptor import ProduceInterceptor as ProduceInterceptor
    from logkernel.contracts.produce_interceptor import Refusal as Refusal
    from logkernel.contracts.produce_interceptor import WriteFacts as WriteFacts
    from logkernel.contracts.quota import Quota as Quota
    from logkernel.contracts.quota import Usage as Usage
    from logkernel.contracts.security import ListenerSecurity as ListenerSecurity
    from logkernel.contracts.security import ServerMechanism as ServerMechanism
    from logkernel.contracts.service import BulkMachine as BulkMachine
    from logkernel.contracts.service import ClusterView as ClusterView
    from logkernel.contracts.service import ColumnarMachine as ColumnarMachine
    from logkernel.contracts.service import ConnectionMachine as ConnectionMachine
    from logkernel.contracts.service import Decision as Decision
    from logkernel.contracts.service import Extension as Extension
    from logkernel.contracts.service import Service as Service
    from logkernel.contracts.service import ServiceDeclaration as ServiceDeclaration
    from logkernel.contracts.service import ServiceMachine as ServiceMachine
    from logkernel.contracts.service import ServiceTopic as ServiceTopic
    from logkernel.contracts.service import TransactionalMachine as TransactionalMachine
    from logkernel.contracts.shared_coordination import SessionEvents as SessionEvents
    from logkernel.contracts.shared_coordination import SettingsAnswered as SettingsAnswered
    from logkernel.contracts.shared_coordination import SharedCoordination as SharedCoordination
    from logkernel.contracts.task_assignor import MemberTasks as MemberTasks
    from logkernel.contracts.task_assignor import Task as Task
    from logkernel.contracts.task_assignor import TaskAssignor as TaskAssignor
    from logkernel.contracts.task_assignor import TaskFacts as TaskFacts
    from logkernel.contracts.task_assignor import TaskMember as TaskMember
    from logkernel.contracts.transport import ADMITTED as ADMITTED
    from logkernel.contracts.transport import Admission as Admission
    from logkernel.contracts.transport import BrokerDoor as BrokerDoor
    from logkernel.contracts.transport import Failed as Failed
    from logkernel.contracts.transport import Listener as Listener
    from logkernel.contracts.transport import PeerTransport as PeerTransport
    from logkernel.contracts.transport import Transport as Transport

_HOMES = {
    "ADMITTED": "transport",
    "Admission": "transport",
    "Answer": "common",
    "Assignor": "assignor",
    "Authorizer": "authorizer",
    "BatchRun": "cleanup",
    "BatchView": "compaction_strategy",
    "BrokerDoor": "transport",
    "Buffer": "common",
    "BulkMachine": "service",
    "Candidates": "election",
    "CleanupPolicy": "cleanup",
    "ClientLimit": "client_quota_callback",
    "ClientQuotaCallback": "client_quota_callback",
    "ClusterFacts": "client_quota_callback",
    "ClusterQuotaCallback": "client_quota_callback",
    "ClusterView": "service",
    "Codec": "codec",
    "ColumnarMachine": "service",
    "CompactionStrategy": "compaction_strategy",
    "ConnectionMachine": "service",
    "Connector": "connector",
    "Coordination": "coordination",
    "Decision": "service",
    "DropBefore": "cleanup",
    "Elected": "election",
    "ElectionStrategy": "election",
    "Extension": "service",
    "Failed": "transport",
    "FetchFilter": "fetch_filter",
    "FollowerFacts": "isr",
    "GroupFacts": "assignor",
    "Interceptor": "interceptor",
    "IsrPolicy": "isr",
    "KeepRule": "cleanup",
    "LedPartition": "client_quota_callback",
    "Listener": "transport",
    "ListenerSecurity": "security",
    "LogFacts": "cleanup",
    "Login": "password_checker",
    "MemberTasks": "task_assignor",
    "MetadataChange": "coordination",
    "MetricsReporter": "metrics_reporter",
    "Partitioner": "partitioner",
    "PasswordChecker": "password_checker",
    "PeerTransport": "transport",
    "Pipeline": "connector",
    "PlacementFacts": "placement",
    "PlacementStrategy": "placement",
    "ProduceInterceptor": "produce_interceptor",
    "QUOTA_TYPES": "client_quota_callback",
    "Quota": "quota",
    "QuotaEntity": "client_quota_callback",
    "ReadFacts": "fetch_filter",
    "RecordDecoder": "decoder",
    "Refusal": "produce_interceptor",
    "RequestContext": "common",
    "Rewrite": "cleanup",
    "RunRule": "cleanup",
    "ServerMechanism": "security",
    "Service": "service",
    "ServiceDeclaration": "service",
    "ServiceMachine": "service",
    "ServiceTopic": "service",
    "SessionEvents": "shared_coordination",
    "Settings": "common",
    "SettingsAnswered": "shared_coordination",
    "SharedCoordination": "shared_coordination",
    "StateLog": "coordination",
    "Subscriber": "assignor",
    "Task": "task_assignor",
    "TaskAssignor": "task_assignor",
    "TaskFacts": "task_assignor",
    "TaskMember": "task_assignor",
    "TransactionalMachine": "service",
    "Transport": "transport",
    "Usage": "quota",
    "WriteFacts": "produce_interceptor",
    "no_strategy": "compaction_strategy",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Import on first use: no start needs all kinds at once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    """The public names, also those that are imported on first use."""
    return sorted({*globals(), *_HOMES})
