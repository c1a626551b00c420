"""Rows of docs/disk-faults.md: the logs of coordinators."""

from __future__ import annotations

import errno

import pytest
from disk_failures import failing

from logkernel.contracts import RequestContext
from logkernel.errors import BY_CODE, NotCoordinator
from logkernel.requests.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

OFFSETS = "/data/__consumer_offsets-0/00000000000000000000.log"


def commit(machine, offset: int) -> list[int]:
    """Commit an offset of group g; gives a list into which the error code comes."""
    told: list[int] = []
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=-1, topics=[OffsetCommitRequestTopic(name="t", partitions=[row])]
    )
    machine.broker.submit(
        request, RequestContext(), lambda answer: told.append(answer.topics[0].partitions[0].error_code)
    )
    return told


def committed(machine) -> int | str:
    """The offset that group g has committed, or the error."""
    told: list[int | str] = []

    def answered(answer) -> None:
        (group,) = answer.groups
        told.append(BY_CODE[group.error_code].__name__ if group.error_code else
                    group.topics[0].partitions[0].committed_offset)  # fmt: skip

    asked = OffsetFetchRequestGroup(group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])])
    machine.broker.submit(OffsetFetchRequest(groups=[asked]), RequestContext(), answered)
    (found,) = told
    return found


def coordinating(new_machine):
    """A broker that was started anew, over a log with two commits of group g."""
    machine = new_machine(0, "offsets.topic.num.partitions=1")
    machine.boot()
    machine.topic()
    assert [commit(machine, 7), commit(machine, 9)] == [[0], [0]]
    machine.broker.close()
    machine.boot()
    return machine


def shards(machine) -> list[object]:
    """Those of all services that keep their state in the offsets log."""
    broker = machine.broker
    hosts = broker.services.answering("OffsetFetchRequest").shards.hosts
    assert len(hosts) > 1
    return [shard for host in hosts for shard in host.loaded.values()]


@pytest.mark.parametrize("fault", ["a read error", "rot"])
def test_a_coordinator_whose_log_cannot_be_read_is_not_there_until_it_can(fault, new_machine, caplog):
    """It was left half loaded, and answered the next request with an offset of long ago."""
    machine = coordinating(new_machine)
    data = machine.disk.content(OFFSETS)
    last = len(data) - 5  # in the second commit

    def turn() -> None:
        if fault == "rot":
            data[last] ^= 1
        else:
            machine.disk.unreadable ^= {OFFSETS}

    turn()
    assert [committed(machine), committed(machine)] == ["NotCoordinator"] * 2
    assert commit(machine, 11) == [NotCoordinator.code]
    assert shards(machine) == []
    assert "shard not loaded, its log cannot be read: service=" in caplog.text
    assert "Traceback" not in caplog.text, "the disk failed, not the service"
    assert machine.produce([b"served on"]) == [0]
    machine.topic("other")
    machine.broker.delete_topic("other")  # every shard is to hear of it
    assert shards(machine) == []
    turn()
    if fault == "rot":
        machine.topic("other")
        machine.broker.delete_topic("other")
        assert shards(machine), "those that can be read by now hear of it"
    assert committed(machine) == 9
    assert commit(machine, 11) == [0]
    assert committed(machine) == 11


def test_a_coordinator_whose_log_could_not_be_read_is_loaded_in_a_while_unasked(new_machine):
    """Its members may be gone, and its transactions too old, though nobody asks."""
    machine = coordinating(new_machine)
    machine.disk.unreadable.add(OFFSETS)
    machine.pass_ms(10_000)
    assert shards(machine) == []
    machine.pass_ms(60_000)
    assert shards(machine) == []
    machine.disk.unreadable.clear()
    machine.pass_ms(60_000)
    assert len(shards(machine)) > 1


def test_a_coordinator_that_can_neither_write_nor_read_its_log_refuses_all_who_wait(new_machine):
    """The state that it began anew with was empty, and said so to whoever asked."""
    machine = coordinating(new_machine)
    assert committed(machine) == 9
    machine.disk.fault = failing("append", OFFSETS, errno.ENOSPC)
    machine.disk.unreadable.add(OFFSETS)
    assert commit(machine, 11) == [NotCoordinator.code]
    assert committed(machine) == "NotCoordinator"
    machine.disk.fault = None
    machine.disk.unreadable.clear()
    assert committed(machine) == 9
    assert commit(machine, 11) == [0]


def test_a_coordinator_whose_log_is_offline_does_not_answer_from_an_empty_state(new_machine):
    machine = coordinating(new_machine)
    assert committed(machine) == 9
    machine.disk.fault = failing("append", OFFSETS, errno.EIO)
    assert commit(machine, 11) == [NotCoordinator.code]
    machine.disk.fault = None
    assert committed(machine) == "NotCoordinator"
    machine.kill()
    machine.boot()
    assert committed(machine) == 9
