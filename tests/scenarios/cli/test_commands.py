"""Every command against a broker in this process, as a user types it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel.cli import main
from logkernel.client.admin.topics import NewTopic
from logkernel.record.encode import encode_batch
from logkernel.requests.data import PartitionProduceData, ProduceRequest, TopicProduceData
from logkernel.vocabulary import Record


class Shell:
    """Runs commands against a broker."""

    def __init__(self, log: logkernel.EmbeddedLog, address: str, capture: Any, patch: pytest.MonkeyPatch) -> None:
        self.log = log
        self.address = address
        self._capture = capture
        self._patch = patch
        self.error = ""

    def __call__(self, line: str, code: int = 0, stdin: bytes = b"") -> str:
        """The output of a command; blanks part arguments, `␣` stands for one inside."""

        class Stdin(io.StringIO):
            buffer = io.BytesIO(stdin)

        self._patch.setattr(sys, "stdin", Stdin(stdin.decode(errors="replace")))
        self._capture.readouterr()
        found = main([part.replace("␣", " ") for part in line.split()])
        out, error = self._capture.readouterr()
        self.error = error.decode()
        assert found == code, f"{line}: {found}, not {code}\n{self.error}{out.decode()}"
        return str(out.decode())

    def rows(self, line: str, code: int = 0) -> list[Any]:
        return [json.loads(row) for row in self(f"{line} --json", code).splitlines()]

    def table(self, line: str, code: int = 0) -> list[list[str]]:
        """The cells of a table without its head."""
        return [row.split() for row in self(line, code).splitlines()[1:]]


@pytest.fixture
def shell(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    settings = {"group_initial_rebalance_delay_ms": 0, "transaction_partition_verification_enable": False}
    with logkernel.open(**settings) as log:
        address = log.listen()
        monkeypatch.setenv("LOGKERNEL_BOOTSTRAP", address)
        yield Shell(log, address, capfdbinary, monkeypatch)


# ---------------------------------------------------------------- topics


def test_topics(shell: Shell) -> None:
    assert shell("topic create a b -p 2 -c retention.ms=5000") == "Created topic a.\nCreated topic b.\n"
    assert shell("topic list -q") == "a\nb\n"
    assert [row[:2] for row in shell.table("topic list")] == [["a", "2"], ["b", "2"]]
    assert [(row["topic"], row["partitions"]) for row in shell.rows("topic list")] == [("a", 2), ("b", 2)]
    head, first, _ = shell("topic describe a").splitlines()
    assert [part.split(": ")[0] for part in head.split("\t")] == [
        "Topic", "TopicId", "PartitionCount", "ReplicationFactor", "Configs"
    ]  # fmt: skip
    assert head.endswith("\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: retention.ms=5000")
    assert first == "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
    assert shell("topic alter a -p 3 -c flush.ms=7 --unset retention.ms") == "Altered topic a.\n"
    (found,) = shell.rows("topic describe a")
    assert (found["partitionCount"], found["configs"]) == (3, {"flush.ms": "7"})
    assert found["partitions"][2] == {
        "partition": 2, "leader": 1, "leaderEpoch": 0, "replicas": [1], "isr": [1], "elr": [], "lastKnownElr": [],
        "offline": [],
    }  # fmt: skip
    assert shell("topic delete a b") == "Deleted topic a.\nDeleted topic b.\n"
    assert shell("topic describe") == ""


def test_what_fails_of_topics_is_said_and_ends_with_1(shell: Shell) -> None:
    shell("topic create a")
    assert shell("topic create a b", 1) == "Created topic b.\n"
    assert "a: TopicAlreadyExists" in shell.error
    assert shell("topic create a c --if-not-exists") == "Created topic c.\n"
    assert shell("topic create d --dry-run") == "Topic d could be created.\n"
    assert shell("topic create x -c burn=1", 1) == ""
    assert "InvalidConfig" in shell.error
    assert len(shell("topic describe a nope", 1).splitlines()) == 2
    assert "nope: UnknownTopicOrPartition" in shell.error
    assert shell("topic delete nope --if-exists") == ""
    shell("topic delete nope", 1)
    shell("topic alter nope -p 3", 1)


def test_records_are_trimmed(shell: Shell) -> None:
    shell("topic create a -p 2")
    for index in (0, 1):
        for _ in range(5):
            shell.log.append("a", b"v", partition=index)
    assert shell.table("topic trim a:1 --before 3") == [["a", "1", "3"]]
    assert shell.rows("topic trim a --before end") == [
        {"topic": "a", "partition": index, "logStartOffset": 5} for index in (0, 1)
    ]


# ---------------------------------------------------------------- produce, consume


def test_lines_become_records(shell: Shell) -> None:
    shell("topic create a")
    shell("produce a -k = -H h=1 -z zstd --acks 1", stdin=b"k1=v1\nk2=v=2\nalone\n=\n")
    assert shell("consume a -e -f [%k|%v|%h]\\n") == "[k1|v1|h=1]\n[k2|v=2|h=1]\n[|alone|h=1]\n[||h=1]\n"
    assert [(row["key"], row["value"]) for row in shell.rows("consume a -e -o 2")] == [(None, "alone"), ("", "")]
    assert shell("produce a -v --key same", stdin=b"x") == "a-0 offset 4\n"
    shell("produce a -Z -k :", stdin=b"gone:\n")
    assert shell.rows("consume a -e -o -1")[0]["value"] is None
    shell("produce a -f %T␣%h␣%v -D ;", stdin=b"1000 a=1 v;2000 b v")
    assert shell("consume a -e -o -2 -f %T␣%h␣%v\\n") == "1000 a=1 v\n2000 b= v\n"


def test_files_become_records(shell: Shell, tmp_path: Path) -> None:
    shell("topic create a")
    (tmp_path / "one").write_bytes(b"1\n2\n" * 20_000)
    (tmp_path / "two").write_bytes(b"\xff\x00")
    lines = shell.rows(f"produce a {tmp_path}/one {tmp_path}/two")
    assert [row["offset"] for row in lines] == list(range(40_001))
    (last,) = shell.rows("consume a -o -1 -e")
    assert last["valueBase64"] == "/wA="
    assert "value" not in last


def test_records_that_cannot_be_written_end_with_1(shell: Shell) -> None:
    shell("topic create a -c max.message.bytes=100")
    shell("produce a", 1, b"x" * 1000 + b"\n")
    assert "MessageTooLarge" in shell.error or "RecordTooLarge" in shell.error
    shell("produce a -p 7 -X max.block.ms=200", 1, b"x\n")
    shell("produce a -f %k=%v", 2, b"x\n")
    assert "not in the format" in shell.error


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("beginning", "0123456789"),
        ("earliest", "0123456789"),
        ("4", "456789"),
        ("-3", "789"),
        ("-99", "0123456789"),
        ("end", ""),
        ("@1007", "789"),
        ("@1970-01-01T00:00:01.008+00:00", "89"),
        ("@9999999999999", ""),
    ],
)
def test_where_reading_begins(shell: Shell, where: str, found: str) -> None:
    shell("topic create a -c message.timestamp.type=CreateTime")
    for number in range(10):
        shell.log.append("a", b"%d" % number, timestamp_ms=1000 + number)
    assert shell(f"consume a -e -o {where} -f %v") == found


def test_reading_ends_after_so_many_and_shows_some_partitions(shell: Shell) -> None:
    shell("topic create a -p 3")
    for number in range(9):
        shell.log.append("a", b"%d" % number, partition=number % 3)
    assert len(shell("consume a -n 4").splitlines()) == 4
    assert sorted(shell("consume a -e -p 1 -p 2 -f %p")) == ["1", "1", "1", "2", "2", "2"]
    shell("consume a -e -p 7", 2)
    for group in ("", "-g g"):
        shell(f"consume a nope -e {group}", 1)
        assert "UnknownTopicOrPartition" in shell.error


def test_a_group_goes_on_where_it_was(shell: Shell) -> None:
    shell("topic create a")
    for number in range(6):
        shell.log.append("a", b"%d" % number)
    assert shell("consume a -g g -n 4 -f %v") == "0123"
    assert shell("consume a -g g -e -f %v") == "45"
    assert shell("consume a -g g -e -f %v") == ""
    assert shell("consume a -g other -e -o end -f %v") == ""


# ---------------------------------------------------------------- groups


def committed(shell: Shell, group: str, topic: str, records: int = 5, read: int = 3) -> None:
    shell(f"topic create {topic}")
    for number in range(records):
        shell.log.append(topic, b"%d" % number, timestamp_ms=1000 + number)
    shell(f"consume {topic} -g {group} -n {read}")


def test_groups(shell: Shell) -> None:
    committed(shell, "g", "a")
    assert shell.table("group list") == [["g", "classic", "consumer", "Empty"]]
    assert shell.rows("group list --type consumer") == []
    assert shell.table("group describe g") == [["g", "a", "0", "3", "5", "2", "-", "-", "-"]]
    assert shell.table("group describe --state") == [["g", "1", "classic", "-", "Empty", "0"]]
    assert shell.table("group describe --members g") == []
    (found,) = shell.rows("group describe g")
    assert (found["state"], found["offsets"][0]["lag"]) == ("Empty", 2)
    shell("group describe g nope", 1)
    assert "nope: GroupIdNotFound" in shell.error
    with shell.log.consumer("a", group="live", client_id="c") as consumer:
        end_s = time.monotonic() + 30
        while not consumer.assignment():
            consumer.poll(0.1)
            assert time.monotonic() < end_s
        (member,) = shell.table("group describe live --members")
        assert member[0] == "live"
        assert member[-2:] == ["1", "a-0"]
        assert shell.table("group describe live")[0][-1] == "c"
        shell("group delete live", 1)
        assert "NonEmptyGroup" in shell.error
        assert shell("group remove-members live --all") == "Removed members from group live.\n"
    assert shell("group delete g live") == "Deleted group g.\nDeleted group live.\n"


@pytest.mark.parametrize(
    ("how", "offset"),
    [
        ("--to-earliest", 0),
        ("--to-latest", 5),
        ("--to-current", 3),
        ("--to-offset 2", 2),
        ("--to-offset 99", 5),
        ("--shift-by -2", 1),
        ("--shift-by 9", 5),
        ("--to-datetime 1003", 3),
        ("--to-datetime 1970-01-01T00:00:01.004Z", 4),
        ("--to-datetime 2100-01-01", 5),
    ],
)
def test_offsets_of_a_group_are_reset(shell: Shell, how: str, offset: int) -> None:
    committed(shell, "g", "a")
    assert shell.table(f"group reset-offsets g --all-topics {how}") == [["g", "a", "0", str(offset)]]
    assert shell.table("group describe g")[0][3] == "3", "it was a dry run"
    (row,) = shell.rows(f"group reset-offsets g -t a:0 {how} --execute")
    assert row == {"group": "g", "topic": "a", "partition": 0, "newOffset": offset, "done": True}
    assert shell.table("group describe g")[0][3] == str(offset)


def test_offsets_of_a_group_are_forgotten(shell: Shell) -> None:
    committed(shell, "g", "a")
    shell("group delete-offsets g -t a:0")
    assert shell.rows("group describe g")[0]["offsets"] == []
    shell("group reset-offsets g --all-topics --to-earliest", 2)
    shell("group reset-offsets g -t a --shift-by 1", 2)
    shell("group reset-offsets new -t a --to-latest --execute")
    assert shell.table("group describe new")[0][3] == "5"


def test_share_groups(shell: Shell) -> None:
    committed(shell, "g", "a")
    shell.log.admin().alter_share_group_offsets("s", {("a", 0): 1})
    assert shell.table("group list --type share")[0][:2] == ["s", "share"]
    assert shell.table("group describe s")[0][:4] == ["s", "a", "0", "1"]
    shell("group reset-offsets s --all-topics --to-offset 4 --execute")
    assert shell.table("group describe s")[0][3] == "4"
    shell("group delete-offsets s -t a:0", 2)
    shell("group delete-offsets s -t a")
    assert shell.rows("group describe s")[0]["offsets"] == []


# ---------------------------------------------------------------- settings, offsets


def test_settings(shell: Shell) -> None:
    shell("topic create a")
    shell("config set topic a retention.ms=1 cleanup.policy=compact")
    shell("config set topic a cleanup.policy=delete --append")
    assert shell("config get topic a retention.ms cleanup.policy") == "1\ncompact,delete\n"
    assert [row[0] for row in shell.table("config list topic a")] == ["cleanup.policy", "retention.ms"]
    assert "flush.ms" in [row["name"] for row in shell.rows("config list topic a --all")]
    shell("config set topic a cleanup.policy=compact --subtract")
    shell("config unset topic a retention.ms")
    assert shell("config get topic a retention.ms cleanup.policy") == "604800000\ndelete\n"
    shell("config set topic a retention.ms=9 --dry-run")
    assert shell.rows("config get topic a retention.ms")[0]["value"] == "604800000"
    shell("config set broker default log.cleaner.backoff.ms=777")
    assert shell("config get broker 1 log.cleaner.backoff.ms") == "777\n"
    assert ["topic", "a"] in shell.table("config list")
    shell("config get topic a nothing", 2)
    shell("config set topic a retention.ms=soon", 1)
    shell("config get topic nope retention.ms", 1)


def test_offsets(shell: Shell) -> None:
    committed(shell, "g", "a")
    assert shell.table("offsets a") == [["a", "0", "0", "5"]]
    assert shell.rows("offsets a:0 --at 1002 --at latest --at 9999") == [
        {"topic": "a", "partition": 0, "offsets": {"1002": 2, "latest": 5, "9999": None}}
    ]
    assert shell.table("offsets a --at max-timestamp --at 9999") == [["a", "0", "4", "-"]]
    shell("offsets a --at soon", 2)
    shell("offsets nope", 1)


# ---------------------------------------------------------------- transactions


def test_transactions(shell: Shell) -> None:
    shell("topic create a")
    with shell.log.producer(transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("a", b"v").result()
        assert [row[0::2] for row in shell.table("txn list")] == [["t", "Ongoing"]]
        assert shell.rows("txn list --state Empty") == []
        (found,) = shell.rows("txn describe t")
        assert (found["state"], found["partitions"]) == ("Ongoing", ["a-0"])
        assert shell.table("txn describe t")[0][-1] == "a-0"
        assert shell.rows("txn producers a")[0]["transactionStartOffset"] == 0
        assert shell.table("txn producers a:0")[0][-1] == "0"
        assert shell("txn fence t").startswith("Fenced t: producer ")
    shell("txn describe nobody", 1)


def test_a_transaction_that_hangs_is_found_and_aborted(shell: Shell) -> None:
    shell("topic create a")
    old_ms = time.time_ns() // 1_000_000 - 3_600_000
    details: dict[str, Any] = {"producer_id": 4242, "producer_epoch": 3, "base_sequence": 0, "transactional": True}
    data = bytearray(encode_batch([Record(None, b"v", (), old_ms)], **details))
    rows = [TopicProduceData("a", [PartitionProduceData(0, data)])]
    assert shell.log.request(ProduceRequest("t", -1, 1000, rows)).responses[0].partition_responses[0].error_code == 0
    (found,) = shell.rows("txn find-hanging", 1)
    assert (found["producerId"], found["startOffset"], found["transactionalId"]) == (4242, 0, None)
    assert "4242" in shell("txn find-hanging a", 1)
    shell("txn abort a 0 --start-offset 5", 2)
    assert shell("txn abort a 0 --start-offset 0").startswith("Aborted")
    assert shell("txn find-hanging") == "No transaction hangs.\n"


# ---------------------------------------------------------------- the cluster


def test_the_cluster(shell: Shell) -> None:
    shell("topic create a")
    (found,) = shell.rows("cluster info")
    assert (found["controller"], found["brokers"], found["topics"]) == (1, 1, 1)
    assert found["clusterId"] in shell("cluster info")
    host, _, port = shell.address.rpartition(":")
    assert shell.table("cluster brokers") == [["1*", host, port]]
    assert shell.table("cluster log-dirs -t a")[0][:4] == ["1", "/memory", "online", "1"]
    assert shell.rows("cluster log-dirs --broker 1")[0]["replicas"][0]["topic"] == "a"
    assert ["group.version", "0", "1", "1"] in shell.table("cluster features")
    shell("cluster features --set group.version=0 --how unsafe-downgrade --dry-run")
    assert ["group.version", "0", "1", "0"] in shell.table(
        "cluster features --set group.version=0 --how unsafe-downgrade"
    )
    shell("cluster features --set warp=9", 1)
    shell("cluster quorum", 1)
    assert "quorum" in shell.error
    assert shell("cluster elect a").split()[-3:] == ["a-0", "leads", "already"]
    assert shell("cluster reassignments") == "No reassignment is under way.\n"
    shell("cluster reassignments --set a-0=1")
    shell("cluster reassignments --set a-0=1,2", 1)
    shell("cluster reassignments --cancel a-0", 1)
    shell("cluster reassignments --cancel a", 2)


def test_who_may_do_what(shell: Shell) -> None:
    shell("cluster acls add User:ann read topic orders")
    shell("cluster acls add User:bob all group g --deny --host 10.0.0.1 --pattern prefixed")
    assert len(shell.table("cluster acls list")) == 2
    assert shell.rows("cluster acls list --resource topic --name orders --pattern match") == [
        {"principal": "User:ann", "host": "*", "permission": "allow", "operation": "read", "resource": "topic",
         "name": "orders", "pattern": "literal"}
    ]  # fmt: skip
    assert len(shell.table("cluster acls remove --principal User:ann")) == 1
    shell("cluster acls remove", 2)
    assert len(shell.table("cluster acls remove --all")) == 1
    shell("cluster acls add User:ann fly topic orders", 2)


def test_quotas(shell: Shell) -> None:
    shell("cluster quotas set producer_byte_rate=1024 --user ann --client-id default")
    shell("cluster quotas set request_percentage=50.5 --user default")
    assert shell.rows("cluster quotas list --user ann")[0] == {
        "entity": {"client-id": None, "user": "ann"}, "quotas": {"producer_byte_rate": 1024.0}
    }  # fmt: skip
    assert "client-id=default, user=ann" in shell("cluster quotas list")
    shell("cluster quotas unset producer_byte_rate --user ann --client-id default")
    assert len(shell.table("cluster quotas list")) == 1
    shell("cluster quotas set producer_byte_rate=1", 2)
    shell("cluster quotas set producer_byte_rate=fast --user ann", 2)
    shell("cluster quotas set speed=1 --user ann", 1)


def test_users(shell: Shell) -> None:
    shell("cluster users set ann --password-stdin", stdin=b"secret\n")
    assert shell.table("cluster users list") == [["ann", "SCRAM-SHA-256", "4096"]]
    assert shell.rows("cluster users list ann")[0]["credentials"] == [
        {"mechanism": "SCRAM-SHA-256", "iterations": 4096}
    ]
    shell("cluster users delete ann")
    shell("cluster users list ann", 1)
    shell("cluster users set ann --password-stdin", 2, stdin=b"\n")


# ---------------------------------------------------------------- the frame


def test_a_folder_is_opened_in_this_process(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(tmp_path / "data")
    shell = Shell(None, "", capfdbinary, monkeypatch)  # type: ignore[arg-type]
    monkeypatch.setenv("LOGKERNEL_BOOTSTRAP", "127.0.0.1:1")
    shell(f"topic list --data {data}", 2)
    assert not os.path.exists(data)
    shell(f"topic create a --data {data}")
    shell(f"produce a --data {data}", stdin=b"one\ntwo\n")
    assert shell(f"consume a -e --data {data}") == "one\ntwo\n"
    assert shell(f"consume a -g g -e --data {data}") == "one\ntwo\n"
    assert shell.table(f"group describe g --data {data}")[0][3] == "2"
    assert shell.table(f"cluster log-dirs --data {data}")[0][1] == data
    with logkernel.open(data):
        shell(f"topic list --data {data}", 2)
        assert "--bootstrap" in shell.error


def test_a_folder_of_another_node_is_opened_as_that_node(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(tmp_path / "data")
    with logkernel.open(data, node_id=7) as log:
        log.create_topic("a")
    shell = Shell(None, "", capfdbinary, monkeypatch)  # type: ignore[arg-type]
    assert shell.rows(f"topic describe a --data {data}")[0]["partitions"][0]["leader"] == 7


def test_nobody_there_is_said_at_once(shell: Shell) -> None:
    shell("topic list -b 127.0.0.1:1", 1)
    assert "no broker answers at 127.0.0.1:1" in shell.error
    assert "Traceback" not in shell.error


@pytest.mark.parametrize(
    "line",
    [
        "topic",
        "topic lisp",
        "topic create",
        "topic create a -c nothing",
        "topic alter a",
        "topic trim a --before now",
        "topic list --data /nowhere",
        "topic list --data . -b h:1",
        "consume",
        "consume a -o soon -e",
        "consume a -g g -p 1",
        "consume a -g g -o 7",
        "consume a -f %z",
        "produce a -k = -f %v",
        "produce a -D ␣",
        "produce a -z fast",
        "produce a -X speed=1",
        "group describe g --members --state",
        "group reset-offsets g --all-topics",
        "group reset-offsets g --to-latest",
        "group reset-offsets g --to-latest --to-earliest --all-topics --shift-by 1",
        "group reset-offsets g --to-latest --to-earliest --all-topics",
        "topic list --timeout -1",
        "group remove-members g",
        "config get table a b",
        "config set topic a b",
        "config set topic a b=c --append --subtract",
        "offsets a:x",
        "cluster features --set group.version=high",
        "cluster reassignments --set a-0=x",
        "completion tcsh",
    ],
)
def test_bad_usage_ends_with_2(shell: Shell, line: str) -> None:
    if line.startswith(("topic alter", "offsets", "consume a -o")):
        shell.log.create_topic("a")
    if "-D" in line:
        line = "produce a --delimiter="
    shell(line, 2)
    assert shell.error
    assert "Traceback" not in shell.error


def test_the_reader_of_a_pipe_may_leave(shell: Shell) -> None:
    shell.log.create_topic("a")
    for _ in range(4):
        shell.log.append_many("a", [Record(None, b"x" * 1000) for _ in range(500)])
    command = f"{sys.executable} -m logkernel consume a -e -b {shell.address} | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"x" * 1000 + b"\n", b"")


def test_an_interrupt_ends_reading_well(shell: Shell) -> None:
    import signal

    shell.log.create_topic("a")
    shell.log.append("a", b"v")
    command = [sys.executable, "-m", "logkernel", "consume", "a", "-b", shell.address]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"v\n"
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=30)
    assert (process.returncode, out, error) == (0, b"", b"")


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion(shell: Shell, name: str) -> None:
    assert "_LOGKERNEL_COMPLETE" in shell(f"completion {name}")


def test_completion_knows_commands() -> None:
    environment = {
        **os.environ,
        "_LOGKERNEL_COMPLETE": "bash_complete",
        "COMP_WORDS": "logkernel group re",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-c", "from logkernel.cli import main; main([])"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["plain,reset-offsets", "plain,remove-members"]


def test_help_imports_no_client() -> None:
    code = (
        "import sys; from logkernel.cli import main; main(['--help']); main(['topic', '--help']);"
        "assert not [name for name in sys.modules if name.startswith(('logkernel.client', 'rich', 'asyncio', 'kio'))]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_many_topics_in_one_go(shell: Shell) -> None:
    """More partitions than one answer of DescribeTopicPartitions holds."""
    admin = shell.log.admin()
    admin.create_topics([NewTopic(f"t{number}", 700) for number in range(4)])
    assert [len(row["partitions"]) for row in shell.rows("topic describe")] == [700] * 4
