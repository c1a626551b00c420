"""When a log is compacted, from where to where, and by which rule; pure."""

from __future__ import annotations

import pytest
from attrs import evolve

from logkernel.config.topic import TopicSettings
from logkernel.contracts import CleanupPolicy, DropBefore, KeepRule, LogFacts, Rewrite
from logkernel.errors import InvalidConfig, PluginError
from logkernel.kernel import Kernel
from logkernel.plugins.cleanup import compact
from logkernel.record.batch import batches
from logkernel.record.encode import encode_batch
from logkernel.record.filtering import view_of
from logkernel.vocabulary import Record, SegmentFacts

NOW = 1_000_000
KERNEL = Kernel()


def log(
    sizes: str, *, clean: int | None = None, start: int = 0, stable: int = 10_000, ages: str = "", **more
) -> LogFacts:
    """Ten offsets a segment, the last one active; `ages` in ms, of all records of each, or first/last."""
    parts = [int(size) for size in sizes.split()]
    old = [[int(age) for age in each.split("/")] for each in ages.split()] or [[500]] * len(parts)
    segments = tuple(
        SegmentFacts(10 * i, 10 * i + 10, size, NOW - old[i][-1], i == len(parts) - 1, NOW - old[i][0])
        for i, size in enumerate(parts)
    )
    settings = TopicSettings(cleanup_policy=("compact",), **more)
    return LogFacts(
        "t", 0, segments, start, 10 * len(parts), NOW, settings,
        last_stable_offset=stable, clean_offset=clean, table_bytes=1 << 20,
        strategy=lambda name: KERNEL.compaction_strategy(name, settings.plugin),
    )  # fmt: skip


def plan(facts: LogFacts) -> tuple[int, int] | None:
    found = [step for step in compact.Compact().plan(facts) if isinstance(step, Rewrite)]
    return (found[0].start, found[0].end) if found else None


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (log("5 5 5 5"), (0, 30)),
        (log("5"), None),  # the active segment alone
        (log("5 5 5 5", clean=30), None),
        (log("5 5 5 5", clean=20), None),  # a third is dirty
        (log("5 5 50 5", clean=20), (20, 30)),
        (log("5 5 5 5", clean=20, min_cleanable_dirty_ratio=0.3), (20, 30)),
        (log("5 5 5 5", clean=20, min_cleanable_dirty_ratio=0.34), None),
        (log("5 5 5 5", clean=10, min_cleanable_dirty_ratio=2 / 3), None),  # more than the ratio, not as much
        (log("5 5 5 5", clean=15), (15, 30)),  # a rewrite that came half way into a segment
        (evolve(log("5 5 5 5", clean=20), asked=True), (20, 30)),
        (evolve(log("5 5 5 5", clean=30), asked=True), None),
        (log("5 5 5 5", clean=99), (0, 30)),  # the checkpoint is of another log
        (log("5 5 5 5", clean=5, start=10), (10, 30)),
        # what is not decided, and the young, are not touched
        (log("5 5 5 5", stable=29), (0, 20)),
        (log("5 5 5 5", stable=3), None),
        (log("5 5 5 5", ages="900 900 50 10", min_compaction_lag_ms=100), (0, 20)),
        (log("5 5 5 5", ages="50 900 900 10", min_compaction_lag_ms=100), None),
        (log("5 5 5 5", ages="50 900 900 10", min_compaction_lag_ms=100, clean=10), (10, 30)),
        (log("5 5 5 5", stable=20), (0, 20)),
        (evolve(log("5 5 5 5"), high_watermark=20), (0, 20)),
        (log("5 5 5 5", ages="900 900 100 10", min_compaction_lag_ms=100), (0, 30)),  # to the ms
        (log("5 5 5 5", ages="900 900 99 10", min_compaction_lag_ms=100), (0, 20)),
        (log("5 5 5 5", ages="900 900 900/50 10", min_compaction_lag_ms=100), (0, 20)),  # its newest counts
        (log("5 5 5 5", ages="900 900 -7 -7"), (0, 30)),  # no lag: the future is not young
        # overdue
        (log("50 5 5", clean=10, ages="900 300 10", max_compaction_lag_ms=200), (10, 20)),
        (log("50 5 5", clean=10, ages="900 300 10", max_compaction_lag_ms=300), None),
        (log("50 5 5", clean=10, ages="900 300 10"), None),
        (log("50 5 5", clean=10, ages="900 300/50 10", max_compaction_lag_ms=200), (10, 20)),  # its oldest counts
        (log("50 5 5 5", clean=10, ages="900 100 300 10", max_compaction_lag_ms=200), (10, 30)),
        (log("50 5 5", clean=10, ages=f"900 {NOW} 10", max_compaction_lag_ms=200), None),  # 0 and -1 are no timestamps
        (log("50 5 5", clean=10, ages=f"900 {NOW + 1} 10", max_compaction_lag_ms=200), None),
    ],
)
def test_the_plan_covers_what_is_dirty_and_old_enough(facts: LogFacts, expected: tuple[int, int] | None) -> None:
    assert plan(facts) == expected


