"""Commands that write and read records."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from shells import Shell

from logkernel.vocabulary import Record


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


def test_the_reader_of_a_pipe_may_leave(shell: Shell) -> None:
    shell.log.create_topic("a")
    for _ in range(4):
        shell.log.append_many("a", [Record(None, b"x" * 1000) for _ in range(500)])
    command = f"{sys.executable} -m logkernel consume a -e -b {shell.address} | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, timeout=300)
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
    out, error = process.communicate(timeout=300)
    assert (process.returncode, out, error) == (0, b"", b"")
