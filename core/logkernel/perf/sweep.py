"""Throughput against the number of producers, consumers, partitions and replicas, and against the size of messages.

Each producer and consumer is a process, so that none waits for another's interpreter, and all start at once. The
throughput of several is counted from the first start to the last end. A point is the median of some runs. Filling a
topic is not part of a consumer's measurement.
"""

from __future__ import annotations

import contextlib
import json
import select
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen

import logkernel
from logkernel.errors import LogkernelError, RequestTimedOut
from logkernel.perf import claims
from logkernel.perf.claims import Point, Verdict
from logkernel.perf.figures import MIB
from logkernel.perf.produce import by_keyword
from logkernel.perf.target import NOTHING, make_topic
from logkernel.requests.cluster import MetadataRequest

READY: Final = "logkernel listening on "
START_S: Final = 60.0


@frozen
class Experiment:
    """One curve."""

    name: str
    axis: str
    claim: str
    """The claim about it."""
    unit: str = "records"
    """The figure of the curve; `both`: records and MB."""


EXPERIMENTS: Final = (
    Experiment("producers", "producers", "throughput is in proportion to the number of producers"),
    Experiment(
        "consumers",
        "consumers",
        "consumption is in proportion to the number of consumers, until there is one for each partition",
    ),
    Experiment("partitions", "partitions", "throughput grows with the number of partitions, then levels off"),
    Experiment(
        "message-size",
        "bytes a message",
        "with larger messages, records a second fall and MB a second rise",
        "both",
    ),
    Experiment("replication", "replicas", "the more replicas, the lower the throughput"),
)


@define
class Plan:
    """What to measure."""

    records: int = 100_000
    size: int = 100
    runs: int = 3
    producers: Sequence[int] = (1, 2, 3, 4)
    consumers: Sequence[int] = (1, 2, 3, 4, 6)
    partitions: Sequence[int] = (1, 2, 4, 8, 16, 32)
    sizes: Sequence[int] = (10, 100, 1000, 10_000, 100_000)
    replicas: Sequence[int] = (1, 2, 3)
    consumed_partitions: int = 4
    most_bytes: int = 200 * MIB
    """Upper bound of bytes of a run: there are fewer large messages."""
    settings: Mapping[str, Any] = field(factory=dict)
    """Of the producers."""


@define
class Curve:
    experiment: Experiment
    points: list[Point]
    verdict: Verdict

    def rows(self) -> list[dict[str, Any]]:
        name = self.experiment.name
        found: list[dict[str, Any]] = [
            {
                "kind": "point",
                "experiment": name,
                "x": point.x,
                "recordsPerSec": round(point.records_s, 3),
                "mbPerSec": round(point.mib_s, 6),
            }
            for point in self.points
        ]
        claim = {"claim": self.experiment.claim, "outcome": self.verdict.outcome, "why": self.verdict.why}
        return [*found, {"kind": "claim", "experiment": name, **claim}]


