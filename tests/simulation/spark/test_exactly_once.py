"""Every point at which a task, a driver or a call can fail, alone and in pairs: a batch is there once, and whole.

A point is one side of one call to the cluster. What follows a failure: the same rows in other tasks; before that
perhaps so much time that transactions time out, all or some; or another driver that overtakes while the first one
stands still.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from module_files import load_module

from logkernel.plugins.spark import exactly_once as once
from logkernel.plugins.spark.exactly_once import Row

HERE = Path(__file__).parent
sim = load_module(HERE / "cluster.py")

QUERY = "q"
Layout = Sequence[Sequence[Row]]


def row(text: str, partition: int | None = None) -> Row:
    return Row("target", partition, None, text.encode())


A, B, C, TWIN = row("a"), row("b"), row("c"), row("twin")
FIRST: Layout = [[A, TWIN], [B], [], [TWIN, C]]
OTHER: Layout = [[C, TWIN, B], [TWIN, A]]
NEXT: Layout = [[row("d")], [row("e"), A]]


def content(*layouts: Layout) -> Counter[Row]:
    return Counter(row for layout in layouts for task in layout for row in task)


def never(point: str) -> None:
    """No crash."""


class At:
    """Does something at the point of one number."""

    def __init__(self, number: int, act: Callable[[str], None]) -> None:
        self.number, self.act, self.count = number, act, 0

    def __call__(self, point: str) -> None:
        self.count += 1
        if self.count - 1 == self.number:
            self.act(point)


def kill(point: str) -> None:
    raise sim.Crash(point)


def lose_task(point: str) -> None:
    raise sim.TaskLost(point)


def refuse(point: str) -> None:
    raise sim.Refused(point)


def points(cluster: Any = None, layout: Layout = FIRST) -> int:
    counter = At(-1, never)
    assert sim.run_batch(cluster or sim.Cluster(), QUERY, 1, layout, counter)
    return counter.count


def attempt(cluster: Any, batch: int, layout: Layout, crash: Callable[[str], None], retries: int = 0) -> bool:
    try:
        done: bool = sim.run_batch(cluster, QUERY, batch, layout, crash, task_retries=retries)
    except sim.Crash:
        return False
    return done


def settle(cluster: Any, layouts: Sequence[Layout] = (OTHER, FIRST, OTHER, FIRST, OTHER)) -> None:
    """Replay until it succeeds, then the next batch; the log must have both, and nothing else."""
    assert any(attempt(cluster, 1, layout, never) for layout in layouts)
    view = sim.SimPort(cluster, "", never).view(QUERY)
    ahead = view.decision is not None and view.decision.batch == 2
    assert sim.committed_rows(cluster) == (content(FIRST, NEXT) if ahead else content(FIRST))
    assert not any(txn.open for txn in cluster.txns.values()), "nothing stays open, and holds readers up"
    assert attempt(cluster, 2, NEXT, never)
    assert sim.committed_rows(cluster) == content(FIRST, NEXT)
    assert attempt(cluster, 1, FIRST, never), "a batch of long ago is skipped"
    assert attempt(cluster, 2, NEXT, never), "and so is the last"
    assert sim.committed_rows(cluster) == content(FIRST, NEXT)


AFTER: dict[str, Callable[[Any], None]] = {
    "at once": lambda cluster: None,
    "all timed out": lambda cluster: cluster.time_out(),
    "one timed out": lambda cluster: cluster.time_out(lambda name: name == once.participant_id(QUERY, 1)),
    "two timed out": lambda cluster: cluster.time_out(lambda name: name[-1] in "03"),
}


def whole_or_nothing(cluster: Any) -> None:
    """Where no transaction is cut off, readers see none of a batch that is not decided."""
    view = sim.SimPort(cluster, "", never).view(QUERY)
    if view.decision is None:
        assert sim.committed_rows(cluster) == Counter()


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("how", [kill, lose_task, refuse])
def test_every_single_failure(how: Callable[[str], None], after: str, backwards: bool) -> None:
    for number in range(points()):
        cluster = sim.Cluster(backwards=backwards)
        attempt(cluster, 1, FIRST, At(number, how))
        whole_or_nothing(cluster)
        AFTER[after](cluster)
        whole_or_nothing(cluster)
        settle(cluster)


def test_a_task_that_is_run_again_in_its_batch() -> None:
    for number in range(points()):
        cluster = sim.Cluster()
        attempt(cluster, 1, FIRST, At(number, lose_task), retries=1)
        settle(cluster)


@pytest.mark.parametrize(("second", "after"), [*((kill, name) for name in AFTER), (refuse, "one timed out")])
def test_every_pair_of_failures(second: Callable[[str], None], after: str) -> None:
    for number in range(points()):
        for again in range(points()):
            cluster = sim.Cluster()
            attempt(cluster, 1, FIRST, At(number, kill))
            AFTER[after](cluster)
            attempt(cluster, 1, OTHER, At(again, second))
            settle(cluster)


@pytest.mark.parametrize("layout", [FIRST, OTHER])
def test_another_driver_overtakes_at_every_point(layout: Layout) -> None:
    """The first one stood still there, and goes on when the other has written the batch, or died as well."""
    for number in range(points()):
        for other in [None, *range(points(layout=layout))]:
            cluster = sim.Cluster()

            def overtake(point: str, cluster: Any = cluster, other: int | None = other) -> None:
                crash = never if other is None else At(other, kill)
                attempt(cluster, 1, layout, crash)

            attempt(cluster, 1, FIRST, At(number, overtake))
            settle(cluster)


def test_a_stale_driver_does_not_disturb_the_next_batch() -> None:
    for number in range(points()):
        cluster = sim.Cluster()

        def overtake(point: str, cluster: Any = cluster) -> None:
            assert any(attempt(cluster, 1, OTHER, never) for _ in range(4))
            attempt(cluster, 2, NEXT, never)

        attempt(cluster, 1, FIRST, At(number, overtake))
        settle(cluster)


def test_a_stale_driver_leaves_the_tasks_of_the_next_batch_alone() -> None:
    for number in range(points()):
        cluster = sim.Cluster()
        messages: list[Any] = []

        def overtake(point: str, cluster: Any = cluster, messages: list[Any] = messages) -> None:
            assert any(attempt(cluster, 1, OTHER, never) for _ in range(4))
            for slot, rows in enumerate(NEXT):
                port = sim.SimPort(cluster, once.participant_id(QUERY, slot), never)
                messages.append(sim.run_task(port, QUERY, 2, slot, rows))

        attempt(cluster, 1, FIRST, At(number, overtake))
        decided = sim.SimPort(cluster, "", never).view(QUERY).decision
        if decided.batch == 1 and all(message.participant in open_ones(cluster) for message in messages):
            once.commit(sim.SimPort(cluster, once.decider_id(QUERY), never), messages)
            assert sim.committed_rows(cluster) == content(FIRST, NEXT)
        else:
            taken_over = any(cluster.txns[once.participant_id(QUERY, slot)].epoch > 1 for slot in range(2))
            assert taken_over, "only a stale task may do that, which takes its id over"


def open_ones(cluster: Any) -> Any:
    return sim.SimPort(cluster, "", never).view(QUERY).open


@pytest.mark.parametrize("after", [name for name in AFTER if name != "at once"])
def test_transactions_time_out_at_every_point(after: str) -> None:
    """Nobody dies. What Spark is told is done is whole, then and there."""
    for number in range(points()):
        cluster = sim.Cluster()

        def pass_time(point: str, cluster: Any = cluster) -> None:
            AFTER[after](cluster)

        if attempt(cluster, 1, FIRST, At(number, pass_time)):
            assert sim.committed_rows(cluster) == content(FIRST)
        settle(cluster)


def test_a_lost_hint_is_only_slower() -> None:
    for number in range(points()):
        cluster = sim.Cluster()
        attempt(cluster, 1, FIRST, At(number, kill))
        cluster.hints.clear()
        settle(cluster)


def test_all_verdicts_are_reached() -> None:
    """The scenarios above would prove little if none of them led to a roll forward, or to healing."""
    seen: Counter[str] = Counter()
    judge = once.judge

    def spy(view: Any, batch: int) -> str:
        verdict = judge(view, batch)
        seen[verdict] += 1
        return verdict

    once.judge = spy
    try:
        for after in AFTER.values():
            for number in range(points()):
                cluster = sim.Cluster()
                attempt(cluster, 1, FIRST, At(number, kill))
                after(cluster)
                settle(cluster)
    finally:
        once.judge = judge
    assert all(seen[verdict] for verdict in (once.WRITE, once.SKIP, once.HEAL, once.FORWARD, once.SETTLE)), seen


def test_no_name_of_a_job_means_a_task_of_another() -> None:
    jobs = ["a", "a-1", "a/1", "a%2F1", "job-a"]
    queries = [once.job_query(job) for job in jobs]
    deciders = {once.decider_id(query) for query in queries}
    participants = {once.participant_id(query, slot) for query in queries for slot in range(20)}
    keys = {once.token_key(query, slot) for query in queries for slot in range(20)}
    assert len(deciders | participants) == len(jobs) * 21
    assert not keys & {once.decision_key(query) for query in queries}
    for query in queries:
        prefix = once.decision_key(query) + b"/"
        assert sum(key.startswith(prefix) for key in keys | {once.decision_key(other) for other in queries}) == 20


def test_rows_that_name_a_partition_are_matched_first() -> None:
    there = [row("x", 0), row("x", 1), row("y", 2)]
    wanted = [row("x"), row("x", 1), row("x", 3), row("y")]
    assert once.missing(wanted, there) == [row("x", 3)]
    assert once.missing([row("x"), row("x"), row("x")], there) == [row("x")]
