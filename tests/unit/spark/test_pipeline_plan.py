"""From a file to what Spark is to do: steps as data, without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from logkernel.errors import ConfigError
from logkernel.plugins.spark.pipelines import queries
from logkernel.plugins.spark.pipelines.plan import LogRead, LogWrite, Step, TableRead, TableWrite, plan
from logkernel.plugins.spark.pipelines.spec import read


def steps(body: str, head: str = "log: {bootstrap.servers: 'h:1', kafka.client.id: c}") -> tuple[Step, ...]:
    return plan(read(f"name: p\n{head}\nstate: /s\nsteps:\n  one:\n{body}", "/x/p.yaml", {}))


def step(*lines: str, head: str = "log: {bootstrap.servers: 'h:1', kafka.client.id: c}") -> Any:
    (found,) = steps("".join(f"    {line}\n" for line in lines), head)
    return found


def test_log_to_log_is_a_stream_that_is_written_once() -> None:
    found = step("read: {topic: 'a,b'}", "write: {topic: c}")
    assert (found.kind, found.trigger, found.mode, found.checkpoint) == ("stream", "available-now", "append", "/s/one")
    assert found.read == LogRead(
        {
            "kafka.bootstrap.servers": "h:1",
            "kafka.client.id": "c",
            "subscribe": "a,b",
            "isolation.level": "read_committed",
            "startingOffsets": "earliest",
            "columns": "key,value,headers",
            "includeHeaders": "true",
        }
    )
    assert found.sql == "SELECT key, value, headers FROM input"
    options = {"kafka.bootstrap.servers": "h:1", "kafka.client.id": "c", "topic": "c", "exactlyOnce": "true"}
    assert found.write == LogWrite(options, {})


def test_what_is_said_counts_before_defaults() -> None:
    found = step(
        "read: {path: d, topic: a, startingOffsets: latest, isolation.level: read_uncommitted, watermark: 1 hour}",
        "where: partition = 0",
        "sql: SELECT offset, value FROM input;",
        "trigger: 10 seconds",
        "mode: update",
        "write: {topic: c, exactlyOnce: false, key: 'upper(value)', partition: offset % 3, partitioner: keyed}",
    )
    options = found.read.options
    assert options["path"] == "/x/d"
    assert "kafka.bootstrap.servers" not in options
    assert (options["startingOffsets"], options["isolation.level"]) == ("latest", "read_uncommitted")
    assert options["columns"] == "value,partition,offset,timestamp"
    assert found.read.watermark == "1 hour"
    assert (found.where, found.sql) == ("partition = 0", "SELECT offset, value FROM input")
    assert (found.trigger, found.mode) == ("10 seconds", "update")
    assert found.write.options["exactlyOnce"] == "false"
    assert found.write.options["partitioner"] == "keyed"
    assert found.write.expressions == {"key": "upper(value)", "partition": "offset % 3"}


def test_log_to_table() -> None:
    found = step(
        "read: {topic: a, value.format: json, value.schema: id INT}", "write: {table: t, option.compression: zstd}"
    )
    assert found.kind == "stream"
    assert found.write == TableWrite("/x/t", "parquet", ("date",), {"compression": "zstd"})
    assert "value.*" in found.sql
    assert found.read.options["columns"] == "key,value,topic,partition,offset,timestamp"
    plain = step("read: {topic: a}", "write: {table: 's3a://b/t', format: delta, partition.by: 'topic, date'}")
    assert plain.write == TableWrite("s3a://b/t", "delta", ("topic", "date"), {})


def test_table_to_log_is_a_job_that_is_done_once() -> None:
    found = step("read: {table: t.csv, format: csv, schema: id INT, option.header: true}", "write: {topic: c}")
    assert found.kind == "batch"
    assert found.read == TableRead("/x/t.csv", "csv", "id INT", {"header": "true"})
    assert (found.sql, found.checkpoint, found.trigger) == ("SELECT * FROM input", "", "")
    assert found.write.options["jobId"] == "p.one"
    named = step("read: {table: t}", "write: {topic: c, jobId: orders of May}")
    assert named.write.options["jobId"] == "orders of May"
    again = step("read: {table: t}", "write: {topic: c, exactlyOnce: false}")
    assert "jobId" not in again.write.options


def test_a_compact_step_is_planned() -> None:
    copied = step("compact: {topic: a}", "write: {topic: c}")
    assert copied.kind == "compact"
    assert copied.write.options["jobId"] == "p.one"
    assert copied.read.options["includeHeaders"] == "true"
    assert "startingOffsets" not in copied.read.options
    table = step("compact: {topic: a, value.format: json, value.schema: id INT}", "write: {table: t}")
    assert table.write == TableWrite("/x/t", "parquet", (), {})
    assert "value.*" in table.sql


def test_an_audit_step_is_planned() -> None:
    found = step("audit: {topic: 'a,b', identity: key, fail.on: [gaps, difference]}")
    assert (found.kind, found.write, found.fail_on) == ("audit", None, ("gaps", "difference"))
    assert found.read.options["columns"] == "key,value,topic,partition,offset,timestamp"
    assert "xxhash64(key) AS one" in found.sql


def test_tables_are_those_that_the_sql_names() -> None:
    head = "log: {path: d}\ntables: {planes: {topic: planes}, airports: {table: a.csv, format: csv}, more: {topic: m}}"
    lines = ("read: {topic: a}", "write: {topic: c, bootstrap.servers: 'h:1'}")
    found = step(*lines, "sql: SELECT value FROM input JOIN PLANES USING (key) JOIN airports ON TRUE", head=head)
    assert [(view.name, type(view.read)) for view in found.views] == [("planes", LogRead), ("airports", TableRead)]
    assert found.views[0].read.options == {"path": "/x/d", "subscribe": "planes", "isolation.level": "read_committed"}
    assert found.write.options["kafka.bootstrap.servers"] == "h:1"
    assert "path" not in found.write.options


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["write: {topic: a}"], "one of read, audit and compact is wanted, there is none"),
        (["read: {topic: a}", "audit: {topic: a}"], "not audit and read"),
        (["read: {topic: a}"], "write is wanted"),
        (["read: {table: a}", "write: {table: b}"], "p.yaml:7: .* one of the two must be a log"),
        (["read: {startingOffsets: latest}", "write: {topic: b}"], "p.yaml:6: step one: read: one of topic"),
        (["read: {topic: a, assign: '{}'}", "write: {topic: b}"], "p.yaml:6: step one: read: assign"),
        (["read: {topic: a, startingOffsets: soon}", "write: {topic: b}"], "p.yaml:6: step one: read: startingOffsets"),
        (["read: {topic: a, endingTimestamp: 5}", "write: {topic: b}"], "p.yaml:6: .*streams go on"),
        (["read: {topic: a, value.format: jsn}", "write: {topic: b}"], "did you mean 'json'"),
        (["read: {topic: a}", "mode: updat", "write: {topic: b}"], "p.yaml:7: step one: mode=updat"),
        (["read: {topic: a}", "trigger: often", "write: {topic: b}"], "p.yaml:7: step one: trigger=often"),
        (["read: {topic: a}", "mode: update", "write: {table: b}"], "`compact` that to a table"),
        (["read: {table: a}", "mode: update", "write: {topic: b}"], "a table is read as a batch"),
        (["read: {topic: a}", "write: {table: b, format: csv}"], "p.yaml:7: .*one of parquet, delta"),
        (["read: {topic: a}", "write: {table: b, partition.by: batch}"], "the pipeline's own"),
        (["read: {topic: a}", "write: {topic: b, jobId: x}"], "a stream's batches have names"),
        (["read: {topic: a}", "write: {topic: b, exactlyOnce: maybe}"], "true or false"),
        (["read: {table: a}", "write: {topic: b, jobId: x, exactlyOnce: false}"], "nothing is looked up"),
        (["audit: {topic: a, fail.on: gap}"], "p.yaml:6: .*gap is not one of gaps, duplicates, difference"),
        (["audit: {topic: a, value.format: json, value.schema: i INT}"], "an audit looks at bytes"),
        (["audit: {topic: a}", "write: {topic: b}"], "written as a table"),
        (["audit: {topic: a}", "sql: SELECT 1"], "p.yaml:7: step one: sql is for steps that read and write"),
        (["audit: {topic: a, watermark: 1 day}"], "it is for streams"),
    ],
)
def test_what_is_wrong_is_refused(lines: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        step(*lines)


def test_a_log_without_a_place_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"p\.yaml:6: step one: read: where is the log"):
        step("read: {topic: a}", "write: {topic: b}", head="spark: {}")


def test_some_steps() -> None:
    text = "name: p\nlog: {path: d}\nsteps:\n  one: {audit: {topic: a}}\n  two: {audit: {topic: b}}\n"
    found = read(text, "p.yaml", {})
    assert [row.name for row in plan(found, ["two"])] == ["two"]
    with pytest.raises(ConfigError, match=r"--only: tow: .*did you mean two\?"):
        plan(found, ["tow"])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT value FROM input", "value"),
        ("select count(*) from input", "offset"),
        ("SELECT Value.*, `OFFSET` FROM input", "value offset"),
        ("SELECT * FROM input", "key value topic partition offset timestamp timestampType"),
        ("SELECT *, headers FROM input", "key value topic partition offset timestamp timestampType headers"),
        ("SELECT value FROM input NATURAL JOIN t", "key value topic partition offset timestamp timestampType"),
        ("FROM input |> WHERE offset > 3", "key value topic partition offset timestamp timestampType"),
        ("SELECT headers[0].value FROM input", "value headers"),
    ],
)
def test_columns_that_a_query_can_mean(sql: str, expected: str) -> None:
    assert " ".join(queries.columns(sql)) == expected


def test_rows_for_a_log() -> None:
    assert queries.for_log(["key", "value", "topic"], {}, True) == ["`key` AS key", "`value` AS value"]
    assert queries.for_log(["value", "topic"], {}, False) == ["`value` AS value", "`topic` AS topic"]
    found = queries.for_log(["key", "a", "b c"], {"key": "a", "partition": "1"}, True)
    assert found == ["a AS key", "to_json(struct(`a`, `b c`)) AS value", "1 AS partition"]
    types = {"key": "bigint", "value": "struct<a:int>", "partition": "bigint", "topic": "string"}
    expected = ["CAST(key AS STRING) AS key", "to_json(value) AS value", "CAST(partition AS INT) AS partition", "topic"]
    assert queries.as_log(types) == expected
    assert queries.as_log({"key": "binary", "value": "string"}) == ["key", "value"]


def test_a_date_column_comes_from_the_timestamp() -> None:
    assert queries.with_date(["_timestamp", "timestamp"], ["date"]) == "CAST(`_timestamp` AS DATE)"
    assert queries.with_date(["timestamp"], ["date"]) == "CAST(`timestamp` AS DATE)"
    assert queries.with_date(["timestamp", "date"], ["date"]) is None
    assert queries.with_date(["timestamp"], ["topic"]) is None


def audit_row(topic: str, records: int, checksum: int, **more: int) -> dict[str, Any]:
    counts = {"gaps": 0, "missing": 0, "duplicates": 0, "keyless": 0, "tombstones": 0, "bytes": 9, **more}
    return queries.audited({"topic": topic, "partition": 0, "records": records, "checksum": str(checksum), **counts})


def test_totals_and_complaints() -> None:
    rows = [audit_row("a", 2, -1, gaps=1, missing=4), audit_row("a", 1, 3), audit_row("b", 3, 2, duplicates=1)]
    assert rows[0]["checksum"] == "ffffffffffffffff"
    sums = queries.totals(rows)
    assert [(row["topic"], row["records"], row["checksum"]) for row in sums] == [
        ("a", 3, "0000000000000002"),
        ("b", 3, "0000000000000002"),
    ]
    assert queries.complaints((), sums) == []
    assert queries.complaints(("difference",), sums) == []
    assert queries.complaints(("gaps", "duplicates"), sums) == [
        "a: 4 offsets are missing, in 1 gaps",
        "b: 1 records are there more than once",
    ]
    other = queries.totals([*rows, audit_row("c", 3, 3)])
    assert len(queries.complaints(("difference",), other)) == 1


def test_an_audit_of_topics_that_have_nothing() -> None:
    rows = queries.with_empty([audit_row("b", 2, 7)], [("b", 1), ("b", 0), ("a", 0), ("c", 0)])
    assert [(row["topic"], row["partition"], row["records"]) for row in rows] == [
        ("a", 0, 0),
        ("b", 0, 2),
        ("b", 1, 0),
        ("c", 0, 0),
    ]
    assert set(rows[0]) > set(rows[1]), "it has every column"
    assert (rows[0]["first"], rows[0]["checksum"]) == (None, "0000000000000000")
    sums = queries.totals(rows)
    assert [(row["topic"], row["records"]) for row in sums] == [("a", 0), ("b", 2), ("c", 0)]
    (told,) = queries.complaints(("difference",), sums)
    assert told.startswith("b: 2 records"), "two empty topics are equal"


def test_a_difference_needs_two_topics() -> None:
    """A pattern finds no topic that is gone."""
    assert queries.complaints(("difference",), []) == ["there is nothing to compare: no topic is all that was found"]
    assert "b is all" in queries.complaints(("difference",), queries.totals([audit_row("b", 2, 7)]))[0]


def test_what_spark_says_is_cut_to_its_reason() -> None:
    text = (
        'x: Traceback (most recent call last):\n  File "a.py", line 1\nlogkernel.errors.ConfigError: no: way\n at java'
    )
    assert queries.essence(text) == "logkernel.errors.ConfigError: no: way"
    assert queries.essence("[STREAM_FAILED] Query [id = 1] terminated with exception: [X] no\nmore") == "[X] no"
    assert queries.essence("[TABLE_OR_VIEW_NOT_FOUND] none\n== SQL ==") == "[TABLE_OR_VIEW_NOT_FOUND] none"
    call = "An error occurred while calling o80.start.\n: java.io.IOException: no chmod\n\tat java.lang.Thread.run"
    assert queries.essence(call) == "java.io.IOException: no chmod"


def test_planning_needs_no_spark() -> None:
    code = (
        "import sys; from logkernel.kernel import Kernel;"
        "p = Kernel().connector('spark').pipeline(sys.argv[1], {});"
        "assert p.plan(); assert 'pyspark' not in sys.modules"
    )
    example = Path(__file__).resolve().parents[3] / "examples" / "flights" / "pipeline.yaml"
    subprocess.run([sys.executable, "-c", code, str(example)], check=True)
