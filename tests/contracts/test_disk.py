"""What every disk must do, real or simulated."""

from __future__ import annotations

import errno
import os
import struct

import pytest

from logkernel.errors import DataDirectoryLocked
from logkernel.storage.disk import Disk, RealDisk
from logkernel.storage.memory_disk import MemoryDisk
from logkernel.storage.simdisk import SimulatedDisk


@pytest.fixture(params=["real", "simulated", "memory"])
def place(request, tmp_path) -> tuple[Disk, str]:
    disk = {"real": RealDisk, "simulated": SimulatedDisk, "memory": MemoryDisk}[request.param]()
    root = str(tmp_path / "data")
    disk.mkdir(root)
    return disk, root


def test_a_file_grows_at_its_end_and_is_read_anywhere(place):
    disk, root = place
    file = disk.open(f"{root}/f", create=True)
    file.append(b"hello ")
    file.append(memoryview(bytearray(b"world")))
    assert file.size == disk.size(f"{root}/f") == 11
    assert file.read(6, 5) == b"world"
    assert file.read(6, 50) == b"world"
    assert file.read(11, 5) == b""
    buffer = bytearray(4)
    assert file.read_into(9, memoryview(buffer)) == 2
    assert buffer == b"ld\0\0"
    file.sync()
    again = disk.open(f"{root}/f", write=False)
    assert again.size == 11
    assert again.read(0, 5) == b"hello"


def test_truncate_cuts_and_appends_go_on_there(place):
    disk, root = place
    file = disk.open(f"{root}/f", create=True)
    file.append(b"0123456789")
    file.reserve(1 << 20)
    assert disk.size(f"{root}/f") == 10
    file.truncate(4)
    file.append(b"xy")
    assert disk.read(f"{root}/f") == b"0123xy"
    disk.truncate(f"{root}/f", 2)
    assert disk.read(f"{root}/f") == b"01"


def test_opening_what_is_not_there_fails(place):
    disk, root = place
    for action in (
        lambda: disk.open(f"{root}/none"),
        lambda: disk.read(f"{root}/none"),
        lambda: disk.size(f"{root}/none"),
        lambda: disk.remove(f"{root}/none"),
        lambda: disk.listdir(f"{root}/none"),
        lambda: disk.space(f"{root}/none"),
        lambda: disk.rename(f"{root}/none", f"{root}/other"),
    ):
        with pytest.raises(FileNotFoundError):
            action()
    assert not disk.exists(f"{root}/none")


def test_space_is_known_or_said_not_to_be(place):
    disk, root = place
    total, usable = disk.space(root)
    assert (total, usable) == (-1, -1) or 0 <= usable <= total


def test_a_mapping_is_the_file(place):
    disk, root = place
    mapping = disk.map(f"{root}/m", 16)
    assert disk.size(f"{root}/m") == 16
    struct.pack_into(">q", mapping.buffer, 8, 77)
    mapping.sync()
    mapping.resize(64)
    struct.pack_into(">q", mapping.buffer, 56, 78)
    assert struct.unpack_from(">q", mapping.buffer, 8) == (77,)
    mapping.close()
    data = disk.read(f"{root}/m")
    assert (len(data), struct.unpack_from(">q", data, 8), struct.unpack_from(">q", data, 56)) == (64, (77,), (78,))


def test_names_folders_and_removal(place):
    disk, root = place
    disk.mkdir(f"{root}/a/b")
    disk.mkdir(f"{root}/a/b")
    disk.create(f"{root}/a/b/f")
    disk.write(f"{root}/a/g", b"1")
    disk.write(f"{root}/a/g", b"")
    assert sorted(disk.listdir(f"{root}/a")) == ["b", "g"]
    assert disk.read(f"{root}/a/g") == b""
    disk.rename(f"{root}/a/g", f"{root}/a/h")
    disk.rename(f"{root}/a/b", f"{root}/a/c")
    disk.sync_dir(f"{root}/a")
    assert disk.exists(f"{root}/a/c/f")
    disk.remove(f"{root}/a/h")
    disk.remove_tree(f"{root}/a")
    assert disk.listdir(root) == []


def test_write_atomic_replaces_and_leaves_nothing_else(place):
    disk, root = place
    disk.write_atomic(f"{root}/f", b"one")
    disk.write_atomic(f"{root}/f", b"two")
    assert disk.read(f"{root}/f") == b"two"
    assert disk.listdir(root) == ["f"]


def test_an_open_file_outlives_its_name(place):
    disk, root = place
    file = disk.open(f"{root}/f", create=True)
    file.append(b"data")
    disk.rename(f"{root}/f", f"{root}/f.deleted")
    disk.remove(f"{root}/f.deleted")
    assert file.read(0, 4) == b"data"


def test_a_lock_is_held_by_one(place):
    disk, root = place
    release = disk.lock(f"{root}/.lock")
    with pytest.raises(DataDirectoryLocked, match="in use"):
        disk.lock(f"{root}/.lock")
    release()
    release()
    disk.lock(f"{root}/.lock")()


