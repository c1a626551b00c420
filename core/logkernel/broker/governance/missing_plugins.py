"""Finds topics whose settings name a plugin that is not installed any more: a start logs them, `status` shows them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Final

from logkernel.attrs_lite import frozen
from logkernel.broker.replicas.manager import AS_IT_CAME
from logkernel.config.topic import TopicSettings
from logkernel.kernel import Kernel

log = logging.getLogger("logkernel.kernel")

CONSEQUENCES: Final[Mapping[str, str]] = {
    "codec": "batches stay as their producers made them meanwhile",
    "cleanup policy": "it cleans nothing meanwhile",
    "isr": "replica.lag.time.max.ms decides who is in sync meanwhile",
    "election": "they get no new leader meanwhile",
    "fetch filter": "consumers get nothing of them meanwhile",
    "quota": "clients' requests for them fail meanwhile",
    "produce interceptor": "writes to them fail meanwhile",
    "partitioner": "records without a partition are refused meanwhile",
    "placement": "they get no more partitions meanwhile",
    "compaction strategy": "they are not compacted meanwhile",
}
"""Kind of plugin → what its absence means for a topic."""
NAMED = 10
"""This many topics are named; the others are counted."""


@frozen
class Missing:
    """A plugin that topics name and nobody provides."""

    kind: str
    name: str
    topics: tuple[str, ...]
    """Sorted; at most `NAMED`."""
    more: int
    """How many topics it has beside these."""

    @property
    def consequence(self) -> str:
        return CONSEQUENCES[self.kind]


def find_missing(kernel: Kernel, settings: Mapping[str, TopicSettings]) -> list[Missing]:
    """Return each missing plugin that `settings` (topic → settings) name, sorted by kind and name.

    Raises `PluginError` where a plugin can't say what it provides."""
    topics: dict[tuple[str, str], list[str]] = {}
    for topic, each in settings.items():
        for row in _wanted(each):
            topics.setdefault(row, []).append(topic)
    provided = {row for declared in kernel.declarations() for row in declared.names} if topics else set()
    found = []
    for kind, name in sorted(topics.keys() - provided):
        chosen = sorted(topics[kind, name])
        found.append(Missing(kind, name, tuple(chosen[:NAMED]), max(0, len(chosen) - NAMED)))
    return found


def tell_missing(kernel: Kernel, settings: Mapping[str, TopicSettings]) -> None:
    """Log one warning for each missing plugin that `settings` (topic → settings) name."""
    for each in find_missing(kernel, settings):
        log.warning(
            "no plugin provides the %s %r, which is set for topics %s%s: %s; install the plugin, or change the setting",
            each.kind, each.name, ", ".join(each.topics), f" and {each.more} more" if each.more else "",
            each.consequence,
        )  # fmt: skip


def _wanted(settings: TopicSettings) -> Iterator[tuple[str, str]]:
    """(kind, name) of the plugins that a topic needs."""
    yield "election", settings.election
    yield "isr", settings.isr
    yield "partitioner", settings.partitioner
    yield "placement", settings.placement
    if settings.compression_type not in AS_IT_CAME:
        yield "codec", settings.compression_type
    for name in settings.cleanup_policy:
        yield "cleanup policy", name
    strategy = settings.plugin.get("compaction.strategy")
    if strategy is not None and "compact" in settings.cleanup_policy:
        yield "compaction strategy", strategy
    for kind, names in (
        ("produce interceptor", settings.produce_interceptors),
        ("quota", settings.quotas),
        ("fetch filter", settings.fetch_filters),
    ):
        for name in names:
            yield kind, name
