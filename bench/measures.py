"""What is measured. Each measure takes a `Rig` and returns samples by row name; `run.py` interleaves the brokers."""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import statistics
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import cleaning
import clients
import groups
import process
import sessions
import transacting
from confluent_kafka.admin import AdminClient
from rig import Rig, Samples
from server import Server, ask_api_versions

GB = 1e9


def _topic() -> str:
    return f"bench-{uuid.uuid4().hex[:10]}"


def _drop(server: Server, topic: str) -> None:
    clients.delete_topic(server.bootstrap, topic)


def _touch_memory(folder: Path, total_bytes: int) -> None:
    """Have the page cache's next pages warm. The first touch of a page that the machine's host took back can cost
    more than all of a broker's work on it, and would be paid by whichever broker comes first."""
    path, chunk = folder / "touch", bytes(1 << 20)
    with path.open("wb") as file:
        for _ in range(total_bytes // len(chunk) + 1):
            file.write(chunk)
    path.unlink()


def _quiet(folder: Path) -> None:
    """Before what is short: warm memory, and nothing left to the disk by the broker before."""
    _touch_memory(folder, 512_000_000)
    os.sync()


def _throughput(server: Server, label: str, total_bytes: int, act: Callable[[], float]) -> Samples:
    _touch_memory(server.folder, 2 * total_bytes)
    before = process.cpu_s(server.pid)
    seconds = act()
    spent = process.cpu_s(server.pid) - before
    return {f"{label}, broker CPU": spent / (total_bytes / GB), f"{label}, throughput": total_bytes / seconds / 1e6}


def produce(rig: Rig) -> Samples:
    """Records of 1,000 and of 100 bytes to 1 and to 6 partitions."""
    found: Samples = {}
    for size in (1000, 100):
        # small records are bounded by the client, so half the bytes; with fewer, the 10 ms steps of /proc would show
        count = rig.megabytes * 1_000_000 // size // (1 if size == 1000 else 2)
        for partitions in (1, 6):
            topic = _topic()
            clients.create_topic(rig.shared.bootstrap, topic, partitions)
            act = functools.partial(clients.produce, rig.shared.bootstrap, topic, partitions, size, count)
            label = f"produce {size} B, {partitions} partition{'s' if partitions > 1 else ''}"
            found |= _throughput(rig.shared, label, count * size, act)
            _drop(rig.shared, topic)
    return found


def consume(rig: Rig) -> Samples:
    """Read back 1,000-byte records from one partition."""
    topic, size = _topic(), 1000
    count = rig.megabytes * 1_000_000 // size
    bootstrap = rig.shared.bootstrap
    clients.create_topic(bootstrap, topic, 1)
    clients.produce(bootstrap, topic, 1, size, count)
    clients.consume(bootstrap, topic, 1, count)  # once for warmth
    found = _throughput(
        rig.shared, f"consume {size} B", count * size, lambda: clients.consume(bootstrap, topic, 1, count)
    )
    _drop(rig.shared, topic)
    return found


def latency(rig: Rig) -> Samples:
    """One record at a time, acks=all."""
    topic = _topic()
    clients.create_topic(rig.shared.bootstrap, topic, 1)
    found = clients.latencies_ms(rig.shared.bootstrap, topic, 3000)
    _drop(rig.shared, topic)
    cuts = statistics.quantiles(found, n=100)
    return {"latency acks=all, p50": cuts[49], "latency acks=all, p99": cuts[98]}


def start(rig: Rig) -> Samples:
    """From exec to the first answer on an empty folder, after a pause and again at once (which says what of it is the
    machine's waking up); and what it holds when left alone."""
    with rig.fresh() as server, rig.fresh() as another:
        _quiet(server.folder)
        seconds = server.start()
        server.stop()
        again = another.start()
        time.sleep(3)
        return {
            "start to first answer": seconds * 1000,
            "start to first answer, again": again * 1000,
            "resident, idle": process.resident_mib(another.pid),
        }


def restart(rig: Rig) -> Samples:
    """kill -9 with `restart_gb` in one partition; from exec to the first answer and to a record acknowledged there."""
    with rig.fresh() as server:
        server.start()
        topic = _topic()
        clients.create_topic(server.bootstrap, topic, 1)
        clients.produce(server.bootstrap, topic, 1, 1000, int(rig.restart_gb * 1_000_000))
        server.kill()
        begun = time.perf_counter()
        answered = server.start()
        clients.first_ack(server.bootstrap, topic)
        label = f"restart after kill -9, {rig.restart_gb:g} GB"
        return {f"{label}, first answer": answered, f"{label}, first ack": time.perf_counter() - begun}


def connections(rig: Rig) -> Samples:
    """Memory of 1,000 idle connections, each after one ApiVersions round trip."""
    number = 1000
    with rig.fresh() as server, contextlib.ExitStack() as links:
        server.start()
        time.sleep(2)
        before = process.resident_mib(server.pid)
        for _ in range(number):
            link = links.enter_context(socket.create_connection(("127.0.0.1", server.port), 10))
            ask_api_versions(link)
        return {f"{number:,} idle connections": process.resident_mib(server.pid) - before}


def partitions(rig: Rig) -> Samples:
    """Create a topic of 1,000 partitions, and open it again after a clean stop."""
    number = 1000
    with rig.fresh() as server:
        server.start()
        topic = _topic()
        _quiet(server.folder)
        created = clients.create_topic(server.bootstrap, topic, number)
        server.stop()
        begun = time.perf_counter()
        server.start()
        admin = AdminClient({"bootstrap.servers": server.bootstrap, **clients.FAST_RECONNECT})
        clients.wait_for_leaders(admin, topic, number, begun + clients.WAIT_S)
        opened = time.perf_counter() - begun
        return {f"{number:,} partitions, created": created, f"{number:,} partitions, opened again": opened}


MEASURES: dict[str, Callable[[Rig], Samples]] = {
    found.__name__: found for found in (
        produce, consume, latency, start, restart, connections, partitions, cleaning.compaction,
        cleaning.compaction_beside, cleaning.retention, groups.rebalance, groups.commits, groups.offsets_start,
        transacting.transactions, transacting.isolation, sessions.sessions,
    )
}  # fmt: skip
