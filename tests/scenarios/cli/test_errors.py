"""Errors of commands: one line with the problem, the value, and the remedy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from shells import Shell

from logkernel.cli import main

ABSENT = "there is no such topic or partition; check the name, or create the topic"


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("topic describe nope", 1, f"logkernel: nope: UnknownTopicOrPartition: {ABSENT}"),
        ("topic delete nope", 1, "there is no topic 'nope'; check the name, or create the topic"),
        ("topic alter nope -p 3", 1, "there is no topic 'nope'; check the name, or create the topic"),
        ("topic alter t", 2, "nothing to alter; give --partitions, --config or --unset"),
        ("topic trim t --before x", 2, "--before 'x': not an offset; give a number, or end"),
        ("topic trim t --before 100", 1, "t-0: the offset lies outside of the partition's log; use one between"),
        ("topic trim t:x --before 1", 2, "'t:x' is not of the form TOPIC or TOPIC:PARTITION,…; write e.g. orders"),
        ("topic create u -c retention.ms", 2, "'retention.ms' is not of the form NAME=VALUE"),
        ("produce t -p x", 2, "'x' is not a valid integer."),
        ("produce t -X lingr.ms=7", 2, "lingr.ms: a producer has no such setting; did you mean linger.ms?"),
        ("produce t -X linger.ms=x", 2, "linger.ms='x': Not a number of type LONG; give a whole number, at least 0"),
        ("produce t -z foo", 2, "known: gzip, lz4, snappy, zstd); check the name, or install the plugin"),
        ("produce t -f %k%v", 2, "nothing separates %k from %v; put a delimiter between them"),
        ("produce t -f %o", 2, "%o cannot be parsed from a line; use %s"),
        ("consume nope -e", 1, f"nope: {ABSENT}"),
        ("consume t -o foo", 2, "--offset 'foo': not a position; give beginning, end, stored, N, -N or @TIME"),
        ("consume t -o @foo", 2, "'foo' is not a time; give ms since 1970, or ISO 8601 such as 2026-01-31T12:00:00Z"),
        ("consume t -g g -o 5", 2, "--offset '5' cannot be used with --group; give beginning, end or stored"),
        ("consume t --timeout x", 2, "'x' is not a valid number."),
        ("consume t -b 127.0.0.1:0", 2, "'127.0.0.1:0' is not of the form HOST:PORT; write e.g. 127.0.0.1:9092"),
        ("group list --state foo", 2, "'foo' is not one of PreparingRebalance, "),
        ("group list --type foo", 2, "'foo' is not one of classic, consumer, share, streams"),
        ("group delete nope", 1, "nope: GroupIdNotFound: there is no such group; check the name"),
        ("group delete-offsets nope -t t", 1, "GroupIdNotFound: nope: there is no such group; check the name"),
        ("group reset-offsets nope -t t", 2, "the target is not clear; give one of --to-earliest"),
        ("group reset-offsets nope --to-current -t t", 2, "no offset of t-0 to start from; use --to-earliest"),
        ("config list broker 77", 1, "there is no broker 77; use one of 1"),
        ("config list broker x", 2, "'x' is not a broker id; give a number"),
        ("config set broker-logger 77 root=INFO", 1, "there is no broker 77; use one of 1"),
        ("config get topic t foo", 2, "topic t has no setting 'foo'; `logkernel config list topic t --all` lists all"),
        ("cluster log-dirs --broker 77", 1, "there is no broker 77; use one of 1"),
        (
            "cluster features --set transaction.version=x",
            2,
            "a level is a whole number; write e.g. transaction.version=1",
        ),
        ("cluster reassignments --set t-0=x", 2, "t-0=x: not broker ids; write e.g. t-0=1,2"),
        ("cluster reassignments --set t=1", 2, "'t' is not of the form TOPIC-PARTITION; write e.g. orders-0"),
        ("cluster acls list --operation foo", 2, "'foo' is not a known operation; use one of any, all, read"),
        ("cluster quotas set producer_byte_rate=x --user a", 2, "producer_byte_rate=x: not a number; write e.g."),
        ("cluster quotas set producer_byte_rate=1", 2, "no entity is named; give --user, --client-id or --ip"),
        ("txn list --state foo", 2, "'foo' is not one of Empty, Ongoing, "),
        ("txn list --pattern (", 1, "InvalidRegularExpression: The regular expression is not valid in RE2's syntax"),
        ("txn describe nope", 1, "nope: there is no such transactional id; check the name"),
        (
            "txn abort t 0 --start-offset 5",
            2,
            "no open transaction of t-0 starts at offset 5; `logkernel txn producers",
        ),
        ("query select␣*␣from␣nope", 2, "Table with name nope does not exist; the topics are "),
        ("query select␣1 --data /nowhere", 2, "there is no directory /nowhere; check the path"),
        ("dump /dev/null --decoder foo", 2, "no plugin decodes the records of 'foo'; name an internal topic"),
        ("status --data /nowhere", 1, "start one with `logkernel serve --data /nowhere`, or name another directory"),
        ("perf sweep --producers x", 2, "'x' is not a list of whole numbers; write e.g. 1,2,4"),
    ],
)
def test_an_error_names_problem_value_and_remedy(shell: Shell, line: str, code: int, text: str) -> None:
    shell("topic create t")
    shell(line, code)
    assert text in shell.error
    assert "Traceback" not in shell.error


@pytest.mark.parametrize("command", ["produce", "consume", "latency"])
def test_perf_says_at_once_that_no_broker_answers(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["perf", command, "--num-records", "1", "-b", "127.0.0.1:1"]) == 1
    assert re.search("no broker answers at 127.0.0.1:1 .*; start one with `logkernel serve`", capsys.readouterr().err)


def test_a_state_is_taken_in_any_case(shell: Shell) -> None:
    shell("topic create t")
    shell.log.append("t", b"x")
    shell("consume t -g g -e")
    assert shell("group list --state empty").split("\n")[1].startswith("g ")
    assert shell("group list --state Stable").count("\n") == 1


def test_a_group_that_is_missing_prints_no_table(shell: Shell) -> None:
    for option in ("", "--members", "--state"):
        assert shell(f"group describe nope {option}", 1) == ""


def test_a_directory_in_use_names_the_remedy(tmp_path: Path, shell: Shell) -> None:
    import logkernel

    with logkernel.open(tmp_path / "data"):
        shell(f"topic list --data {tmp_path / 'data'}", 2)
        assert "stop that broker, or talk to it with --bootstrap HOST:PORT" in shell.error
        shell(f"check {tmp_path / 'data'}", 2)
        assert shell.error.endswith("stop that broker\n")
