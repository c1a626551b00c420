"""Reports topics whose settings name a plugin that is not installed any more, at start rather than at first use."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

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
}
"""Kind of plugin → what its absence means for a topic."""
NAMED = 10
"""A warning names this many topics; it counts the others."""


def tell_missing(kernel: Kernel, settings: Mapping[str, TopicSettings]) -> None:
    """Log one warning for each missing plugin that `settings` (topic → settings) name."""
    topics: dict[tuple[str, str], list[str]] = {}
    for topic, each in settings.items():
        wanted = [("election", each.election), ("isr", each.isr), ("partitioner", each.partitioner)]
        if each.compression_type not in AS_IT_CAME:
            wanted.append(("codec", each.compression_type))
        wanted += [("cleanup policy", name) for name in each.cleanup_policy]
        wanted += [("produce interceptor", name) for name in each.produce_interceptors]
        wanted += [("quota", name) for name in each.quotas]
        wanted += [("fetch filter", name) for name in each.fetch_filters]
        for row in wanted:
            topics.setdefault(row, []).append(topic)
    provided = set(kernel.all_names()) if topics else set()
    for kind, name in sorted(topics.keys() - provided):
        found = sorted(topics[kind, name])
        more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
        log.warning(
            "no plugin provides the %s %r, which is set for topics %s%s: %s; install the plugin, or change the setting",
            *(kind, name, ", ".join(found[:NAMED]), more, CONSEQUENCES[kind]),
        )
