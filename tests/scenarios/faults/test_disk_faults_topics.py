"""Rows of docs/disk-faults.md: topics that come and go while a directory is offline, or does not let a log go."""

from __future__ import annotations

import errno

import pytest
from disk_failures import STORAGE_ERROR, failing, folder_of, online, two_folders


def hide(machine, path: str) -> None:
    """The directory is gone at the next start: a mount that failed."""
    machine.disk.rename(path, "/hidden")
    machine.disk.create(path)


def bring_back(machine, path: str) -> None:
    machine.disk.remove(path)
    machine.disk.rename("/hidden", path)


def lose(machine, how: str) -> int:
    """One of the two directories goes offline, not the metadata log's; returns the partition that lay there."""
    bad = "/b"
    number = next(each for each in (0, 1) if folder_of(machine, each) == bad)
    if how == "running":
        machine.disk.fault = failing("append", f"{bad}/t-{number}/", errno.EIO)
        assert machine.produce([b"x"], partition=number) == [STORAGE_ERROR]
        machine.disk.fault = None
    else:
        machine.kill()
        hide(machine, bad)
        machine.boot()
    assert online(machine) == ["/a"]
    assert machine.produce([b"x"], partition=number) == [STORAGE_ERROR]
    return number


def find(machine, how: str) -> None:
    """The directory is back, by a restart."""
    machine.kill()
    if how == "at the start":
        bring_back(machine, "/b")
    machine.boot()
    assert online(machine) == ["/a", "/b"]


def folders(machine, *paths: str) -> list[str]:
    """Of every log, those that wait for their removal left out."""
    names = [f"{path}/{name}" for path in paths or ("/a", "/b") for name in machine.disk.listdir(path)]
    return sorted(name for name in names if name.rpartition("-")[2].isdigit() and "__logkernel" not in name)


WAYS = pytest.mark.parametrize("how", ["running", "at the start"])


@WAYS
def test_a_topic_made_while_a_directory_is_offline_is_served(how, new_machine):
    machine = two_folders(new_machine)
    lost = lose(machine, how)
    machine.topic("new", 2)
    assert [machine.produce([b"n"], topic="new", partition=each) for each in (0, 1)] == [[0], [0]]
    if how == "at the start":  # and it stays served while the directory is away
        machine.kill()
        machine.boot()
        assert machine.produce([b"m"], topic="new") == [0]
        assert machine.produce([b"x"], partition=lost) == [STORAGE_ERROR]
    find(machine, how)
    assert machine.values("new", 1) == [b"n"]
    assert machine.values("new")[0] == b"n"
    assert [machine.values(partition=each) for each in (0, 1)] == [[b"0"], [b"1"]]


@WAYS
def test_a_topic_deleted_and_made_anew_while_a_directory_is_offline_holds_no_old_record(how, new_machine):
    machine = two_folders(new_machine)
    lose(machine, how)
    machine.broker.delete_topic("t")
    machine.topic("t", 2)
    assert [machine.produce([b"new"], partition=each) for each in (0, 1)] == [[0], [0]]
    if how == "at the start":
        machine.kill()
        machine.boot()
    find(machine, how)
    assert [machine.values(partition=each) for each in (0, 1)] == [[b"new"], [b"new"]]
    assert folders(machine) == ["/a/t-0", "/a/t-1"]
    assert machine.broker.logs.sync_deletions(machine.broker.cluster.topics)


@WAYS
def test_a_topic_deleted_while_a_directory_is_offline_does_not_come_back(how, new_machine):
    machine = two_folders(new_machine)
    lose(machine, how)
    machine.broker.delete_topic("t")
    find(machine, how)
    assert folders(machine) == []
    assert "t" not in machine.broker.cluster.topics


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("still", [False, True])
def test_a_log_that_cannot_be_removed_is_not_taken_for_the_one_made_anew(error, still, new_machine):
    """The first error took the log's directory offline and left the log's place in memory to its successor."""
    machine = new_machine()
    machine.boot()
    machine.topic()
    machine.topic("other")
    assert machine.produce([b"old"]) == [0]
    assert machine.produce([b"o"], topic="other") == [0]
    machine.disk.fault = failing("rename", "/data/t-0", error)
    machine.broker.delete_topic("t")
    if not still:
        machine.disk.fault = None
    machine.topic()
    offline = error == errno.EIO  # a disk without room goes on with what needs none
    assert online(machine) == ([] if offline else ["/data"])
    assert machine.produce([b"new"]) == ([STORAGE_ERROR] if still or offline else [0])
    assert machine.produce([b"p"], topic="other") == ([STORAGE_ERROR] if offline else [0])
    machine.disk.fault = None
    machine.kill()
    machine.boot()
    assert machine.values() == ([] if still or offline else [b"new"])
    assert machine.produce([b"newer"]) == [0]
    assert folders(machine, "/data") == ["/data/other-0", "/data/t-0"]


def test_a_topic_whose_log_is_unreadable_can_be_deleted_and_made_anew(new_machine):
    machine = new_machine()
    machine.boot()
    machine.topic()
    assert machine.produce([b"old"]) == [0]
    machine.broker.close()
    machine.disk.write("/data/t-0/partition.metadata", b"version: 0\ntopic_id: rotten")
    machine.boot()
    assert machine.produce([b"x"]) == [STORAGE_ERROR]
    machine.broker.delete_topic("t")
    machine.topic()
    assert machine.produce([b"new"]) == [0]
    assert machine.values() == [b"new"]
    machine.kill()
    machine.boot()
    assert machine.values() == [b"new"]


@pytest.mark.parametrize("kind", ["mkdir", "write", "create"])
def test_a_directory_that_fails_while_a_log_is_made_leaves_it_to_another(kind, new_machine):
    machine = two_folders(new_machine)
    machine.disk.fault = failing(kind, "/b/new-", errno.EIO)
    machine.topic("new", 2)
    machine.disk.fault = None
    assert online(machine) == ["/a"]
    assert [machine.produce([b"n"], topic="new", partition=each) for each in (0, 1)] == [[0], [0]]
    find(machine, "running")
    assert [machine.values("new", each) for each in (0, 1)] == [[b"n"], [b"n"]]
    assert [name for name in folders(machine) if "new" in name] == ["/a/new-0", "/a/new-1"]


def test_a_moved_log_of_a_deleted_topic_does_not_displace_the_one_made_anew(new_machine):
    """A copy that waits for the directory that it came from, which is offline."""
    machine = two_folders(new_machine)
    number = next(each for each in (0, 1) if folder_of(machine, each) == "/b")
    machine.kill()
    unique = "0" * 31 + "1"
    files = {name: machine.disk.read(f"/b/t-{number}/{name}") for name in machine.disk.listdir(f"/b/t-{number}")}
    machine.disk.mkdir(f"/a/t-{number}.{unique}-moved")
    for name, data in files.items():
        machine.disk.write(f"/a/t-{number}.{unique}-moved/{name}", data)
    hide(machine, "/b")
    machine.boot()
    machine.broker.delete_topic("t")
    machine.topic("t", 2)
    find(machine, "at the start")
    assert [machine.values(partition=each) for each in (0, 1)] == [[], []]
    assert folders(machine) == ["/a/t-0", "/a/t-1"]
    assert not [name for name in machine.disk.listdir("/a") if name.endswith("-moved")]
