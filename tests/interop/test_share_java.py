"""KafkaShareConsumer and the share group calls of the Java AdminClient, with their default settings."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.interop
SOURCE = Path(__file__).with_name("Share.java")
SHORT_LOCKS = ("--set", "group.share.min.record.lock.duration.ms=1000")

Run = Callable[[str], list[tuple[str, str]]]


@pytest.fixture(scope="module")
def classes(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("share")
    subprocess.run(
        ["javac", "-cp", f"{apache_kafka.JARS}/*", "-d", str(folder), str(SOURCE)], check=True, capture_output=True
    )
    return folder


@pytest.fixture
def run(apache_kafka: ModuleType, classes: Path, start_broker: Any, topic: str, make_topic: Any) -> Run:
    """Runs one command of the program against a broker that allows short locks; the group is called as the topic."""
    broker = start_broker(*SHORT_LOCKS)
    make_topic(broker.bootstrap, topic)

    def call(command: str) -> list[tuple[str, str]]:
        line = apache_kafka.java("Share", command, broker.bootstrap, topic, classpath=str(classes))
        done = subprocess.run(line, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr[-4000:]
        return [tuple(json.loads(row)) for row in done.stdout.splitlines()]

    return call


def fresh(*offsets: int) -> str:
    """Offsets that are delivered for the first time."""
    return " ".join(f"{offset}:1" for offset in offsets)


def test_implicit_acknowledgement(run: Run) -> None:
    assert run("implicit") == [
        ("first", fresh(0, 1, 2, 3, 4)),
        ("second", fresh(5, 6, 7)),
        ("commit", "ok"),
        ("third", fresh(8, 9)),
    ]


def test_accept_release_reject_and_the_delivery_count_limit(run: Run) -> None:
    assert run("explicit") == [("seen", "{0=1, 1=1, 2=2, 3=3}")]


def test_a_lock_that_times_out_gives_the_records_to_another(run: Run) -> None:
    rows = dict(run("expiry"))
    others = [record.split(":") for record in rows.pop("other").split()]
    assert rows == {"silent": fresh(0, 1, 2), "lock": "1000"}
    assert [offset for offset, _ in others] == ["0", "1", "2"]
    assert all(int(deliveries) >= 2 for _, deliveries in others), "more where the machine was slower than the lock"


def test_a_lock_that_is_renewed_holds(run: Run) -> None:
    assert run("renew") == [("other", "0")] * 4 + [("deliveries", "1"), ("commit", "ok")]


def test_two_consumers_share_one_partition(run: Run) -> None:
    assert dict(run("pair")) == {"missing": "0", "twice": "0", "both": "true"}


def test_share_groups_are_administered(run: Run) -> None:
    assert run("admin") == [
        ("first", fresh(*range(10))),
        ("state", "Stable"),
        ("members", "1"),
        ("assigned", "true"),
        ("alter", "GroupNotEmptyException"),
        ("listed", "[Optional[Share]/Stable/share]"),
        ("empty", "Empty"),
        ("offsets", "10 lag 0"),
        ("altered", "4 lag 6"),
        ("again", fresh(*range(4, 10))),
        ("deleted", "none"),
        ("afresh", fresh(*range(10))),
        ("gone", "true"),
        ("unknown", "GroupIdNotFoundException"),
    ]


def test_the_tools_for_share_groups(apache_kafka: ModuleType, start_broker: Any, topic: str, make_topic: Any) -> None:
    """The console consumer, and what operators type: list, describe, reset and delete."""
    broker = start_broker()
    make_topic(broker.bootstrap, topic)

    def tool(name: str, *arguments: str, stdin: str = "") -> str:
        command = apache_kafka.java(name, "--bootstrap-server", broker.bootstrap, *arguments)
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def groups(*arguments: str) -> str:
        return tool("org.apache.kafka.tools.consumer.group.ShareGroupCommand", *arguments)

    tool("org.apache.kafka.tools.ConsoleProducer", "--topic", topic, stdin="one\ntwo\nthree\n")
    entity = ["--entity-type", "groups", "--entity-name", "jobs"]
    tool("kafka.admin.ConfigCommand", *entity, "--alter", "--add-config", "share.auto.offset.reset=earliest")
    assert "share.auto.offset.reset=earliest" in tool("kafka.admin.ConfigCommand", *entity, "--describe")
    wanted = ["--topic", topic, "--group", "jobs", "--max-messages", "3"]
    assert tool("org.apache.kafka.tools.consumer.ConsoleShareConsumer", *wanted).split() == ["one", "two", "three"]
    assert groups("--list").split() == ["jobs"]
    assert "Empty" in groups("--describe", "--group", "jobs", "--state")
    (row,) = [line.split() for line in groups("--describe", "--group", "jobs").splitlines() if topic in line]
    assert row[:5] == ["jobs", topic, "0", "3", "0"]
    groups("--reset-offsets", "--group", "jobs", "--topic", topic, "--to-earliest", "--execute")
    (row,) = [line.split() for line in groups("--describe", "--group", "jobs").splitlines() if topic in line]
    assert row[:5] == ["jobs", topic, "0", "0", "3"]
    groups("--delete-offsets", "--group", "jobs", "--topic", topic)
    groups("--delete", "--group", "jobs")
    assert groups("--list").split() == []
