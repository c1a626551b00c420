"""A broker's process ends with its parent, and the next start waits until it is gone."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from logkernel.cluster.folder import LOCK, broker_folder, wait_for_folders
from logkernel.cluster.processes.child import ALONE
from logkernel.errors import DataDirectoryLocked
from logkernel.storage.disk import RealDisk

CHILD = """
import time
from logkernel.cluster.processes.child import live_with_parent
live_with_parent(lambda: print("alone", flush=True))
print("lives", flush=True)
while True:
    time.sleep(1)
"""


def test_a_child_ends_when_its_standard_input_does() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "lives\n"
            child.stdin.write(ALONE.decode())
            child.stdin.flush()
            assert child.stdout.readline() == "alone\n"
            assert child.poll() is None
            child.stdin.close()
            assert child.wait(300) == -9
        finally:
            child.kill()


def test_a_start_waits_for_a_folder_that_is_locked(tmp_path: Path) -> None:
    folder = Path(broker_folder(tmp_path, 2))
    folder.mkdir()
    release = RealDisk().lock(f"{folder}/{LOCK}")
    with pytest.raises(DataDirectoryLocked):
        wait_for_folders(tmp_path, 2, 0)
    timer = threading.Timer(0.1, release)
    timer.start()
    wait_for_folders(tmp_path, 2, 20)
    timer.join()
    wait_for_folders(tmp_path, 3, 0)
