"""What goes, by age, size and log start."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from logkernel.config.topic import TopicSettings
from logkernel.contracts import CleanupPolicy, LogFacts
from logkernel.plugins.cleanup import delete
from logkernel.vocabulary import SegmentFacts

NOW = 1_000_000


def log(ages: str, *, size: int = 10, start: int = 0, watermark: int | None = None, last: int = 10) -> LogFacts:
    """A log whose segments hold ten records each, the last (active) one `last`; ages in ms from newest record."""
    parts = [int(age) for age in ages.split()]
    segments = tuple(
        SegmentFacts(
            base_offset=index * 10,
            next_offset=index * 10 + (last if index == len(parts) - 1 else 10),
            size_bytes=size if index < len(parts) - 1 or last else 0,
            largest_timestamp_ms=NOW - age,
            active=index == len(parts) - 1,
        )
        for index, age in enumerate(parts)
    )
    end = segments[-1].next_offset
    return LogFacts("t", 0, segments, start, end if watermark is None else watermark, NOW, TopicSettings())


def plan(facts: LogFacts, *, retention_ms: int = -1, retention_bytes: int = -1) -> list[int]:
    chosen = TopicSettings(retention_ms=retention_ms, retention_bytes=retention_bytes)
    return [drop.offset for drop in delete.Delete().plan(evolve(facts, settings=chosen))]


@pytest.mark.parametrize(
    ("facts", "settings", "expected"),
    [
        # age
        (log("90 80 70 5"), {"retention_ms": 60}, [30]),
        (log("90 80 70 5"), {"retention_ms": 70}, [20]),
        (log("90 80 70 5"), {"retention_ms": -1}, []),
        (log("90 5 90 5"), {"retention_ms": 60}, [10]),  # stops at the first that stays
        (log("5 90 90 90"), {"retention_ms": 60}, []),
        (log("90 80 70"), {"retention_ms": 60}, [30]),  # all: the shell rolls first
        (log("90 80 70", last=0), {"retention_ms": 60}, [20]),  # an empty active segment stays
        (log("70", last=0), {"retention_ms": 60}, []),
        (log("70"), {"retention_ms": 0}, [10]),
        (log("-50 90"), {"retention_ms": 60}, []),  # a timestamp in the future is not old
        # size: what is left must still hold as much
        (log("1 1 1 1"), {"retention_bytes": 25}, [10]),
        (log("1 1 1 1"), {"retention_bytes": 20}, [20]),
        (log("1 1 1 1"), {"retention_bytes": 40}, []),
        (log("1 1 1 1"), {"retention_bytes": 0}, [40]),
        (log("1 1 1 1", last=0), {"retention_bytes": 0}, [30]),
        # log start
        (log("1 1 1 1", start=20), {}, [20]),
        (log("1 1 1 1", start=19), {}, [10]),
        (log("1 1 1 1", start=40), {}, [30]),
        # never past the high watermark
        (log("90 90 90 90", watermark=29), {"retention_ms": 60}, [20]),
        (log("90 90 90 90", watermark=0), {"retention_ms": 60, "retention_bytes": 0}, []),
        # together: each rule sees what the one before has left
        (log("90 1 1 1", start=30), {"retention_ms": 60, "retention_bytes": 20}, [10, 20, 30]),
        (log("90 90 1 1"), {"retention_ms": 60, "retention_bytes": 20}, [20]),
    ],
)
def test_the_plan_drops_by_time_size_and_start(facts: LogFacts, settings: dict[str, int], expected: list[int]) -> None:
    assert plan(facts, **settings) == expected


def test_reasons_name_the_setting() -> None:
    facts = evolve(log("90 1 1 1", start=30), settings=evolve(TopicSettings(), retention_ms=60, retention_bytes=20))
    assert [drop.reason for drop in delete.Delete().plan(facts)] == [
        "older than retention.ms=60",
        "above retention.bytes=20",
        "below the log's start 30",
    ]


@given(
    ages=st.lists(st.integers(-20, 200), min_size=1, max_size=8),
    retention_ms=st.integers(-1, 200),
    retention_bytes=st.integers(-1, 100),
    start=st.integers(0, 80),
    watermark=st.integers(0, 80),
)
def test_whole_segments_oldest_first_below_the_watermark(
    ages: list[int], retention_ms: int, retention_bytes: int, start: int, watermark: int
) -> None:
    facts = log(" ".join(map(str, ages)), start=start, watermark=watermark)
    offsets = plan(facts, retention_ms=retention_ms, retention_bytes=retention_bytes)
    assert offsets == sorted(set(offsets))
    assert all(offset <= watermark for offset in offsets)
    assert set(offsets) <= {segment.next_offset for segment in facts.segments}
    left = [segment for segment in facts.segments if not offsets or segment.base_offset >= offsets[-1]]
    if offsets and retention_ms < 0 and start == 0:
        assert sum(segment.size_bytes for segment in left) >= retention_bytes


def test_the_plugin_answers_to_delete_only() -> None:
    assert isinstance(delete.logkernel_cleanup("delete"), CleanupPolicy)
    assert delete.logkernel_cleanup("compact") is None
    assert list(delete.logkernel_names()) == [("cleanup policy", "delete")]
