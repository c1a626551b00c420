"""Pipelines on a real Spark: the flights example, and docs/pipelines.md, against records computed in plain Python."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from module_files import load_module
from spark_judged import SPARK

import logkernel
from logkernel.cli import main

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "flights"
PAGE = (ROOT / "docs" / "pipelines.md").read_text()


@pytest.fixture(scope="module")
def bootstrap(start_module_broker: Any) -> str:
    return str(start_module_broker().bootstrap)


@pytest.fixture
def pipeline(spark: Any, bootstrap: str, capfd: pytest.CaptureFixture[str]) -> Any:
    """`logkernel pipeline run`, in this process and its Spark; the rows it says."""

    def run(file: Path, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
        capfd.readouterr()
        found = main(["pipeline", "run", str(file), "--json", "--set", f"bootstrap={bootstrap}", *arguments])
        out, error = capfd.readouterr()
        assert found == code, f"{found}: {error}\n{out}"
        return [json.loads(line) for line in out.splitlines()]

    return run


def outcome(rows: list[dict[str, Any]], step: str) -> dict[str, Any]:
    """The last row of a step."""
    return [row for row in rows if row["step"] == step][-1]


def records(bootstrap: str, topic: str) -> list[Any]:
    """All that a reader of committed records gets, partition by partition."""
    with logkernel.connect(bootstrap) as log:
        rows: list[Any] = log.table(topic, isolation="read_committed").read_all().to_pylist()
    return rows


def parquet(folder: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(folder).to_pylist()
    return rows


# ---------------------------------------------------------------- the example


def expected_delays(load: ModuleType, since: int, until: int) -> dict[str, dict[str, Any]]:
    """What the example's SQL says, by key."""
    weather = dict(load.weather(until))
    seats = {tail: row["seats"] for tail, row in load.planes()}
    found: dict[str, dict[str, Any]] = {}
    for when, row in load.flights(since, until):
        day = when.date().isoformat()
        key = f"{day}/{row['carrier']}/{row['origin']}"
        names = ("flights", "departed", "delay_min", "foul", "foul_min", "seats")
        who = {"day": day, "carrier": row["carrier"], "origin": row["origin"]}
        total = found.setdefault(key, {**who, **dict.fromkeys(names, 0)})
        total["flights"] += 1
        total["seats"] += seats.get(row["tailnum"]) or 0
        delay = row["dep_delay"]
        if delay is None:
            continue
        total["departed"] += 1
        total["delay_min"] += delay
        sky = weather.get(f"{row['origin']}/{row['time_hour']}", {})
        visib, precip = sky.get("visib"), sky.get("precip")
        if (visib is not None and visib < 5) or (precip is not None and precip > 0):
            total["foul"] += 1
            total["foul_min"] += delay
    return found


def uncommit(checkpoint: Path) -> None:
    """As if the driver had died between the first micro-batch's end and Spark's note of it."""
    for folder, kept in (("offsets", {"0"}), ("commits", set())):
        for path in (checkpoint / folder).iterdir():
            if path.name.strip(".").removesuffix(".crc") not in kept:
                path.unlink()


