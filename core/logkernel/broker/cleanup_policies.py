"""The cleanup policies of plugins, and the facts that they plan by: what the cleaner and retention have in common."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from logkernel.broker.by_settings import BySettings
from logkernel.broker.runtime import MAX_WORKERS, Runtime
from logkernel.config.topic import TopicSettings
from logkernel.contracts import CleanupPolicy, DropBefore, LogFacts, Rewrite
from logkernel.errors import PluginError, PolicyViolation
from logkernel.vocabulary import CleanupResult, LogSize

if TYPE_CHECKING:
    from logkernel.broker.replicas.replica import Replica

log = logging.getLogger("logkernel.cleaner")

MAX_TABLE_BYTES = 2**31 - 1


class CleanupPolicies:
    """Calls the policies, and reports their results."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._known = BySettings(runtime.kernel.cleanup)
        self._missing: set[str] = set()

    def get(self, name: str, settings: TopicSettings) -> CleanupPolicy | None:
        """The policy's object, kept; None with one warning where no plugin provides it."""
        try:
            return self._known.get(name, settings.plugin)
        except PluginError as error:
            if name not in self._missing:
                self._missing.add(name)
                log.warning("cleanup policy not available, nothing is cleaned: %s", error)
            return None

    @property
    def cleaner_threads(self) -> int:
        return min(int(self._runtime.config.get("log.cleaner.threads")), MAX_WORKERS)

    def facts(self, replica: Replica, *, asked: bool = False) -> LogFacts:
        get = self._runtime.config.get
        return LogFacts(
            topic=replica.name.topic,
            partition=replica.name.partition,
            segments=replica.log.facts(),
            log_start_offset=replica.log.start_offset,
            high_watermark=replica.high_watermark,
            wall_ms=self._runtime.clock.wall_ms(),
            settings=replica.settings,
            last_stable_offset=replica.last_stable_offset(),
            clean_offset=replica.log.clean_offset,
            table_bytes=min(
                int(get("log.cleaner.dedupe.buffer.size")) // max(self.cleaner_threads, 1), MAX_TABLE_BYTES
            ),
            table_load_factor=float(get("log.cleaner.io.buffer.load.factor")),
            seed=self._runtime.random.bytes(16),
            asked=asked,
            strategy=lambda name: self._runtime.kernel.compaction_strategy(name, replica.settings.plugin),
        )

    def plans(self, replica: Replica, *, asked: bool = False) -> list[tuple[str, DropBefore | Rewrite]]:
        """(policy, step) of every policy of `cleanup.policy`, in its order."""
        found: list[tuple[str, DropBefore | Rewrite]] = []
        for name in replica.settings.cleanup_policy:
            policy = self.get(name, replica.settings)
            if policy is not None:
                found += [(name, step) for step in policy.plan(self.facts(replica, asked=asked))]
        return found

    def tell_done(self, replica: Replica, policy: str) -> None:
        """Tell plugins that a log was cleaned."""
        self._runtime.kernel.tell(
            "logkernel_cleanup_done",
            topic=replica.name.topic,
            partition=replica.name.partition,
            policy=policy,
            log_start_offset=replica.log.start_offset,
        )


def size_of(replica: Replica) -> LogSize:
    """Each offset counts as a record."""
    disk_log = replica.log
    return LogSize(disk_log.segment_count, disk_log.size_bytes, disk_log.end_offset - disk_log.first_base_offset)


def result_of(
    replica: Replica, policy: str, before: LogSize, after: LogSize, clean_offset: int | None = None
) -> CleanupResult:
    """What a policy did to a log."""
    return CleanupResult(*replica.name, policy, before, after, replica.log.start_offset, clean_offset)


def not_meant(topic: str, policies: Sequence[str], lacks: str, remedy: Sequence[str]) -> PolicyViolation:
    """The error of Kafka's DeleteRecords where cleanup.policy has no delete."""
    return PolicyViolation(
        f"{topic} has cleanup.policy={','.join(policies)}, which {lacks};"
        f" `logkernel config set topic {topic} cleanup.policy={','.join(remedy)}` changes that"
    )
