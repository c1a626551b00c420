"""What the runner tells Spark, where it can be seen without one: how a micro-batch is written once."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from logkernel.errors import ConfigError
from logkernel.plugins.spark.pipelines import runner
from logkernel.plugins.spark.pipelines.plan import LogWrite, TableWrite, plan
from logkernel.plugins.spark.pipelines.spec import read

DELTA = "name: p\nlog: {path: d}\nstate: /s\nsteps: {one: {read: {topic: a}, write: {table: /t, format: delta}}}"


class Recorder:
    """A frame and its writer: every call is noted, and gives the same again."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        if name in ("write", "sparkSession", "sparkContext"):
            return self

        def call(*arguments: Any, **named: Any) -> Any:
            self.calls.append((name, *arguments, *sorted(named.items())))
            return "7f" if name == "getLocalProperty" else self

        return call


def test_a_delta_batch_names_itself() -> None:
    (step,) = plan(read(DELTA, "p.yaml", {}))
    assert isinstance(step.write, TableWrite)
    frame = Recorder()
    runner._delta_batch(step, step.write)(frame, 3)
    assert frame.calls == [
        ("format", "delta"),
        ("options",),
        ("mode", "append"),
        ("option", "txnAppId", "/s/one"),
        ("option", "txnVersion", 3),
        ("partitionBy", "date"),
        ("save", "/t"),
    ]


def test_delta_is_refused_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "delta", None)
    with pytest.raises(ConfigError, match=r"step one: format delta needs delta-spark.*pip install delta-spark"):
        runner.SparkPipeline(read(DELTA, "p.yaml", {})).run(lambda row: None)


@pytest.mark.parametrize(
    ("once", "expected"),
    [("true", [("batchId", "3"), ("jobId", "p.one-7f"), ("topic", "b")]), ("false", [("topic", "b")])],
)
def test_a_batch_of_updates_is_one_of_a_job(once: str, expected: list[tuple[str, str]]) -> None:
    frame = Recorder()
    runner._log_batch("p.one", LogWrite({"topic": "b", "exactlyOnce": once}, {}))(frame, 3)
    assert ("options", *expected) in frame.calls
    assert frame.calls[-1] == ("save",)


@pytest.mark.parametrize(
    ("begun", "ended", "expected"),
    [
        ([], [], False),
        (["0"], [], True),
        (["0", "9", "10"], ["9", ".10.crc", "metadata"], True),
        (["9", "10", ".11.crc"], ["0", "10"], False),
    ],
)
def test_a_micro_batch_that_was_not_finished(begun: list[str], ended: list[str], expected: bool) -> None:
    """The next run is that one alone before Spark 4.2, so there is another run behind it."""
    assert runner.unfinished(begun, ended) is expected


def test_spark_connect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(ConfigError, match="Spark Connect"):
        runner._made(read(DELTA, "p.yaml", {}), (), "sc://host")
