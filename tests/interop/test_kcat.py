"""kcat, the C program: list, write and read back from a shell."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

pytestmark = pytest.mark.interop


@pytest.fixture
def run(kcat: str, broker_session: Any) -> Any:
    """Runs kcat against the broker; returns its stdout."""

    def call(*arguments: str, stdin: str = "") -> str:
        command = [kcat, "-b", broker_session.bootstrap, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_the_cluster_is_listed(run: Any, topic: str, make_topic: Any, broker_session: Any) -> None:
    make_topic(broker_session.bootstrap, topic, 3)
    listed = json.loads(run("-L", "-J"))
    assert [broker["name"] for broker in listed["brokers"]] == [broker_session.bootstrap]
    assert {found["topic"]: len(found["partitions"]) for found in listed["topics"]}[topic] == 3


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_written_is_read(run: Any, topic: str, codec: str) -> None:
    lines = [f"key{number}:value {number}" for number in range(500)]
    run("-P", "-t", topic, "-K:", "-z", codec, "-H", "origin=kcat", stdin="\n".join(lines))
    read = run("-C", "-t", topic, "-e", "-q", "-f", "%k:%s|%o|%h\n").splitlines()
    assert read == [f"{line}|{offset}|origin=kcat" for offset, line in enumerate(lines)]


def test_null_values_and_null_keys(run: Any, topic: str) -> None:
    run("-P", "-t", topic, "-K:", "-Z", stdin="gone:\n:anonymous\n")
    read = [json.loads(line) for line in run("-C", "-t", topic, "-e", "-q", "-J").splitlines()]
    assert [(record["key"], record["payload"]) for record in read] == [("gone", None), (None, "anonymous")]


def test_positions_counted_from_either_end(run: Any, topic: str) -> None:
    run("-P", "-t", topic, stdin="\n".join(map(str, range(50))))
    assert run("-C", "-t", topic, "-o", "-3", "-e", "-q").split() == ["47", "48", "49"]
    assert run("-C", "-t", topic, "-o", "10", "-c", "2", "-q").split() == ["10", "11"]


def test_a_group_reads_and_goes_on(run: Any, topic: str) -> None:
    run("-P", "-t", topic, stdin="a\nb\nc\n")
    assert run("-G", topic, "-X", "auto.offset.reset=earliest", "-c", "3", "-q", topic).split() == ["a", "b", "c"]
    run("-P", "-t", topic, stdin="d\n")
    assert run("-G", topic, "-X", "auto.offset.reset=earliest", "-c", "1", "-q", topic).split() == ["d"]


def test_an_idempotent_producer(run: Any, topic: str) -> None:
    run("-P", "-t", topic, "-X", "enable.idempotence=true", stdin="once\n")
    assert run("-C", "-t", topic, "-e", "-q").split() == ["once"]


def test_offsets_by_time(run: Any, topic: str) -> None:
    run("-P", "-t", topic, stdin="x\ny\n")
    first = json.loads(run("-C", "-t", topic, "-c", "1", "-q", "-J"))
    assert run("-Q", "-t", f"{topic}:0:{first['ts']}").split() == [topic, "[0]", "offset", "0"]
