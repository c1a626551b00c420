"""The control socket: a broker that listens, commanded through its folder."""

from __future__ import annotations

import json
import os
import socket
import stat
import time
from pathlib import Path

import pytest

import logkernel
from logkernel.broker.control_socket import MAX_LINE_BYTES, MAX_PATH_BYTES, NAME, NoBroker, address, ask
from logkernel.cli import main
from logkernel.storage.directory import DataDirectory
from logkernel.vocabulary import Record


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def log(folder):
    with logkernel.open(folder) as log:
        log.create_topic("t", partitions=2, segment_bytes=1 << 20, retention_ms=1000)
        log.listen()
        yield log


def fill(log, count: int = 8) -> None:
    """Old records over several segments of partition 0, a young one in partition 1."""
    for number in range(count):
        log.append_many("t", [Record(None, bytes(500_000), timestamp_ms=1000 + number)], partition=0)
    log.append_many("t", [Record(None, b"young", timestamp_ms=time.time_ns() // 1_000_000)], partition=1)


def test_only_the_owner_may_connect(folder, log):
    mode = os.lstat(folder / NAME).st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600


def test_status_says_who_runs_where(folder, log, capsys):
    assert main(["status", "--json", "--data", str(folder)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["pid"], found["topics"], found["partitions"]) == (os.getpid(), 1, 2)
    (directory,) = found["directories"]
    assert directory.pop("usableBytes") > 1 << 20
    assert directory == {"path": str(folder), "online": True, "failure": None, "partitions": 2}
    assert main(["status", "--data", str(folder)]) == 0
    out = capsys.readouterr().out
    assert f"pid {os.getpid()}" in out
    assert str(folder) in out
    assert "online" in out


def test_status_tells_a_full_directory(folder, log, capsys, monkeypatch):
    monkeypatch.setattr(DataDirectory, "space", lambda self: (1 << 30, 0))
    assert main(["status", "--data", str(folder)]) == 0
    assert "FULL" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["-b", "--bootstrap", "--bootstrap-server"])
@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["status"], "by --data DIR, or use `logkernel cluster status -b h:9092`"),
        (["topic", "expire", "t"], "by --data DIR"),
        (["topic", "compact", "t"], "by --data DIR"),
    ],
)
def test_a_bootstrap_server_is_refused_with_the_way_to_ask(capsys, words, remedy, option):
    """It was "No such option: -b"."""
    assert main([*words, option, "h:9092"]) == 2
    name = " ".join(words[:2])
    told = " ".join(capsys.readouterr().err.split()).partition("Error: ")[2]
    assert told.startswith(f"-b h:9092: logkernel {name} asks a broker on its own machine; give its data directory")
    assert told.endswith(remedy)


def test_expire_says_what_it_did_when_it_is_done(folder, log, capsys):
    fill(log)
    assert main(["topic", "expire", "t", "--json", "--data", str(folder)]) == 0
    rows = {row["partition"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    first = rows[0]
    assert first["before"]["segments"] > first["after"]["segments"] == 1
    assert (first["before"]["records"], first["after"]["records"], first["log_start_offset"]) == (8, 0, 8)
    assert first["before"]["bytes"] > 4_000_000
    assert first["after"]["bytes"] == 0
    assert log.start_offset("t", 0) == 8
    assert log.start_offset("t", 1) == 0
    assert main(["topic", "expire", "t", "--data", str(folder)]) == 0
    assert capsys.readouterr().out == "Nothing to do.\n"


def test_a_topic_that_is_not_there(folder, log, capsys):
    assert main(["topic", "expire", "nope", "--data", str(folder)]) == 1
    assert capsys.readouterr().err == "logkernel: UnknownTopicOrPartition: there is no topic 'nope'; check the name\n"


def test_no_broker(folder, capsys):
    """It ended with 2, other than commands that get no answer from `--bootstrap`."""
    assert main(["status", "--data", str(folder)]) == 1
    assert capsys.readouterr().err.startswith(f"logkernel: NetworkException: no broker runs on {folder} (")
    assert main(["cluster", "status", "-b", "127.0.0.1:1"]) == 1
    assert capsys.readouterr().err.startswith("logkernel: NetworkException: no broker answers")
    with logkernel.open(folder) as log:
        log.listen()
    assert not (folder / NAME).exists()
    with pytest.raises(NoBroker):
        ask(str(folder), "status", {})


def test_a_socket_that_a_killed_broker_left_is_taken_over(folder):
    folder.mkdir()
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(folder / NAME))
    dead.close()
    with pytest.raises(NoBroker):
        ask(str(folder), "status", {})
    with logkernel.open(folder) as log:
        log.listen()
        assert ask(str(folder), "status", {})["ok"]


def test_a_file_that_is_no_socket_is_left_alone(folder, caplog):
    folder.mkdir()
    (folder / NAME).write_text("mine")
    with logkernel.open(folder) as log:
        log.listen()
    assert (folder / NAME).read_text() == "mine"
    assert "is no socket" in caplog.text


def test_a_folder_whose_path_is_longer_than_a_socket_s_address(tmp_path):
    folder = tmp_path / ("d" * 90) / ("e" * 90)
    assert len(f"{folder}/{NAME}") > MAX_PATH_BYTES
    with logkernel.open(folder) as log:
        log.listen()
        assert (folder / NAME).exists()
        assert ask(str(folder), "status", {})["ok"]
    assert not (folder / NAME).exists()


def raw(folder: Path, data: bytes) -> list[dict]:
    """Send bytes, shut the sending side, read every answer until the broker closes or is silent."""
    with socket.socket(socket.AF_UNIX) as channel, address(str(folder)) as path:
        channel.connect(path)
        channel.settimeout(60)
        channel.sendall(data)
        channel.shutdown(socket.SHUT_WR)
        with channel.makefile("rb") as lines:
            return [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"nonsense\n", "InvalidRequest"),
        (b"[1]\n", "InvalidRequest"),
        (b"{}\n", "InvalidRequest"),
        (b"[" * 60_000 + b"\n", "InvalidRequest"),
        (b"\xff\xfe\n", "InvalidRequest"),
        (b'{"v":2,"id":3,"command":"status"}\n', "UnsupportedVersion"),
        (b'{"v":1,"id":3,"command":"status","arguments":[]}\n', "InvalidRequest"),
        (b"x" * (MAX_LINE_BYTES + 2), "InvalidRequest"),
        (b'{"v":1,"id":3,"command":"rm -rf"}\n', "InvalidRequest"),
        (b'{"v":1,"id":3,"command":"topic.expire"}\n', "InvalidRequest"),
        (b'{"v":1,"id":3,"command":"topic.expire","arguments":{"topic":7}}\n', "InvalidRequest"),
    ],
)
def test_bad_lines_get_an_answer_and_the_broker_lives(folder, log, line, error):
    (answer,) = raw(folder, line)
    assert (answer["v"], answer["ok"], answer["error"]) == (1, False, error)
    assert ask(str(folder), "status", {})["ok"]


def test_many_commands_in_one_write_are_answered_one_by_one(folder, log):
    lines = b"".join(b'{"v":1,"id":%d,"command":"status"}\n' % number for number in range(20))
    assert [answer["id"] for answer in raw(folder, lines)] == list(range(20))
