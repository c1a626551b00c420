"""`log.table()`, `logkernel.connect().table()` and what reads them; SQL on topics."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel import aio
from logkernel.cli.app import run as command
from logkernel.errors import ConfigError, OffsetOutOfRange, UnknownTopicOrPartition
from logkernel.vocabulary import Record

pa = pytest.importorskip("pyarrow")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def fill(log: Any, name: str = "orders.eu-1") -> None:
    """Offset n of partition p: key k(n % 3), value {"id": n, "p": p}, time n seconds."""
    log.create_topic(name, 2)
    for index in range(2):
        rows = [
            Record(b"k%d" % (n % 3), json.dumps({"id": n, "p": index}).encode(), timestamp_ms=n * 1000)
            for n in range(100)
        ]
        log.append_many(name, rows, partition=index)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("query") / "data"
    with logkernel.open(folder) as log:
        fill(log)
        log.create_topic("other", 1)
        log.append("other", b"\xff\x00", key=b"\xfe")
    return folder


@pytest.fixture(scope="module", params=["open", "connect"])
def log(request: pytest.FixtureRequest) -> Iterator[Any]:
    with logkernel.open() as made:
        fill(made)
        if request.param == "open":
            yield made
        else:
            with logkernel.connect(made.listen()) as remote:
                yield remote


def found(reader: Any) -> dict[int, list[int]]:
    assert isinstance(reader, pa.RecordBatchReader)
    table, rows = reader.read_all(), {}
    for index in set(table["partition"].to_pylist()):
        rows[index] = table.filter(pa.compute.equal(table["partition"], index))["offset"].to_pylist()
    return rows


def span(first: int, last: int) -> list[int]:
    return list(range(first, last))


def test_where_a_table_begins_and_ends(log: Any) -> None:
    def table(**options: Any) -> dict[int, list[int]]:
        return found(log.table("orders.eu-1", **options))

    assert table() == {0: span(0, 100), 1: span(0, 100)}
    assert table(start=98, end=1000) == {0: [98, 99], 1: [98, 99]}
    assert table(start={0: 10, 1: "latest"}, end={0: 12}) == {0: [10, 11]}
    assert table(partitions=[1], end=2) == {1: [0, 1]}
    assert table(start=EPOCH + timedelta(seconds=97.5), end=EPOCH + timedelta(seconds=99)) == {0: [98], 1: [98]}
    assert table(start=EPOCH + timedelta(days=400)) == {}
    assert table(start="latest") == {}
    assert table(start=5, end=3) == {}
    assert log.table("orders.eu-1", columns=["value"]).schema.names == ["value"]


def test_what_a_table_refuses(log: Any) -> None:
    with pytest.raises(UnknownTopicOrPartition):
        log.table("nix")
    with pytest.raises(UnknownTopicOrPartition, match=r"has no partition 2 \(it has 2 partitions\)"):
        log.table("orders.eu-1", partitions=[2])
    with pytest.raises(OffsetOutOfRange, match=r"start 101 is not in 0\.\.100"):
        log.table("orders.eu-1", start=101)
    for bad in (-1, "first", 1.5, True):
        with pytest.raises(ConfigError):
            log.table("orders.eu-1", start=bad)
    with pytest.raises(ConfigError, match="time zone"):
        log.table("orders.eu-1", start=datetime(2020, 1, 1))
    with pytest.raises(ConfigError, match="isolation"):
        log.table("orders.eu-1", isolation="none")
    with pytest.raises(ConfigError, match="no column"):
        log.table("orders.eu-1", columns=["nix"])


def test_the_aio_twin_hands_out_batches() -> None:
    async def main() -> list[int]:
        async with await aio.open() as log:
            await log.create_topic("t", 1)
            await log.append_many("t", [Record(value=b"x") for _ in range(10)])
            rows = []
            async for batch in log.table("t", columns=["offset"], batch_rows=4, start=1):
                assert batch.num_rows <= 4
                rows += batch["offset"].to_pylist()
            address = await log.listen()
            remote = aio.connect(address)
            async for batch in remote.table("t", columns=["offset"], end=1):
                rows += batch["offset"].to_pylist()
            await remote.close()
            return rows

    assert asyncio.run(main()) == [*range(1, 10), 0]


# ---------------------------------------------------------------- SQL


@pytest.fixture
def sql(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    pytest.importorskip("duckdb")

    def ask(text: str, *options: str) -> Any:
        assert command(["query", text, "--data", str(folder), "--json", *options]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return ask


def test_sql_on_topics(sql: Any) -> None:
    rows = sql('select key, count(*) as n, max("offset") as last from "orders.eu-1" group by key order by key')
    assert rows == [{"key": f"k{n}", "n": (68, 66, 66)[n], "last": (99, 97, 98)[n]} for n in range(3)]
    assert sql('select count(*) as n from "ORDERS.EU-1"') == [{"n": 200}]
    rows = sql(
        'select a."offset" as o from "orders.eu-1" a join "orders.eu-1" b using (partition, "offset")'
        ' where a.partition = 1 and a."offset" between 97 and 98 order by 1'
    )
    assert rows == [{"o": 97}, {"o": 98}]
    (row,) = sql("""select * from "orders.eu-1" where timestamp = timestamptz '1970-01-01 00:00:07+00' limit 1""")
    assert row == {
        "partition": 0, "offset": 7, "timestamp": row["timestamp"], "key": "k1", "value": '{"id": 7, "p": 0}',
        "headers": None, "timestampType": 0, "topic": "orders.eu-1",
    }  # fmt: skip
    assert datetime.fromisoformat(row["timestamp"]) == EPOCH + timedelta(seconds=7)


def test_values_as_json_text_or_bytes(sql: Any) -> None:
    rows = sql("""select value->>'$.id' as id from "orders.eu-1" where (value->>'$.id')::int > 98""",
               "--value-format", "json")  # fmt: skip
    assert rows == [{"id": "99"}] * 2
    assert sql("select key, value from other") == [{"key": "�", "value": "�\0"}]
    assert sql("select key, value from other", "--value-format", "json") == [{"key": "�", "value": None}]
    assert sql("select octet_length(value) as n, value from other", "--value-format", "binary") == [
        {"n": 2, "value": "0xff00"}
    ]


def test_tables_and_csv_and_refusals(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    text = 'select "offset", key from "orders.eu-1" where partition = 0 and "offset" < 2 order by 1'
    assert command(["query", text, "--data", str(folder), "--csv"]) == 0
    assert capsys.readouterr().out == "offset,key\n0,k0\n1,k1\n"
    assert command(["query", text, "--data", str(folder)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["offset", "key"], ["0", "k0"], ["1", "k1"]]
    for bad, why in (("select nix from other", "nix"), ("selec", "syntax error"), ("select * from nowhere", "nowhere")):
        assert command(["query", bad, "--data", str(folder)]) == 2
        assert why in capsys.readouterr().err
    assert command(["query", text, "--data", "a", "--bootstrap", "b"]) == 2
    assert command(["query", text, "--data", str(folder / "nix")]) == 2


def test_only_what_a_query_needs_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb")
    from logkernel.table import open_source
    from logkernel.table.query import run

    source = open_source(path=folder)
    asked: list[Any] = []
    scan = source.scan

    def noted(partition: Any, start: int, end: int, **options: Any) -> Any:
        asked.append((partition.partition, start, end, set(options["columns"]), options["timestamps"]))
        return scan(partition, start, end, **options)

    monkeypatch.setattr(source, "scan", noted)

    def ask(text: str) -> list[Any]:
        asked.clear()
        with run(source, text) as (_, rows):
            return [row[0] for row in rows]

    assert ask('select count(*) from "orders.eu-1"') == [200]
    assert asked == [(index, 0, 100, {"partition"}, None) for index in range(2)], "no record is decoded"
    assert ask('select key from "orders.eu-1" where partition = 1 and "offset" >= 10 and "offset" < 12') == ["k1", "k2"]
    assert [row[:3] for row in asked] == [(1, 10, 12)]
    assert "value" not in asked[0][3]
    assert ask('select "offset" from "orders.eu-1" where "offset" > 97 and partition in (0, 7)') == [98, 99]
    assert [row[:3] for row in asked] == [(0, 98, 100)]
    assert ask("""select "offset" from "orders.eu-1" where timestamp >= timestamptz '1970-01-01 00:01:38+00'
                  and partition = 0""") == [98, 99]  # fmt: skip
    ((*_, times),) = asked
    assert times[0] == 98_000
    assert times[1] > 2**50
    assert ask("""select "offset" from "orders.eu-1" where partition = 0 and ("offset" = 3 or key = 'k0')""")[:3] == [
        0, 3, 6
    ]  # fmt: skip
    assert [row[:3] for row in asked] == [(0, 0, 100)], "the filter does not bound the offsets"


def test_sql_asks_the_cluster_that_the_option_or_the_environment_names(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    pytest.importorskip("duckdb")
    with logkernel.open() as log:
        log.create_topic("here", 1)
        log.append("here", b"x")
        address = log.listen()
        for option in ("-b", "--bootstrap", "--bootstrap-server"):
            assert command(["query", "select value from here", option, address, "--csv"]) == 0
            assert capsys.readouterr().out == "value\nx\n"
        monkeypatch.setenv("LOGKERNEL_BOOTSTRAP", address)
        assert command(["query", "select value from here", "--csv"]) == 0
        assert capsys.readouterr().out == "value\nx\n"
        assert command(["query", "select count(*) as n from other", "--csv", "--data", str(folder)]) == 0
        assert capsys.readouterr().out == "n\n1\n"
    assert command(["query", "select 1", "-b", "127.0.0.1:1"]) == 1
    assert "no broker answers at 127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_no_thread_that_read_the_log_outlives_a_query_that_a_limit_cut_short(
    folder: Path, eventually: Callable[..., None]
) -> None:
    """It would still be in Python when the interpreter ends, which aborts the process."""
    pytest.importorskip("duckdb")
    from logkernel.table import open_source
    from logkernel.table.query import run

    source = open_source(path=folder)
    readers = set()
    scan = source.scan

    def noted(*args: Any, **options: Any) -> Any:
        for batch in scan(*args, **options):
            readers.add(threading.get_native_id())
            for row in range(batch.num_rows):
                yield batch.slice(row, 1)

    source.scan = noted
    with run(source, 'select * from "orders.eu-1" limit 5') as (_, rows):
        assert len(list(rows)) == 5
    assert readers

    def over() -> bool:
        """The system may show a thread for a moment that was joined."""
        return readers & {int(name) for name in os.listdir("/proc/self/task")} <= {threading.get_native_id()}

    eventually(over, what="no thread that read is there")


@pytest.mark.parametrize("form", ["--csv", "--json"])
def test_a_query_that_a_limit_cut_short_ends_well(tmp_path: Path, form: str) -> None:
    pytest.importorskip("duckdb")
    data = str(tmp_path / "data")
    with logkernel.open(data) as log:
        log.create_topic("t", 3)
        for partition in range(3):
            for _ in range(10):
                log.append_many("t", [Record(value=b"value %d" % n) for n in range(10_000)], partition=partition)
    line = [sys.executable, "-m", "logkernel", "query", "select * from t limit 5", "--data", data, form]
    done = subprocess.run(line, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == (6 if form == "--csv" else 5)


def test_what_reading_the_log_raised_comes_through_a_query_as_it_was(folder: Path) -> None:
    pytest.importorskip("duckdb")
    from logkernel.table import open_source
    from logkernel.table.query import run

    source = open_source(path=folder)

    def scan(*args: Any, **options: Any) -> Any:
        raise OffsetOutOfRange("the records were removed")
        yield

    source.scan = scan
    with (
        pytest.raises(OffsetOutOfRange, match=r"^the records were removed$"),
        run(source, 'select max(value) from "orders.eu-1"') as (_, rows),
    ):
        list(rows)


def test_a_topic_as_a_dataset(folder: Path) -> None:
    from logkernel.table import open_source
    from logkernel.table.dataset import TopicDataset

    orders = TopicDataset(open_source(path=folder), "orders.eu-1", 2, text=True)
    late = pa.compute.field("offset") >= 98
    assert orders.count_rows() == 200
    assert orders.count_rows(filter=late) == 4
    assert orders.to_table(columns=["key"], filter=late)["key"].to_pylist() == ["k2", "k0"] * 2
    assert orders.head(3, columns=["offset"])["offset"].to_pylist() == [0, 1, 2]
    assert orders.take([0, 199], columns=["offset"])["offset"].to_pylist() == [0, 99]
    assert sum(batch.num_rows for batch in orders.to_batches()) == 200
    polars = pytest.importorskip("polars")
    frame = polars.scan_pyarrow_dataset(orders).filter(polars.col("offset") >= 98).select("key").collect()
    assert frame["key"].to_list() == ["k2", "k0"] * 2


# ---------------------------------------------------------------- others' readers


def test_polars_duckdb_and_pandas_take_a_table(folder: Path) -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    pytest.importorskip("pandas")
    with logkernel.open(folder) as log:
        frame = polars.from_arrow(log.table("orders.eu-1", columns=["partition", "offset", "value"]))
        last = frame.group_by("partition").agg(polars.col("offset").max()).sort("partition")
        assert last.rows() == [(0, 99), (1, 99)]
        orders = log.table("orders.eu-1")
        connection = duckdb.connect()
        assert connection.sql('select count(*), sum("offset") from orders').fetchall() == [(200, 9900)]
        connection.close()
        del orders
        pandas = log.table("orders.eu-1", start=99).read_pandas()
        assert pandas["value"].tolist() == [b'{"id": 99, "p": 0}', b'{"id": 99, "p": 1}']
        assert str(pandas["timestamp"].dtype).endswith("UTC]")
