"""What every cleanup policy promises: plans within the log that come to an end, and rules that keep to their range."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from hypothesis import strategies as st

from logkernel.attrs_lite import evolve
from logkernel.contracts import CleanupPolicy, DropBefore, KeepRule, LogFacts, Rewrite, RunRule
from logkernel.guards.cleanup import judged_plan
from logkernel.kernel import Kernel
from logkernel.record.batch import batches
from logkernel.record.encode import encode_batch
from logkernel.record.filtering import Run, View, view_of
from logkernel.record.pure_compaction import ALL_STAY, LOOK_CLOSER, NONE_STAYS, ROW, small_batches
from logkernel.testing.contracts.kit import Kit, for_all
from logkernel.vocabulary import Record, SegmentFacts

NOW_MS = 1_700_000_000_000
Step = DropBefore | Rewrite
KEYS = (b"a", b"b", None)


@st.composite
def logs(draw: st.DrawFn) -> tuple[LogFacts, dict[str, Any]]:
    """A log of one to five segments, the last one active; and topic settings to try with it."""
    counts = [*draw(st.lists(st.integers(1, 6), max_size=4)), draw(st.integers(0, 4))]
    bases = list(accumulate(counts, initial=draw(st.sampled_from([0, 100]))))
    segments = []
    for number, (base, end) in enumerate(pairwise(bases)):
        age_ms = draw(st.integers(-10, 10**6))
        size = draw(st.integers(0, 100)) if end > base else 0
        segments.append(
            SegmentFacts(base, end, size, NOW_MS - age_ms, number == len(counts) - 1, NOW_MS - age_ms - size)
        )
    offsets = st.integers(bases[0], bases[-1])
    start = draw(offsets)
    high = draw(st.integers(start, bases[-1]))
    facts = LogFacts(
        "t", 0, tuple(segments), start, high, NOW_MS, None,
        last_stable_offset=draw(st.integers(start, high)), clean_offset=draw(st.none() | offsets),
        table_bytes=1 << 16, seed=draw(st.binary(min_size=16, max_size=16)), asked=draw(st.booleans()),
    )  # fmt: skip
    tried = {
        "retention_ms": draw(st.sampled_from([-1, 0, 10_000])),
        "retention_bytes": draw(st.sampled_from([-1, 0, 60])),
    }
    return facts, tried


LOGS = logs()


class CleanupContract(Kit[CleanupPolicy]):
    """`logkernel.contracts.CleanupPolicy`. `settings` are the topic's."""

    kind = "cleanup policy"
    methods = ("plan",)

    def provide(self, kernel: Kernel, name: str) -> CleanupPolicy:
        return kernel.cleanup(name, self.topic_settings.plugin)

    @for_all(60, log=LOGS)
    def test_a_plan_stays_within_what_may_go(self, log: tuple[LogFacts, dict[str, Any]]) -> None:
        """The broker's guard says so, too, and carries nothing of the plan out."""
        self._plan(self._facts(*log))

    @for_all(40, log=LOGS, other=LOGS)
    def test_equal_facts_give_equal_plans(
        self, log: tuple[LogFacts, dict[str, Any]], other: tuple[LogFacts, dict[str, Any]]
    ) -> None:
        """One object serves many logs; `seed` and `wall_ms` are its only chance and clock."""
        policy, facts = self.make(), self._facts(*log)
        once = self._plan(facts, policy)
        self._plan(self._facts(*other), policy)
        again = self._plan(facts, policy)
        if list(map(_seen, once)) != list(map(_seen, again)):
            self.broken(
                f"plan() returned {list(map(_seen, once))}, then {list(map(_seen, again))} for the same facts; depend"
                f" on the facts alone"
            )

    @for_all(40, log=LOGS)
    def test_plans_that_are_carried_out_come_to_an_end(self, log: tuple[LogFacts, dict[str, Any]]) -> None:
        """A plan that does not change its own facts would be carried out again and again."""
        facts = evolve(self._facts(*log), asked=False)
        turns = facts.segments[-1].next_offset - facts.segments[0].base_offset + 3
        steps: list[Step] = []
        for _ in range(turns):
            steps = self._plan(facts)
            after = carried_out(facts, steps)
            if after == facts and not any(isinstance(step, Rewrite) for step in steps):
                return
            facts = after
        self.broken(f"plan() goes on after {turns} plans were carried out, the last one {list(map(_seen, steps))}")

    @for_all(40, log=LOGS, key=st.lists(st.sampled_from(KEYS), min_size=1, max_size=6), nulls=st.integers(0, 63))
    def test_a_rule_judges_every_record_and_keeps_what_lies_behind_its_end(
        self, log: tuple[LogFacts, dict[str, Any]], key: list[bytes | None], nulls: int
    ) -> None:
        facts = self._facts(*log)
        views = _seen_batches(_batches(facts, key, nulls))
        for step in self._plan(facts):
            if isinstance(step, Rewrite):
                self._judge_rule(step, views)

    @for_all(40, log=LOGS, key=st.lists(st.sampled_from(KEYS), min_size=1, max_size=6), nulls=st.integers(0, 63))
    def test_a_rule_judges_runs_of_batches_as_single_ones(
        self, log: tuple[LogFacts, dict[str, Any]], key: list[bytes | None], nulls: int
    ) -> None:
        """`RunRule` is for speed alone. Which batches come in runs depends on their sizes and codecs."""
        facts = self._facts(*log)
        data = _batches(facts, key, nulls)
        for one, other in zip(self._plan(facts), self._plan(facts), strict=True):
            if isinstance(one, Rewrite) and isinstance(other, Rewrite) and isinstance(other.rule, RunRule):
                self._compare(one, other, [view for view in _seen_batches(data) if view.last_offset < one.end], data)

    def _compare(self, single: Rewrite, run: Rewrite, views: Sequence[View], data: bytes) -> None:
        rows, _ = small_batches(data, 0, len(data), len(data), b"")
        learnt = [view for view in views if view.last_offset >= single.start]
        first = len(views) - len(learnt)
        some = Run(data, rows[first * ROW.size : len(views) * ROW.size])
        rule: Any = run.rule
        for view in learnt:
            with self.calling("learn()"):
                single.rule.learn(view)
        with self.calling("learn_run()"):
            count = rule.learn_run(some)
        if type(count) is not int or not 0 <= count <= len(learnt):
            self.broken(f"learn_run() returned {count!r} for {len(learnt)} batches; return how many it has learnt from")
        for view in learnt[count:]:
            rule.learn(view)
        with self.calling("keep_run()"):
            verdicts = rule.keep_run(Run(data, rows[: len(views) * ROW.size]), run.end)
        for view, verdict in zip(views, verdicts, strict=False):
            kept = single.rule.keep(view, single.end)
            mask = bytes([1] * view.count) if kept is None else bytes(map(bool, kept))
            if (verdict == NONE_STAYS and any(mask)) or (verdict == ALL_STAY and not all(mask)):
                self.broken(
                    f"keep_run() says {verdict} of the batch at {view.base_offset}, of which keep() keeps {sum(mask)}"
                    f" of {view.count} records; judge it as keep() does, or say {LOOK_CLOSER}"
                )

    def _judge_rule(self, step: Rewrite, views: Sequence[View]) -> None:
        rule: KeepRule = step.rule
        end = step.end
        for view in views:
            if step.start <= view.last_offset and view.base_offset < end:
                with self.calling("learn()"):
                    full = rule.learn(view)
                if full is not None:
                    if type(full) is not int or not step.start <= full <= view.last_offset:
                        self.broken(
                            f"learn() returned {full!r} for the offsets {view.base_offset} to {view.last_offset};"
                            f" return None, or the first offset for which there is no room"
                        )
                    end = full
                    break
        for view in views:
            with self.calling("keep()"):
                kept = rule.keep(view, end)
            if kept is None:
                continue
            if len(kept) != view.count:
                self.broken(f"keep() returned {len(kept)} bytes for a batch of {view.count} records; give each one")
            late = [view.base_offset + index for index, byte in enumerate(kept) if not byte]
            if late and late[-1] >= end:
                self.broken(f"keep() drops the record {late[-1]} though the rewrite ends at {end}; keep it")

    def _facts(self, facts: LogFacts, tried: dict[str, Any]) -> LogFacts:
        settings = evolve(self.topic_settings, **tried)
        ask = self.kernel.compaction_strategy
        return evolve(facts, settings=settings, strategy=lambda name: ask(name, settings.plugin))

    def _plan(self, facts: LogFacts, policy: CleanupPolicy | None = None) -> list[Step]:
        policy = policy or self.make()
        with self.calling("plan()"):
            return judged_plan(self.name or type(policy).__name__, facts, policy.plan(facts))