def test_segments_below_the_start_go() -> None:
    drop, rewrite = compact.Compact().plan(log("5 5 5 5", start=25))
    assert drop == DropBefore(20, "below the log's start 25")
    assert isinstance(rewrite, Rewrite)
    assert (rewrite.start, rewrite.end) == (25, 30)


def test_the_dirtiest_has_the_highest_priority() -> None:
    (half,) = compact.Compact().plan(log("5 5 5 5", clean=10))
    (whole,) = compact.Compact().plan(log("5 5 5 5"))
    assert isinstance(half, Rewrite)
    assert isinstance(whole, Rewrite)
    assert half.priority == pytest.approx(2 / 3)
    assert whole.priority == 1.0


def rule(facts: LogFacts) -> KeepRule:
    (found,) = (step for step in compact.Compact().plan(facts) if isinstance(step, Rewrite))
    assert isinstance(found.rule, KeepRule)
    return found.rule


def view(made: list[Record], base: int = 0):
    data = encode_batch(made, base_offset=base)
    (facts,) = batches(data)
    return view_of(data, facts, lambda codec_id: pytest.fail("not compressed"))


def version(number: int) -> tuple[tuple[str, bytes], ...]:
    return (("v", number.to_bytes(8, "big", signed=True)),)


MADE = [
    Record(b"a", b"0", (), 100), Record(b"a", b"1", version(7), 300), Record(b"a", b"2", version(5), 200),
    Record(b"b", b"3", (), 100), Record(b"b", b"4", (("v", b"odd"),), 100), Record(None, b"5", (), 100),
    Record(b"c", b"6", version(-2), 1), Record(b"c", b"7", (), 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("plugin", "stay"),
    [
        ({}, [2, 4, 7]),
        ({"compaction.strategy": "offset"}, [2, 4, 7]),
        ({"compaction.strategy": "timestamp"}, [1, 4, 7]),
        ({"compaction.strategy": "header", "compaction.strategy.header": "v"}, [1, 4, 6]),
        ({"compaction.strategy": "header", "compaction.strategy.header": "absent"}, [2, 4, 7]),
    ],
)
def test_a_strategy_keeps_the_newest_by_its_measure(plugin: dict[str, str], stay: list[int]) -> None:
    chosen = rule(log("5 5 5", plugin=plugin))
    batch = view(MADE)
    assert chosen.learn(batch) is None
    mask = chosen.keep(batch, 20)
    assert mask is not None
    assert [index for index, kept in enumerate(mask) if kept] == stay


@pytest.mark.parametrize("strategy", ["timestamp", "header"])
def test_other_strategies_learn_from_the_whole_log(strategy: str) -> None:
    facts = log("5 50 5", clean=10, plugin={"compaction.strategy": strategy, "compaction.strategy.header": "v"})
    assert plan(facts) == (0, 20)
    assert plan(log("5 50 5", clean=10)) == (10, 20)


@pytest.mark.parametrize(
    ("strategy", "error", "said"),
    [
        ("newest", PluginError, "no plugin provides the compaction strategy 'newest'"),
        ("header", InvalidConfig, r"compaction\.strategy=header needs the name of a header"),
    ],
)
def test_strategies_that_cannot_be(strategy: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        plan(log("5 5 5", plugin={"compaction.strategy": strategy}))


def test_a_full_table_ends_the_rewrite_and_what_lies_behind_stays() -> None:
    chosen = rule(evolve(log("5 5 5"), table_bytes=24 * 4, table_load_factor=0.5))
    made = [Record(b"%d" % (index % 4), b"v", (), 1) for index in range(8)]
    batch = view(made)
    assert chosen.learn(batch) == 2
    mask = chosen.keep(batch, 2)
    assert mask is not None
    assert list(mask) == [1] * 8
    assert chosen.keep(view(made, base=8), 2) is None


def test_the_plugin_answers_to_compact_only() -> None:
    assert isinstance(compact.logkernel_cleanup("compact"), CleanupPolicy)
    assert compact.logkernel_cleanup("delete") is None
    strategies = [("compaction strategy", name) for name in ("offset", "timestamp", "header")]
    assert list(compact.logkernel_names()) == [("cleanup policy", "compact"), *strategies]
    assert [(row.name, row.scope) for row in compact.logkernel_settings()] == [
        ("compaction.strategy", "topic"), ("compaction.strategy.header", "topic"),
    ]  # fmt: skip
