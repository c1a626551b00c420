"""What one follower costs: a broker that only follows, and a C program that does as little as a follower can."""

from __future__ import annotations

import functools
import os
import socket
import statistics
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import clients
import rounds
from members import MEMBERS, MemberCluster

SIZE = 1000
BATCH_BYTES = 16_384
SOURCE = Path(__file__).with_name("follower.c")


@functools.cache
def _program() -> Path:
    """follower.c, compiled for this machine."""
    made = Path(tempfile.mkdtemp(prefix="logkernel-bench-")) / "follower"
    subprocess.run(["cc", "-O2", "-msse4.2", "-o", str(made), str(SOURCE)], check=True)
    return made


def least_cpu_s_per_gb(segments: Iterable[Path]) -> float:
    """Of the C program, which gets the segments' batches over TCP; a GB of batches."""
    with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.TemporaryDirectory() as folder:
        port = str(listener.getsockname()[1])
        command = [str(_program()), port, str(Path(folder) / "copy")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
            link, _ = listener.accept()
            with link:
                for path in segments:
                    with path.open("rb") as segment:
                        while os.sendfile(link.fileno(), segment.fileno(), None, 1 << 20):  # type: ignore[arg-type]
                            pass
            text, _ = follower.communicate()
    if follower.returncode:
        raise RuntimeError(f"the C follower ended with {follower.returncode}")
    spent, total, _ = text.split()
    return float(spent) / (int(total) / 1e9)


def follower(cluster: MemberCluster, count: int) -> dict[str, float]:
    """Broker 1 leads all partitions, the others follow; the median of these two. The client lingers until its batches
    of 16 KiB are full."""
    act = functools.partial(clients.produce, settings={"batch.size": BATCH_BYTES, "linger.ms": 20})
    least: list[float] = []

    def copy(topic: str) -> None:
        segments = sorted((cluster.member(1).folder / "data").glob(f"{topic}-*/*.log"))
        least.append(least_cpu_s_per_gb(segments))

    assignment = [MEMBERS] * rounds.PARTITIONS
    found = rounds.produce(cluster, SIZE, count, 3, act=act, assignment=assignment, before_delete=copy)
    share = statistics.median(found.cpu_s_per_gb[1:])
    return {
        "follower, batches of 16 KB": share,
        "follower, a C program's": least[0],
        "follower, times the C program": share / least[0],
    }
