"""The command itself: the ready line, signals, the lock, configuration files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.interop


def config(bootstrap: str, kind: str, name: str) -> dict[str, str]:
    """Effective settings of a topic or broker, as a client sees them."""
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

    admin = AdminClient({"bootstrap.servers": bootstrap})
    resource = ConfigResource(ResourceType[kind], name)
    return {key: entry.value for key, entry in admin.describe_configs([resource])[resource].result(120).items()}


def test_the_ready_line(broker: Any) -> None:
    pattern = rf"logkernel listening on 127\.0\.0\.1:[1-9]\d* data={re.escape(str(broker.data))}"
    assert re.fullmatch(pattern, broker.ready_line)


def test_the_ready_line_names_listeners(start_broker: Any) -> None:
    """It said `listening on a,b`, and left to the reader which of them is which."""
    listen = "IN://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"
    line = start_broker("--set", "listener.security.protocol.map=IN:PLAINTEXT", listen=listen).ready_line
    at = r"127\.0\.0\.1:[1-9]\d*"
    protocols = "protocols=IN:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    assert re.match(rf"logkernel listening on IN://{at},PLAINTEXT://{at} {protocols} data=", line)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_polite_signal_ends_it_cleanly(
    signum: signal.Signals, broker: Any, clients: Any, topic: str, sample: Any
) -> None:
    clients["confluent-kafka"].produce(broker.bootstrap, topic, sample)
    assert broker.terminate(signum) == 0
    assert (broker.data / ".kafka_cleanshutdown").exists()
    assert broker.process.stdout.read() == ""
    broker.restart()
    assert not (broker.data / ".kafka_cleanshutdown").exists()
    got = clients["aiokafka"].consume(broker.bootstrap, topic, len(sample))
    assert [record.key for record in got] == [record.key for record in sample]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_polite_signal_ends_a_start_cleanly(signum: signal.Signals, broker: Any, tmp_path: Path) -> None:
    config, data = tmp_path / "logkernel.yaml", tmp_path / "unready"
    os.mkfifo(config)
    command = [*broker.command()[:4], "--data", str(data), "--listen", "127.0.0.1:0", "--config", str(config)]
    starting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with config.open("w"):  # as soon as it reads its configuration, which never ends
        starting.send_signal(signum)
        try:
            out, err = starting.communicate(timeout=10)
        except subprocess.TimeoutExpired:  # Python heard it just before it began to read, and looks after that only
            starting.send_signal(signum)
            out, err = starting.communicate(timeout=300)
    assert (starting.returncode, out) == (0, "")
    assert "stopping before it was ready" in err
    assert "Traceback" not in err


def test_a_kill_leaves_no_clean_mark(broker: Any) -> None:
    broker.kill()
    assert not (broker.data / ".kafka_cleanshutdown").exists()


def test_a_second_broker_on_a_folder_is_refused(broker: Any) -> None:
    done = subprocess.run([*broker.command()[:-1], "127.0.0.1:0"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stdout == ""
    assert str(broker.data) in done.stderr
    assert "Traceback" not in done.stderr
    assert broker.running


def test_a_killed_broker_s_lock_is_free(broker: Any) -> None:
    broker.kill()
    broker.restart()
    assert broker.running


SERVER_PROPERTIES = """\
# as an operator has it
num.partitions=3
log.flush.interval.messages=10000
log.flush.interval.ms=1000
log.retention.minutes=90
log.retention.hours=168
log.retention.bytes=1073741824
log.segment.bytes=1048576
log.retention.check.interval.ms=300000
"""


def test_server_properties_take_effect(
    start_broker: Any, tmp_path: Path, clients: Any, topic: str, sample: Any
) -> None:
    path = tmp_path / "server.properties"
    path.write_text(SERVER_PROPERTIES)
    broker = start_broker("--config", str(path))
    clients["confluent-kafka"].produce(broker.bootstrap, topic, sample[:1])
    seen = config(broker.bootstrap, "TOPIC", topic)
    assert seen["retention.ms"] == str(90 * 60 * 1000)
    assert seen["retention.bytes"] == "1073741824"
    assert seen["segment.bytes"] == "1048576"
    assert seen["flush.messages"] == "10000"
    assert seen["flush.ms"] == "1000"
    assert len(list(broker.data.glob(f"{topic}-*"))) == 3


def test_yaml_creates_its_topics(start_broker: Any, tmp_path: Path) -> None:
    path = tmp_path / "logkernel.yaml"
    path.write_text(
        "broker: {node.id: 7}\n"
        "topics:\n"
        "  orders: {partitions: 6, partitioner: keyed, retention.ms: 604800001,"
        " compression.type: lz4, election: unclean}\n"
    )
    broker = start_broker("--config", str(path))
    seen = config(broker.bootstrap, "TOPIC", "orders")
    assert seen["retention.ms"] == "604800001"
    assert seen["compression.type"] == "lz4"
    assert seen["unclean.leader.election.enable"] == "true"
    assert len(list(broker.data.glob("orders-*"))) == 6


def test_a_topic_that_cannot_be_is_refused_with_its_line(broker: Any, tmp_path: Path) -> None:
    path = tmp_path / "logkernel.yaml"
    path.write_text("topics:\n  orders: {}\n  a/b: {}\n")
    command = [*broker.command()[:4], "--data", str(tmp_path / "other"), "--listen", "127.0.0.1:0"]
    done = subprocess.run([*command, "--config", str(path)], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (2, "")
    assert "logkernel.yaml:3: topic a/b: " in done.stderr


def test_a_topic_gets_the_partitions_that_the_file_adds_and_loses_none(start_broker: Any, tmp_path: Path) -> None:
    path = tmp_path / "logkernel.yaml"
    path.write_text("topics:\n  orders: {partitions: 2}\n")
    broker = start_broker("--config", str(path))
    for asked, told in (
        (3, "partitions added from file: topic=orders partitions=3 was=2"),
        (1, "logkernel.yaml:2: topic orders has 3 partitions, and keeps them: partitions=1"),
    ):
        assert broker.terminate() == 0
        path.write_text(f"topics:\n  orders: {{partitions: {asked}}}\n")
        broker.restart()
        assert told in broker.log()
        assert len(list(broker.data.glob("orders-*"))) == 3


def test_set_rules_over_the_file(start_broker: Any, tmp_path: Path, clients: Any, topic: str, sample: Any) -> None:
    path = tmp_path / "server.properties"
    path.write_text(SERVER_PROPERTIES)
    broker = start_broker("--config", str(path), "--set", "num.partitions=2")
    clients["confluent-kafka"].produce(broker.bootstrap, topic, sample[:1])
    assert len(list(broker.data.glob(f"{topic}-*"))) == 2


@pytest.mark.parametrize("setting", ["log.dirs=a,b", "log.dir=a", "listeners=PLAINTEXT://127.0.0.1:0"])
def test_one_setting_given_twice_is_refused(setting: str, broker: Any, tmp_path: Path) -> None:
    """`--data` once hid `--set log.dirs`, without a word."""
    command = [*broker.command()[:4], "--data", str(tmp_path / "other"), "--listen", "127.0.0.1:0", "--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert f"--set {setting} give one setting twice" in done.stderr


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("log.retention.days=7", "log.retention.hours"),
        ("num.partitons=7", "num.partitions"),
        ("num.partitions=many", "num.partitions"),
    ],
)
def test_a_wrong_setting_is_refused_with_help(setting: str, hint: str, broker: Any, tmp_path: Path) -> None:
    command = [*broker.command()[:4], "--data", str(tmp_path / "other"), "--listen", "127.0.0.1:0", "--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    assert done.stdout == ""
    assert hint in done.stderr
    assert "Traceback" not in done.stderr


def test_topics_and_settings_survive_a_kill(broker: Any, make_topic: Any, topic: str) -> None:
    make_topic(broker.bootstrap, topic, 4, retention_ms="7777777")
    broker.kill()
    broker.restart()
    assert config(broker.bootstrap, "TOPIC", topic)["retention.ms"] == "7777777"
