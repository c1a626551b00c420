"""A cluster as far as exactly-once writes see it: producer ids and epochs, open transactions, a journal, a target.

Records lie in the log as they are produced, and are read committed by the markers behind them. Every call of the port
is two points at which its caller may die: before the cluster acted, and after.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence

from attrs import define, field

from logkernel.plugins.spark import exactly_once as once
from logkernel.plugins.spark.exactly_once import Message, MustReplay, Row, Task, Token, View

TARGET = "target"


class Crash(Exception):
    """The process is gone; nothing of it runs any more."""


class TaskLost(Exception):
    """A task failed, and its process with it; the driver lives."""


class Refused(Exception):
    """A call failed, and its caller lives to abort."""


class Fenced(Exception):
    """The cluster refused a producer that somebody took over."""


@define
class Txn:
    producer_id: int
    epoch: int = -1
    open: bool = False


@define
class Entry:
    producer_id: int
    epoch: int
    key: bytes
    blob: bytes
    marker: bool | None = None


@define
class Cluster:
    txns: dict[str, Txn] = field(factory=dict)
    journal: list[Entry] = field(factory=list)
    target: list[tuple[int, int, Row | bool]] = field(factory=list)
    """(producer id, epoch, row or marker)."""
    now_ms: int = 0
    hints: dict[str, int] = field(factory=dict)
    backwards: bool = False
    """Transactions that are ended at once are ended in this order."""

    def take(self, name: str) -> tuple[int, int]:
        txn = self.txns.setdefault(name, Txn(len(self.txns)))
        self._close(txn, False)
        txn.epoch += 1
        return txn.producer_id, txn.epoch

    def _close(self, txn: Txn, committed: bool) -> None:
        if txn.open:
            txn.open = False
            self.journal.append(Entry(txn.producer_id, txn.epoch, b"", b"", committed))
            self.target.append((txn.producer_id, txn.epoch, committed))

    def end(self, name: str, producer_id: int, epoch: int, commit: bool) -> bool:
        txn = self.txns.get(name)
        if txn is None or (txn.producer_id, txn.epoch) != (producer_id, epoch) or not txn.open:
            return False
        self._close(txn, commit)
        return True

    def time_out(self, names: Callable[[str], bool] = lambda name: True) -> None:
        """The coordinator aborts what is open, and fences its owners."""
        for name, txn in self.txns.items():
            if txn.open and names(name):
                self._close(txn, False)
                txn.epoch += 1

    def check(self, name: str, numbers: tuple[int, int]) -> None:
        txn = self.txns[name]
        if (txn.producer_id, txn.epoch) != numbers:
            raise Fenced(name)


def committed_rows(cluster: Cluster) -> Counter[Row]:
    """What readers of committed records have; a partition that a row was given counts for nothing."""
    found: Counter[Row] = Counter()
    waiting: dict[int, list[Row]] = {}
    for producer_id, _, what in cluster.target:
        if isinstance(what, Row):
            waiting.setdefault(producer_id, []).append(what)
            continue
        rows = waiting.pop(producer_id, [])
        if what:
            found.update(Row(row.topic, None, row.key, row.value, row.headers) for row in rows)
    return found


class SimPort:
    """`Port` for one process. `crash` is told the number of each point and says whether to die there."""

    timeout_ms = 900_000

    def __init__(self, cluster: Cluster, own: str, crash: Callable[[str], None]) -> None:
        self._cluster, self._own, self._crash = cluster, own, crash
        self._numbers = (-1, -1)

    def now_ms(self) -> int:
        return self._cluster.now_ms

    def pause(self, looks: int) -> None:
        assert looks < 20, "the journal never settles"

    def view(self, query: str) -> View:
        self._crash("view")
        found = View(query)
        hint = self._cluster.hints.get(query, 0)
        for offset, entry in enumerate(self._cluster.journal):
            if offset < hint:
                continue
            if entry.marker is not None:
                found.marker(entry.producer_id, entry.marker)
            else:
                found.record(entry.producer_id, offset, entry.key, entry.blob)
        return found

    def take(self, transactional_id: str) -> tuple[int, int]:
        self._crash("take before")
        numbers = self._cluster.take(transactional_id)
        if transactional_id == self._own:
            self._numbers = numbers
        self._crash("take after")
        return numbers

    def begin(self) -> tuple[int, int]:
        return self.take(self._own)

    def _write(self) -> None:
        self._cluster.check(self._own, self._numbers)
        self._cluster.txns[self._own].open = True

    def note(self, query: str, key: bytes, blob: bytes) -> None:
        self._crash("note before")
        self._write()
        self._cluster.journal.append(Entry(*self._numbers, key, blob))
        self._crash("note after")

    def send(self, row: Row) -> int:
        self._crash("row before")
        self._write()
        self._cluster.target.append((*self._numbers, row))
        self._crash("row after")
        return len(self._cluster.target) - 1

    def end_all(self, owners: Sequence[tuple[str, int, int]], commit: bool) -> bool:
        done = True
        for owner in reversed(owners) if self._cluster.backwards else owners:
            self._crash("end before")
            done = self._cluster.end(*owner, commit) and done
            self._crash("end after")
        return done

    def decide(self, query: str, key: bytes, blob: bytes, hint: int, rows: Sequence[Row]) -> None:
        for row in rows:
            self.send(row)
        self.note(query, key, blob)
        self._crash("decide before")
        self._cluster.check(self._own, self._numbers)
        if not self._cluster.end(self._own, *self._numbers, True):
            raise Fenced(self._own)
        self._cluster.hints[query] = hint
        self._crash("decide after")

    def read_back(self, token: Token) -> list[Row]:
        self._crash("read back")
        who = token.participant
        return [
            Row(row.topic, partition, row.key, row.value, row.headers)
            for topic, partition, first, last in token.ranges
            for producer_id, epoch, row in self._cluster.target[first : last + 1]
            if isinstance(row, Row) and (producer_id, epoch) == (who.producer_id, who.epoch)
        ]


def run_task(port: SimPort, query: str, batch: int, slot: int, rows: Sequence[Row]) -> Message:
    """As `writing.write_once` has it."""
    task = Task(port, query, batch, slot)
    verdict = task.begin()
    if verdict == once.SKIP or not rows:
        return task.message()
    if verdict == once.HEAL:
        return task.message(rows)
    task.open()
    offsets = [port.send(row) for row in rows]
    task.prepare(len(rows), [(TARGET, 0, min(offsets), max(offsets))])
    return task.message()


def run_batch(
    cluster: Cluster,
    query: str,
    batch: int,
    layout: Sequence[Sequence[Row]],
    crash: Callable[[str], None],
    *,
    task_retries: int = 0,
) -> bool:
    """What Spark does with one batch: tasks, commit, abort where either fails. Raises `Crash` where the driver dies."""
    messages: list[Message | None] = []
    driver = SimPort(cluster, once.decider_id(query), crash)
    try:
        for slot, rows in enumerate(layout):
            messages.append(None)
            for attempt in range(task_retries + 1):
                try:
                    messages[slot] = run_task(
                        SimPort(cluster, once.participant_id(query, slot), crash), query, batch, slot, rows
                    )
                    break
                except (TaskLost, Fenced):
                    if attempt == task_retries:
                        raise
        once.commit(driver, [message for message in messages if message is not None])
        return True
    except (TaskLost, Fenced, Refused, MustReplay):
        with contextlib.suppress(Fenced, Refused, TaskLost):
            once.abort(SimPort(cluster, once.decider_id(query), crash), messages)
        return False