@pytest.mark.longest
def test_the_flights_example(pipeline: Any, bootstrap: str, tmp_path: Path) -> None:
    load, chart = load_module(EXAMPLE / "load.py"), load_module(EXAMPLE / "chart.py")
    file, out = EXAMPLE / "pipeline.yaml", tmp_path / "out"
    given = ("--set", f"out={out}", *(("--set", "most=") if SPARK < (4, 2) else ()))
    first = load.load(bootstrap, 9, 11)
    rows = pipeline(file, *given)
    whole = [row for row in rows if row["step"] == "whole" and row.get("partition") is None and "records" in row]
    assert [(row["records"], row["missing"], row["duplicates"]) for row in whole] == [(first, 0, 0)]
    assert outcome(rows, "typed")["records"] == outcome(rows, "delays")["records"] == first

    for step in ("typed", "delays"):
        uncommit(out / "state" / step)
    more = load.load(bootstrap, 11, 12)
    rows = pipeline(file, *given, "--only", "typed,delays,result")
    assert outcome(rows, "typed")["records"] == outcome(rows, "delays")["records"] == first + more, "replayed"
    written = Counter((row["key"], row["value"]) for row in records(bootstrap, "delays"))
    assert set(written.values()) == {1}, "a replay writes nothing again"

    expected = expected_delays(load, 9, 12)
    latest = {row["key"].decode(): json.loads(row["value"]) for row in records(bootstrap, "delays")}
    assert latest == expected
    assert any(row["foul"] for row in expected.values())
    fields = list(next(iter(expected.values())))
    assert {row["_key"]: {name: row[name] for name in fields} for row in parquet(out / "delays")} == expected

    typed = parquet(out / "flights")
    places = {(row["_partition"], row["_offset"]) for row in typed}
    assert len(typed) == len(places) == first + more
    assert Counter((row["carrier"], row["flight"], row["time_hour"], row["tailnum"]) for row in typed) == Counter(
        (row["carrier"], row["flight"], row["time_hour"], row["tailnum"]) for _, row in load.flights(9, 12)
    )
    assert all(str(row["date"]) == row["_timestamp"].date().isoformat() for row in typed)

    chart.draw(str(out / "delays"), str(tmp_path / "delays.svg"))
    drawn, shown = ((tmp_path / "delays.svg").read_text(), (ROOT / "docs/pictures/flights-delays.svg").read_text())
    assert all("Kennedy (JFK)" in text and "mean departure delay" in text for text in (drawn, shown))


# ---------------------------------------------------------------- the page

ORDERS = [{"id": number, "customer": f"c{number % 5}", "amount": float(number * 37 % 250)} for number in range(300)]
CUSTOMERS = [(f"c{number % 5}", {"name": f"n{number}", "country": ("no", "se")[number % 2]}) for number in range(13)]


@pytest.fixture(scope="module")
def orders(bootstrap: str) -> list[dict[str, Any]]:
    """The topics of the page: three partitions of orders, customers whose last value counts, one of them gone."""
    with logkernel.connect(bootstrap) as log:
        for topic, partitions in (("orders", 3), ("orders-6", 6), ("large-orders", 2), ("small-orders", 1)):
            log.create_topic(topic, partitions)
        for topic in ("customers", "customers-small"):
            log.create_topic(topic, 2, config={"cleanup.policy": "compact"})
        with log.producer() as producer:
            for row in ORDERS:
                producer.send(
                    "orders", json.dumps(row).encode(), row["customer"].encode(), headers={"n": b"%d" % row["id"]}
                )
            for key, row in CUSTOMERS:
                producer.send("customers", json.dumps(row).encode(), key.encode())
            producer.send("customers", None, b"c4")
    return ORDERS


