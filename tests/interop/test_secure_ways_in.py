"""Ways into a broker of `--secure` by the file that it writes: Spark's own connector and ours, a pipeline, and commands
that read and measure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel.cli import main

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]
WRONG = "hunter2-planted"


@pytest.fixture(scope="module")
def secure(start_module_broker: Callable[..., Any]) -> Any:
    return start_module_broker("--secure", "--set", "group.initial.rebalance.delay.ms=0")


@pytest.fixture(scope="module")
def file(secure: Any) -> Path:
    return Path(secure.data) / "security" / "client.properties"


@pytest.fixture(scope="module")
def settings(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


@pytest.fixture
def wrong(settings: dict[str, str]) -> dict[str, str]:
    """With another password."""
    name, (before, _, after) = "sasl.jaas.config", settings["sasl.jaas.config"].rpartition('password="')
    assert before
    return settings | {name: f'{before}password="{WRONG}{after[after.index(chr(34)) :]}'}


def options(bootstrap: str, settings: dict[str, str]) -> dict[str, str]:
    """Of either source of Spark."""
    named = {f"kafka.{name}": value for name, value in settings.items()}
    return {"kafka.bootstrap.servers": bootstrap, **named}


def test_both_sources_of_spark(
    spark: Any, secure: Any, settings: dict[str, str], wrong: dict[str, str], tmp_path: Path
) -> None:
    """Its own writes a batch, ours streams it to a second topic, its own reads that; refused, each says so."""
    given = options(secure.bootstrap, settings)
    rows = spark.range(100).selectExpr("concat('value ', id) AS value")
    rows.write.format("kafka").options(**given).option("topic", "first").save()
    source = spark.readStream.format("logkernel").options(**given).option("startingOffsets", "earliest")
    stream = source.option("subscribe", "first").load().selectExpr("key", "value").writeStream.format("logkernel")
    stream = (
        stream.options(**given).option("topic", "second").option("checkpointLocation", str(tmp_path / "checkpoint"))
    )
    stream.trigger(availableNow=True).start().awaitTermination()
    found = spark.read.format("kafka").options(**given).option("subscribe", "second").load().select("value").collect()
    assert sorted(bytes(row.value) for row in found) == sorted(b"value %d" % number for number in range(100))

    for name in ("kafka", "logkernel"):
        refused = spark.read.format(name).options(**options(secure.bootstrap, wrong)).option("subscribe", "second")
        with pytest.raises(Exception, match="invalid user name or password") as raised:
            refused.load().count()
        assert WRONG not in str(raised.value)


def test_a_pipeline(
    spark: Any, secure: Any, settings: dict[str, str], file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with logkernel.connect(secure.bootstrap, **settings) as log, log.producer() as producer:
        for number in range(50):
            producer.send("orders", b"%d" % number)
    lines = "".join(f"  kafka.{name}: ${{file:{file}:{name}}}\n" for name in settings)
    step = f"lake: {{read: {{topic: orders}}, write: {{table: {tmp_path}/lake}}}}"
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text(f"name: p\nlog:\n  bootstrap.servers: {secure.bootstrap}\n{lines}steps:\n  {step}\n")
    assert main(["pipeline", "run", str(pipeline), "--json"]) == 0
    (row,) = map(json.loads, capfd.readouterr().out.splitlines())
    assert row["records"] == 50


def test_commands_that_measure_and_query(
    secure: Any,
    settings: dict[str, str],
    wrong: dict[str, str],
    file: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    way_in = ["-b", secure.bootstrap, "--command-config", str(file)]
    with logkernel.connect(secure.bootstrap, **settings) as log:
        log.create_topic("measured", partitions=2)
    sizes = ["--topic", "measured", "--num-records", "500", "--record-size", "100", "--throughput", "-1"]
    assert main(["perf", "produce", *way_in, *sizes, "--json"]) == 0
    assert main(["perf", "consume", *way_in, "--topic", "measured", "--messages", "500", "--json"]) == 0
    capfd.readouterr()
    assert main(["query", *way_in, "--json", "SELECT count(*) AS n FROM measured"]) == 0
    assert json.loads(capfd.readouterr().out) == {"n": 500}
    assert main(["perf", "latency", *way_in, "--topic", "measured", "--num-records", "20", "--json"]) == 0
    capfd.readouterr()

    bad = tmp_path / "bad.properties"
    bad.write_text("".join(f"{name}={value}\n" for name, value in wrong.items()))
    for command in (["query", "SELECT count(*) FROM measured"], ["perf", "produce", *sizes]):
        assert main([*command, "-b", secure.bootstrap, "--command-config", str(bad)]) != 0
        said = capfd.readouterr().err
        assert "invalid user name or password" in said
        assert WRONG not in said
