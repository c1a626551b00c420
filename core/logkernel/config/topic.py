"""A topic's settings as plain attributes: Kafka's names with `_` for `.` and `-`, Kafka 4.x defaults.

This is what the hot path reads; `definitions` describes the same settings for people and checks
that the two agree.
"""

from __future__ import annotations

from typing import Any

from logkernel.attrs_lite import field, frozen

MAX_LONG = 2**63 - 1


@frozen
class TopicSettings:
    """Effective settings of one topic, after broker defaults and overrides are merged."""

    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = MAX_LONG
    flush_ms: int = MAX_LONG
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = MAX_LONG
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = MAX_LONG
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False
    # logkernel's own
    partitioner: str = "default"
    election: str = "clean"
    isr: str = "time"
    placement: str = "kafka"
    produce_interceptors: tuple[str, ...] = ()
    fetch_filters: tuple[str, ...] = ()
    quotas: tuple[str, ...] = ()
    plugin: dict[str, Any] = field(factory=dict)
    """Settings that plugins own, by their full names, typed; those of a missing plugin are text."""