def carried_out(facts: LogFacts, steps: Sequence[Step]) -> LogFacts:
    """The facts after a plan, at the same moment."""
    for step in steps:
        if isinstance(step, Rewrite):
            clean = max(step.end, facts.clean_offset or 0) if step.end > step.start else facts.clean_offset
            facts = evolve(facts, clean_offset=clean)
            continue
        left = tuple(segment for segment in facts.segments if segment.next_offset > step.offset)
        end = facts.segments[-1].next_offset
        if not left or not left[-1].active:
            left = (*left, SegmentFacts(end, end, 0, facts.wall_ms, True, -1))
        facts = evolve(facts, segments=left, log_start_offset=max(facts.log_start_offset, step.offset))
    return facts


def _seen(step: Step) -> tuple[Any, ...]:
    if isinstance(step, DropBefore):
        return ("DropBefore", step.offset)
    return ("Rewrite", step.start, step.end, step.priority)


def _batches(facts: LogFacts, keys: Sequence[bytes | None], nulls: int) -> bytes:
    """A batch for each closed segment."""
    made = []
    for segment in facts.segments:
        offsets = range(segment.base_offset, segment.next_offset)
        if offsets and not segment.active:
            rows = [
                Record(keys[at % len(keys)], None if nulls >> at % 6 & 1 else b"%d" % at, (), 1000) for at in offsets
            ]
            made.append(encode_batch(rows, base_offset=segment.base_offset))
    return b"".join(made)


def _seen_batches(data: bytes) -> list[View]:
    """As a keep-rule sees them."""
    return [view_of(data, found, _no_codec) for found in batches(data)]


def _no_codec(codec_id: int) -> Any:
    raise AssertionError("nothing is compressed here")
