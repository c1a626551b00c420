"""Commands for groups and transactions."""

from __future__ import annotations

import time
from typing import Any

import pytest
from shells import Shell, committed

from logkernel.record.encode import encode_batch
from logkernel.requests.data import PartitionProduceData, ProduceRequest, TopicProduceData
from logkernel.vocabulary import Record


def test_groups_are_listed_and_described(shell: Shell) -> None:
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
        end_s = time.monotonic() + 180
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


def test_transactions_are_listed_and_described(shell: Shell) -> None:
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
    assert shell("txn find-hanging") == "No hanging transactions.\n"
