"""`logkernel perf` beside Kafka's own tools: the same lines to the same number of digits; and against Apache Kafka."""

from __future__ import annotations

import json
import re
import subprocess
from types import ModuleType
from typing import Any

import pytest

import logkernel
from logkernel.cli.app import run

pytestmark = pytest.mark.interop


def shape(line: str) -> str:
    """A line with its numbers taken out, but for how many digits follow the point; 99.9th is a name."""

    def digits(found: re.Match[str]) -> str:
        return "N" + "d" * (len(found[1]) - 1 if found[1] else 0)

    return re.sub(r"(?<![\d.])\d+(\.\d+)?(?![\d.]*th)(?!\d)", digits, line)


def tool(apache_kafka: ModuleType, main: str, *arguments: str) -> list[str]:
    command = apache_kafka.java(f"org.apache.kafka.tools.{main}", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_produce_prints_the_lines_of_kafkas_tool(
    apache_kafka: ModuleType, broker: Any, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--topic", topic, "--num-records", "60000", "--record-size", "100", "--throughput", "10000"]
    place = ["--producer-props", f"bootstrap.servers={broker.bootstrap}", "acks=all"]
    told = tool(apache_kafka, "ProducerPerformance", *arguments, *place)
    theirs = [line for line in told if "deprecated" not in line]
    assert run(["perf", "produce", *arguments, *place]) == 0
    ours = capsys.readouterr().out.splitlines()
    assert shape(ours[-1]) == shape(theirs[-1])
    assert len(theirs) > 1, "six seconds have a window"
    assert len(ours) > 1
    assert {shape(line) for line in ours[:-1]} == {shape(line) for line in theirs[:-1]}


def test_consume_prints_the_columns_of_kafkas_tool(
    apache_kafka: ModuleType, broker: Any, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--bootstrap-server", broker.bootstrap, "--topic", topic]
    assert run(["perf", "produce", *place, "--num-records", "5000"]) == 0
    capsys.readouterr()
    theirs = [line for line in tool(apache_kafka, "ConsumerPerformance", *place, "--messages", "5000") if ", " in line]
    assert run(["perf", "consume", *place, "--messages", "5000", "--group", topic]) == 0
    ours = capsys.readouterr().out.splitlines()
    assert ours[0] == theirs[0]
    assert shape(ours[1]) == shape(theirs[1])
    assert ours[1].split(", ")[2] == theirs[1].split(", ")[2]  # MB
    assert ours[1].split(", ")[4] == theirs[1].split(", ")[4] == "5000"


def test_the_tools_work_against_apache_kafka(kafka: str, topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--bootstrap", kafka, "--topic", topic, "--json"]
    assert run(["perf", "produce", *place, "--num-records", "3000", "--partitions", "2"]) == 0
    assert run(["perf", "consume", *place, "--num-records", "3000", "--group", topic]) == 0
    place[3] = f"{topic}-alone"
    assert run(["perf", "latency", *place, "--num-records", "20"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row.get("records", row.get("data.consumed.in.nMsg")) for row in rows] == [3000, 3000, 20, 20]
    with logkernel.connect(kafka) as log:
        assert log.topics()[topic] == 2