def test_the_page(
    pipeline: Any, bootstrap: str, orders: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/pipelines.md: its pipeline run twice, and its Python."""
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    file, lake = tmp_path / "pipeline.yaml", tmp_path / "lake"
    file.write_text(text)
    rows = pipeline(file, "--set", f"lake={lake}")
    assert outcome(rows, "same") == {"step": "same", "kind": "audit", "done": True}
    again = pipeline(file, "--set", f"lake={lake}", "--only", "lake,small,back")
    assert outcome(again, "lake")["records"] == 0

    assert sorted(row["id"] for row in parquet(lake / "orders")) == list(range(300))
    customers = {**dict(CUSTOMERS)}
    del customers["c4"]
    assert {row["_key"]: (row["name"], row["country"]) for row in parquet(lake / "customers")} == {
        key: (row["name"], row["country"]) for key, row in customers.items()
    }
    large = {
        json.loads(row["value"])["id"]: (row["key"], json.loads(row["value"]))
        for row in records(bootstrap, "large-orders")
    }
    assert len(large) == len(records(bootstrap, "large-orders"))
    for order in orders:
        if order["amount"] >= 100:
            key, value = large.pop(order["id"])
            customer = customers.get(order["customer"])
            assert key == (customer and customer["country"].encode())
            assert value.get("name") == (customer and customer["name"])
    assert not large
    small = [json.loads(row["value"]) for row in records(bootstrap, "small-orders")]
    assert sorted(row["id"] for row in small) == [row["id"] for row in orders if row["amount"] < 100]
    kept = {row["key"].decode(): json.loads(row["value"]) for row in records(bootstrap, "customers-small")}
    assert kept == customers
    assert len(records(bootstrap, "customers-small")) == len(customers)
    by_key = defaultdict(set)
    for row in records(bootstrap, "orders-6"):
        by_key[row["key"]].add(row["partition"])
    assert all(len(found) == 1 for found in by_key.values())

    monkeypatch.chdir(tmp_path)
    world: dict[str, Any] = {"bootstrap": bootstrap, "lake": str(lake)}
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "docs/pipelines.md", "exec"), world)
    assert sum(count for _, count in world["rows"].fetchall()) == 300


# ---------------------------------------------------------------- what goes wrong


def test_an_audit_finds_what_is_wrong(pipeline: Any, bootstrap: str, tmp_path: Path) -> None:
    with logkernel.connect(bootstrap) as log:
        log.create_topic("torn", 2)
        log.create_topic("torn-copy", 1)
        with log.producer(transactional_id="torn") as producer:
            producer.init_transactions()
            for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
                producer.begin_transaction()
                for number in range(4):
                    producer.send("torn", b"v%d" % number, b"k", partition=0)
                producer.flush()
                end()
            with producer.transaction():
                producer.send("torn", None, None, partition=1)
                producer.send("torn-copy", b"v0", b"k", partition=0)
    file = tmp_path / "audit.yaml"
    file.write_text(
        'name: audit\nparameters: {bootstrap: }\nlog: {bootstrap.servers: "${bootstrap}"}\nsteps:\n'
        '  found: {audit: {topic: "torn,torn-copy", fail.on: [gaps, duplicates, difference]}, write: {table: t}}\n'
        "  never: {audit: {topic: torn}}\n"
    )
    rows = pipeline(file, code=1)
    parts = [row for row in rows if row.get("partition") is not None]
    names = ("topic", "partition", "records", "first", "last", "gaps", "missing", "duplicates", "keyless", "tombstones")
    assert [tuple(row[name] for name in names) for row in parts] == [
        ("torn", 0, 8, 0, 13, 1, 6, 4, 0, 0),
        ("torn", 1, 1, 0, 0, 0, 0, 0, 1, 1),
        ("torn-copy", 0, 1, 0, 0, 0, 0, 0, 0, 0),
    ]
    assert len(outcome(rows, "found")["failed"]) == 3
    assert "never" not in {row["step"] for row in rows}
    assert sorted(row["records"] for row in parquet(tmp_path / "t")) == [1, 1, 8]


def test_an_audit_of_a_copy_that_is_lost(pipeline: Any, bootstrap: str, tmp_path: Path) -> None:
    """A topic without records has rows as well: nothing is not the same as something."""
    with logkernel.connect(bootstrap) as log:
        for topic, partitions in (("whole", 2), ("whole-copy", 2), ("whole-none", 1)):
            log.create_topic(topic, partitions)
        with log.producer() as producer:
            producer.send("whole", b"v", b"k", partition=1)
    file = tmp_path / "lost.yaml"

    def audit(topics: str, code: int) -> list[dict[str, Any]]:
        file.write_text(
            'name: lost\nparameters: {bootstrap: }\nlog: {bootstrap.servers: "${bootstrap}"}\nsteps:\n'
            f"  same: {{audit: {{{topics}, fail.on: difference}}, write: {{table: t}}}}\n"
        )
        rows: list[dict[str, Any]] = pipeline(file, code=code)
        return rows

    rows = audit("topic: 'whole,whole-copy'", 1)
    parts = [row for row in rows if row.get("partition") is not None]
    assert [(row["topic"], row["partition"], row["records"], row["last"]) for row in parts] == [
        ("whole", 0, 0, None),
        ("whole", 1, 1, 0),
        ("whole-copy", 0, 0, None),
        ("whole-copy", 1, 0, None),
    ]
    assert outcome(rows, "same")["failed"][0].startswith("whole-copy: 0 records")
    assert sorted((row["topic"], row["records"]) for row in parquet(tmp_path / "t")) == [
        ("whole", 0),
        ("whole", 1),
        ("whole-copy", 0),
        ("whole-copy", 0),
    ]
    assert outcome(audit("topic: 'whole-copy,whole-none'", 0), "same")["done"]
    assert "there is no topic 'gone'" in outcome(audit("topic: 'whole,gone'", 1), "same")["failed"][0]
    assert "nothing to compare" in outcome(audit("subscribePattern: '^whole$'", 1), "same")["failed"][0]


def test_what_cannot_be_is_said(
    pipeline: Any,
    bootstrap: str,
    orders: object,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    head = 'name: bad\nparameters: {bootstrap: }\nlog: {bootstrap.servers: "${bootstrap}"}\nsteps:\n'
    file = tmp_path / "bad.yaml"
    file.write_text(head + "  sql: {read: {topic: orders}, sql: SELECT nix FROM input, write: {table: t}}\n")
    (row,) = pipeline(file, code=1)
    assert "nix" in row["failed"][0]
    assert "\n" not in row["failed"][0]

    (tmp_path / "t").mkdir()
    file.write_text(head + "  lost: {read: {topic: orders}, write: {table: t}}\n")
    main(["pipeline", "run", str(file), "--set", f"bootstrap={bootstrap}"])
    assert "no progress in" in capfd.readouterr().err

    monkeypatch.setitem(sys.modules, "delta", None)
    file.write_text(head + "  lake: {read: {topic: orders}, write: {table: u, format: delta}}\n")
    assert main(["pipeline", "run", str(file), "--set", f"bootstrap={bootstrap}"]) == 2
    assert "pip install delta-spark" in capfd.readouterr().err


def test_a_stream_that_goes_on(spark: Any, bootstrap: str, tmp_path: Path, eventually: Any) -> None:
    """A time as the trigger: the stream runs on until the run is ended, and sees tables as they are by then."""
    from logkernel.plugins.spark.pipelines import load

    def append(topic: str, value: bytes) -> None:
        with logkernel.connect(bootstrap) as log, log.producer() as producer:
            producer.send(topic, value, b"k")

    with logkernel.connect(bootstrap) as log:
        for topic in ("ticks", "tocks", "names"):
            log.create_topic(topic, 1)
    append("names", b"a")
    append("ticks", b"1")
    file = tmp_path / "on.yaml"
    file.write_text(
        f"name: ticking\nlog: {{bootstrap.servers: '{bootstrap}'}}\ntables: {{names: {{topic: names}}}}\n"
        "steps:\n  on:\n"
        "    read: {topic: ticks}\n    trigger: 100 milliseconds\n    write: {topic: tocks}\n"
        "    sql: SELECT concat(input.value, names.value) AS value FROM input JOIN names ON names.key = 'k'\n"
    )
    told: list[Any] = []

    def tocks() -> list[bytes]:
        return [row["value"] for row in records(bootstrap, "tocks")]

    def tell(row: Any) -> None:
        """Ctrl-C when two micro-batches were seen."""
        told.append(row)
        eventually(lambda: tocks() == [b"1a"], 600, "the first record")
        append("names", b"b")
        append("ticks", b"2")
        eventually(lambda: len(tocks()) == 2, 600, "the second record")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(str(file), {}).run(tell)
    assert tocks() == [b"1a", b"2b"]
    assert told == [{"step": "on", "kind": "stream", "running": True}]
