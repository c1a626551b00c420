"""`logkernel perf` as a user calls it: over an embedded log, and over a broker's socket."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel.cli.app import run
from logkernel.perf import plots, sweep
from logkernel.perf.figures import CONSUMED

PRODUCED = (
    r"{} records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, [\d.]+ ms max latency,"
    r" \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[logkernel.EmbeddedLog, str]]:
    with logkernel.open(tmp_path / "served") as log:
        yield log, log.listen()


def test_produce_prints_windows_and_a_total(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(tmp_path / "data")
    arguments = "perf produce --num-records 3000 --record-size 50 --throughput 10000 --reporting-interval 100"
    assert run([*arguments.split(), "--data", data, "--topic", "t", "--partitions", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert all(re.fullmatch(r"\d+ records sent, .* ms max latency\.", line) for line in lines[:-1])
    assert re.fullmatch(PRODUCED.format(3000), lines[-1])
    assert 0 < float(lines[-1].split()[3]) < 11_000
    with logkernel.open(data) as log:
        assert log.topics() == {"t": 2}
        values = [record.value for index in range(2) for record in log.read("t", index)]
    assert len(values) == 3000
    assert {len(value or b"") for value in values} == {50}


def test_consume_prints_kafkas_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(tmp_path / "data")
    assert run(["perf", "produce", "--num-records", "500", "--data", data, "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (told[-1]["kind"], told[-1]["records"]) == ("total", 500)
    assert run(["perf", "consume", "--messages", "500", "--data", data, "--group", "g"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head == ", ".join(("start.time", "end.time", *CONSUMED))
    cells = dict(zip(head.split(", "), line.split(", "), strict=True))
    assert cells["data.consumed.in.nMsg"] == "500"
    assert cells["data.consumed.in.MB"] == f"{50_000 / 1024 / 1024:.4f}"
    assert int(cells["rebalance.time.ms"]) >= 0
    with logkernel.open(data) as log, log.consumer("perf", group="g") as consumer:
        assert consumer.committed([("perf", 0)])["perf", 0].offset == 500  # type: ignore[index]


def test_consume_in_memory_is_filled_first(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "perf consume --num-records 400 --record-size 10 --partitions 3 --json --reporting-interval 1"
    assert run(arguments.split()) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[-1]["kind"] == "total"
    assert rows[-1]["data.consumed.in.nMsg"] == 400
    assert sum(row["data.consumed.in.nMsg"] for row in rows if row["kind"] == "window") <= 400


def test_fewer_records_than_asked_for_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--num-records", "10", "--data", str(tmp_path / "d"), "--timeout", "50"]
    assert run(["perf", "consume", *arguments]) == 1
    assert "only 0 of 10 records were read: no more came for 50 ms; raise --timeout" in capsys.readouterr().err


def test_latency_over_a_socket(served: tuple[Any, str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["perf", "latency", "--bootstrap", served[1], "--num-records", "30", "--record-size", "7"]
    assert run(arguments) == 0
    acknowledged, average, percentiles = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"Avg latency: \d+\.\d{4} ms", average)
    assert re.fullmatch(r"Percentiles: 50th = [\d.]+, 99th = [\d.]+, 99\.9th = [\d.]+", percentiles)
    assert acknowledged.startswith("Acknowledged: ")
    assert run([*arguments, "--json"]) == 0
    one, both = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert 0 < one["avgMs"] < both["avgMs"]
    assert one["records"] == both["records"] == 30


def test_latency_tells_of_others_on_its_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from logkernel.errors import LogkernelError
    from logkernel.perf.latency import LatencyJob, latency

    with logkernel.open(tmp_path / "d") as log:
        log.create_topic("t")
        job = LatencyJob("t", 5, 10)
        with pytest.raises(LogkernelError, match="of its own"):
            latency(log, job, lambda done: log.append("t", b"another"))


def test_settings_are_kafkas_in_any_spelling(
    served: tuple[logkernel.EmbeddedLog, str], capsys: pytest.CaptureFixture[str]
) -> None:
    log, address = served
    arguments = ["--num-records", "20", "--topic", "t", "--set", "linger.ms=1"]
    props = ["--producer-props", f"bootstrap.servers={address}", "acks=1", "compression.type=gzip"]
    assert run(["perf", "produce", *arguments, *props]) == 0
    assert len(list(log.read("t"))) == 20
    assert log.topics()["t"] == 1
    for bad, text in (
        (["--set", "nonsense"], "not of the form NAME=VALUE"),
        (["--set", "lingerms=1"], "did you mean"),
        (["--data", "d", "--bootstrap", address], "exclude each other"),
        (["--partitions", "7", "--bootstrap", address], "exists with 1 partitions, not 7; use another --topic"),
    ):
        assert run(["perf", "produce", "--num-records", "1", "--topic", "t", *bad]) == 2
        assert text in capsys.readouterr().err


def test_records_that_fail_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with logkernel.open(tmp_path / "d") as log:
        log.create_topic("t", max_message_bytes=100)
    assert run(["perf", "produce", "--num-records", "3", "--topic", "t", "--data", str(tmp_path / "d")]) == 1
    told = capsys.readouterr()
    assert told.out.startswith("0 records sent")
    assert "3 records failed" in told.err


def test_a_terminal_is_told_on_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("logkernel.cli.perf.TERMINAL_S", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run(["perf", "produce", "--num-records", "300", "--data", str(tmp_path / "d")]) == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 1  # the total: windows are shown on stderr, and gone
    assert "records sent" in told.err


# ---------------------------------------------------------------- sweeps


@pytest.mark.long
def test_a_sweep_draws_and_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "drawn"
    arguments = "perf sweep --num-records 400 --runs 1 --producers 1,2 --consumers 1,2 --partitions 1,2 --sizes 10,1000"
    assert run([*arguments.split(), "--out", str(out), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    said = {row["experiment"]: row for row in rows if row["kind"] == "claim"}
    assert list(said) == [row.name for row in sweep.EXPERIMENTS]
    assert (said["replication"]["outcome"], said["replication"]["why"]) == (
        "not measured",
        "not measured here: one broker",
    )
    assert all(row["outcome"] in ("held", "partly", "did not hold") for row in said.values() if row["why"][0] != "n")
    measured = [(row["experiment"], row["x"]) for row in rows if row["kind"] == "point"]
    assert measured == [
        *(("producers", 1), ("producers", 2), ("consumers", 1), ("consumers", 2)),
        *(("partitions", 1), ("partitions", 2), ("message-size", 10), ("message-size", 1000)),
    ]
    assert all(row["recordsPerSec"] > 0 for row in rows if row["kind"] == "point")
    assert (out / "sweep.svg").read_text().startswith("<?xml")
    assert (out / "sweep.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_a_sweep_of_a_cluster_leaves_nothing_behind(
    served: tuple[logkernel.EmbeddedLog, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotext")
    log, address = served
    arguments = ["--bootstrap", address, "--num-records", "200", "--runs", "1", "--out", str(tmp_path)]
    assert run(["perf", "sweep", "--only", "consumers,replication", "--consumers", "1,5", *arguments]) == 0
    told = capsys.readouterr().out
    assert "claim: consumption is in proportion" in told
    assert "thousand records/s" in told
    assert "here: not measured (not measured here: one broker)" in told
    assert log.topics() == {}


def test_a_sweep_refuses_before_it_measures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sweep, "served", lambda: pytest.fail("nothing must be measured"))
    assert run(["perf", "sweep", "--only", "producers,sizes"]) == 2
    assert "there is no experiment sizes; use some of producers" in capsys.readouterr().err
    assert run(["perf", "sweep", "--producers", "1,x"]) == 2
    monkeypatch.setattr(plots, "find_spec", lambda name: None)
    assert run(["perf", "sweep"]) == 2
    assert "pip install 'logkernel[perf]'" in capsys.readouterr().err


def test_a_worker_that_fails_says_why() -> None:
    from logkernel.errors import LogkernelError

    job = {
        "kind": "produce",
        "bootstrap": "127.0.0.1:1",
        "connect": {},
        "topic": "t",
        "settings": {"max_block_ms": 300},
    }
    with pytest.raises(LogkernelError, match=r"a worker failed: (?s:.)*no metadata"):
        sweep.run_together([{**job, "records": 1, "size": 1}])


def test_nothing_of_it_is_imported_before_it_is_called() -> None:
    import subprocess

    text = "import sys, logkernel.cli.app; print([m for m in sys.modules if 'perf' in m or m == 'matplotlib'])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
