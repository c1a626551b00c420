"""Chaos on real processes: nothing that was acknowledged is lost, doubled or reordered (see `__main__`).

`LOGKERNEL_CHAOS_SEED` repeats the faults of a run that failed; the output names its seed. Where a machine forbids
network namespaces, the faults are those of processes alone, and a warning says so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import zookeepers
from chaos import field
from outside_tools import missing

HERE = Path(__file__).resolve().parent
MINUTES = 1.0
"""How long faults are begun; with start and judgement it is two minutes."""


@pytest.mark.longest
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("apache_kafka")  # the jars of Java's clients
def test_nothing_acknowledged_is_lost_doubled_or_reordered_under_chaos(tmp_path: Path) -> None:
    why = zookeepers.absent()
    if why is not None:
        missing(why)
    seed = os.environ.get("LOGKERNEL_CHAOS_SEED")
    command = [sys.executable, str(HERE), "--minutes", str(MINUTES), "--folder", str(tmp_path / "run")]
    command += ["--seed", seed] if seed else []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        told, _ = process.communicate(timeout=1500)
    finally:
        process.terminate()
        process.wait(180)
    print(told)
    assert process.returncode == 0, told[-4000:]
    found = json.loads((tmp_path / "run" / "figures.json").read_text())
    assert found["anomalies"] == {}
    assert sum(found["faults"].values()) >= 5
    assert found["acknowledged"] > 1_000
    assert found["committed"] > 20
    if not found["inside"]:
        warnings.warn("this machine forbids namespaces: links and disks were not harmed", stacklevel=1)


def test_what_a_run_makes_is_gone_when_it_is_killed(tmp_path: Path) -> None:
    """Namespaces, links and mounts end with the program, even by kill -9."""
    words = field.inside()
    if words is None:
        pytest.skip("this machine forbids namespaces")
    program = (
        "import subprocess, sys; from pathlib import Path; from chaos.field import Field; "
        "field = Field(['b1']); field.disk(Path(sys.argv[1])); field.fill(Path(sys.argv[1])); "
        "subprocess.Popen([*field.command('b1'), 'sleep', '1000.5']); print('made', flush=True); sys.stdin.read()"
    )
    disk = tmp_path / "disk"
    process = subprocess.Popen(
        [*words, sys.executable, "-c", program, str(disk)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "made\n"
    process.kill()
    process.communicate(timeout=300)

    def left() -> list[str]:
        links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
        mounts = Path("/proc/mounts").read_text()
        sleeping = [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"1000.5" in read_bytes(path)]
        return [
            *(["link"] if "to-b1" in links else []),
            *(["disk"] if str(disk) in mounts else []),
            *map(str, sleeping),
        ]

    while left():  # a moment, until the kernel has ended them; pytest's timeout bounds it
        time.sleep(0.01)
    assert list(disk.iterdir()) == []


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