# ---------------------------------------------------------------- processes


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Run a logkernel broker in a process, on a temporary directory; give its address."""
    with tempfile.TemporaryDirectory(prefix="logkernel-sweep-") as folder:
        command = [sys.executable, "-m", "logkernel", "serve", "--data", f"{folder}/data", "--listen", "127.0.0.1:0"]
        with (Path(folder) / "log").open("wb") as log:
            broker = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder
            )
        try:
            assert broker.stdout is not None
            ready, _, _ = select.select([broker.stdout], [], [], START_S)
            line = broker.stdout.readline() if ready else ""
            if not line.startswith(READY):
                raise LogkernelError(f"the broker did not start: {(Path(folder) / 'log').read_text()[-2000:]}")
            yield line.removeprefix(READY).split()[0]
        finally:
            broker.terminate()
            broker.wait()
            assert broker.stdout is not None
            broker.stdout.close()


def run_together(jobs: Sequence[Mapping[str, Any]]) -> Point:
    """Run each job in a process, all at once; x is their number. Raises `LogkernelError` if one fails."""
    started: list[subprocess.Popen[str]] = []
    try:
        for job in jobs:
            worker = subprocess.Popen(
                [sys.executable, "-m", "logkernel.perf.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            started.append(worker)
            _tell(worker, json.dumps(job))
        for worker in started:
            if _line(worker) != "ready":
                raise _failure(worker)
        for worker in started:
            _tell(worker, "go")
        found = []
        for worker in started:
            line = _line(worker)
            if not line:
                raise _failure(worker)
            found.append(json.loads(line))
    finally:
        for worker in started:
            _end(worker)
    seconds = max(row["ended_s"] for row in found) - min(row["begun_s"] for row in found)
    records, size = sum(row["records"] for row in found), sum(row["bytes"] for row in found)
    return Point(len(jobs), records / seconds, size / MIB / seconds)


def _tell(worker: subprocess.Popen[str], line: str) -> None:
    assert worker.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it failed: its stderr says why
        worker.stdin.write(line + "\n")
        worker.stdin.flush()


def _line(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    return worker.stdout.readline().strip()


def _failure(worker: subprocess.Popen[str]) -> LogkernelError:
    assert worker.stderr is not None
    worker.kill()
    return LogkernelError(f"a worker failed: {worker.stderr.read()[-2000:].strip()}")


def _end(worker: subprocess.Popen[str]) -> None:
    """End a process that has not ended by itself after its report."""
    try:
        worker.wait(0 if worker.stdin is None else 20)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
    for stream in (worker.stdin, worker.stdout, worker.stderr):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


# ---------------------------------------------------------------- experiments


class Sweep:
    """The experiments against one cluster. `tell` gets what is measured next; `connection` are keywords of
    `connect`."""

    def __init__(
        self,
        bootstrap: str,
        plan: Plan,
        tell: Callable[[str], Any] = lambda what: None,
        connection: Mapping[str, Any] = NOTHING,
    ) -> None:
        self._where = {"bootstrap": bootstrap, "connect": dict(connection)}
        self._plan = plan
        self._tell = tell
        self._topics = 0
        self._log = logkernel.connect(bootstrap, **connection)
        self._prefix = f"perf-sweep-{id(self):x}"

    def close(self) -> None:
        self._log.close()

    def run(self, name: str) -> Curve:
        """Run the experiment of this name."""
        experiment = next(row for row in EXPERIMENTS if row.name == name)
        points, verdict = getattr(self, f"_{name.replace('-', '_')}")()
        return Curve(experiment, points, verdict)

    def _producers(self) -> tuple[list[Point], Verdict]:
        counts = self._plan.producers
        found = [self._produced(count, count, partitions=max(counts), what="producers") for count in counts]
        return found, claims.producers(found)

    def _partitions(self) -> tuple[list[Point], Verdict]:
        found = [self._produced(count, 1, partitions=count, what="partitions") for count in self._plan.partitions]
        return found, claims.partitions(found)

    def _message_size(self) -> tuple[list[Point], Verdict]:
        found = [self._produced(size, 1, size=size, what="bytes") for size in self._plan.sizes]
        return found, claims.message_size(found)

    def _replication(self) -> tuple[list[Point], Verdict]:
        brokers = len(self._log.request(MetadataRequest(topics=[], allow_auto_topic_creation=False)).brokers)
        counts = [count for count in self._plan.replicas if count <= brokers]
        if len(counts) < 2:
            return [], claims.replication([])
        found = [self._produced(count, 1, replication_factor=count, what="replicas") for count in counts]
        return found, claims.replication(found)

    def _produced(self, x: int, producers: int, *, what: str, size: int | None = None, **topic: Any) -> Point:
        """Return the median of some runs, each with a new topic."""
        size = self._plan.size if size is None else size
        records = max(1, min(self._plan.records, self._plan.most_bytes // size) // producers)
        runs = []
        for number in range(self._plan.runs):
            self._tell(f"{x} {what}, run {number + 1} of {self._plan.runs}")
            with self._topic(**topic) as name:
                runs.append(run_together([self._produce_job(name, records, size)] * producers))
        return _median(x, runs)

    def _produce_job(self, topic: str, records: int, size: int) -> dict[str, Any]:
        common = {**self._where, "topic": topic, "settings": by_keyword(self._plan.settings)}
        return {"kind": "produce", **common, "records": records, "size": size}

    def _consumers(self) -> tuple[list[Point], Verdict]:
        plan, partitions = self._plan, self._plan.consumed_partitions
        each = max(1, plan.records // partitions)
        found = []
        with self._topic(partitions=partitions) as name:
            self._tell("filling the topic that is read")
            with self._log.producer() as producer:
                for number in range(each * partitions):
                    producer.send(name, bytes(plan.size), partition=number % partitions)
            for count in plan.consumers:
                runs = []
                for number in range(plan.runs):
                    self._tell(f"{count} consumers, run {number + 1} of {plan.runs}")
                    runs.append(run_together(self._consume_jobs(name, count, partitions, each)))
                found.append(_median(count, runs))
        return found, claims.consumers(found, partitions)

    def _consume_jobs(self, topic: str, count: int, partitions: int, each: int) -> list[dict[str, Any]]:
        """Distribute the partitions as a group would: surplus consumers get none."""
        common = {"kind": "consume", **self._where, "topic": topic, "settings": {}}
        jobs = []
        for number in range(count):
            mine = list(range(number, partitions, count))
            jobs.append({**common, "partitions": mine, "records": each * len(mine)})
        return jobs

    @contextlib.contextmanager
    def _topic(self, **details: Any) -> Iterator[str]:
        self._topics += 1
        name = f"{self._prefix}-{self._topics}"
        make_topic(self._log, name, **details)
        try:
            yield name
        finally:
            with contextlib.suppress(LogkernelError, RequestTimedOut):
                self._log.delete_topic(name)


def _median(x: int, runs: Sequence[Point]) -> Point:
    return Point(x, statistics.median(row.records_s for row in runs), statistics.median(row.mib_s for row in runs))