def test_a_share_keeps_lockers_out_and_makes_nothing(place):
    disk, root = place
    disk.share(f"{root}/.lock")()
    assert disk.listdir(root) == []
    disk.lock(f"{root}/.lock")()
    release = disk.share(f"{root}/.lock")
    with pytest.raises(DataDirectoryLocked):
        disk.lock(f"{root}/.lock")
    release()
    release = disk.lock(f"{root}/.lock")
    with pytest.raises(DataDirectoryLocked):
        disk.share(f"{root}/.lock")
    release()


def test_a_folder_is_known_from_a_file(place):
    disk, root = place
    disk.create(f"{root}/f")
    assert [disk.is_dir(path) for path in (root, f"{root}/f", f"{root}/none")] == [True, False, False]


def test_a_lock_holds_against_another_process(tmp_path):
    release = RealDisk().lock(str(tmp_path / ".lock"))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            RealDisk().lock(str(tmp_path / ".lock"))
        except DataDirectoryLocked:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    release()


def test_a_descriptor_is_closed_with_its_last_reference(tmp_path):
    file = RealDisk().open(str(tmp_path / "f"), create=True)
    fd = file.fileno()
    os.fstat(fd)
    del file
    with pytest.raises(OSError):
        os.fstat(fd)


# ---------------------------------------------------------------- what only the simulated disk can show


def survivors(write, look, seeds=range(60)):
    """The set of what `look` finds after a crash, over many seeds."""
    found = set()
    for seed in seeds:
        disk = SimulatedDisk(seed)
        disk.mkdir("/d")
        disk.sync_dir("/")
        write(disk)
        found.add(look(disk.crash()))
    return found


def test_unsynced_bytes_may_be_lost_kept_or_torn():
    def write(disk):
        file = disk.open("/d/f", create=True)
        disk.sync_dir("/d")
        file.append(b"a" * 100)
        file.sync()
        file.append(b"b" * 10000)

    found = survivors(write, lambda disk: disk.read("/d/f"))
    assert all(data.startswith(b"a" * 100) and set(data[100:]) <= {0, ord("b")} for data in found)
    assert {len(data) for data in found} >= {100, 10100}
    assert any(0 in data for data in found), "no lost page"


def test_synced_bytes_and_names_survive():
    def write(disk):
        disk.write_atomic("/d/f", b"x" * 9000)

    assert survivors(write, lambda disk: disk.read("/d/f")) == {b"x" * 9000}


def test_unsynced_names_may_be_lost():
    def write(disk):
        disk.write_atomic("/d/old", b"1")
        disk.rename("/d/old", "/d/new")
        disk.create("/d/other")

    found = survivors(write, lambda disk: tuple(sorted(disk.listdir("/d"))))
    assert found == {("old",), ("new",), ("old", "other"), ("new", "other")}


def test_mapped_stores_may_be_lost():
    def write(disk):
        mapping = disk.map("/d/m", 8)
        disk.sync_dir("/d")
        mapping.sync()
        mapping.buffer[:8] = b"12345678"

    assert survivors(write, lambda disk: disk.read("/d/m")) == {bytes(8), b"12345678"}


def test_the_same_seed_gives_the_same_crash():
    def run():
        disk = SimulatedDisk(5)
        disk.mkdir("/d")
        disk.sync_dir("/")
        for name in "abcdef":
            disk.write(f"/d/{name}", name.encode() * 5000)
        disk = disk.crash()
        return [(name, disk.read(f"/d/{name}")) for name in disk.listdir("/d")]

    assert run() == run()


def test_faults_come_at_the_named_operation():
    disk = SimulatedDisk()
    disk.mkdir("/d")
    file = disk.open("/d/f", create=True)
    disk.fail_at(disk.operations + 2, errno.ENOSPC)
    file.append(b"12")
    with pytest.raises(OSError) as caught:
        file.append(b"3456")
    assert caught.value.errno == errno.ENOSPC
    assert disk.read("/d/f") == b"1234", "half of it was written"
    file.truncate(2)
    file.append(b"xy")
    disk.fail_at(disk.operations + 1, errno.EIO, forever=True)
    for _ in range(2):
        with pytest.raises(OSError):
            file.sync()
    with pytest.raises(OSError):
        file.read(0, 1)


def test_a_mapped_file_has_blocks_for_every_page(tmp_path):
    """A store into a hole ends the process where the disk is full (SIGBUS)."""
    path = str(tmp_path / "f")
    mapping = RealDisk().map(path, 1 << 16)
    assert os.stat(path).st_blocks * 512 >= 1 << 16
    mapping.resize(1 << 18)
    assert os.stat(path).st_blocks * 512 >= 1 << 18
    struct.pack_into(">q", mapping.buffer, (1 << 18) - 8, 7)
    mapping.close()
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 1 << 16)
    RealDisk().map(str(tmp_path / "sparse"), 1 << 16).close()
    assert os.stat(tmp_path / "sparse").st_blocks * 512 >= 1 << 16
