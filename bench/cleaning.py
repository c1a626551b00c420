"""Measures of cleaning. Both brokers get copies of one folder, which our storage wrote, and the same commands."""

from __future__ import annotations

import contextlib
import functools
import random
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import clients
import process
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from ours import LogkernelServer

if TYPE_CHECKING:
    from rig import Rig, Samples
    from server import Server

TOPIC = "bench-cleaning"
RECORD_BYTES, BATCH_RECORDS = 100, 150
SEGMENTS = 10_000
RATE = 1000
ALONE_S = 20.0
"""About as long as a compaction beside takes: the longest of more requests is longer."""
CLEANER = {"log.cleaner.backoff.ms": "200"}
CHECKPOINT = "cleaner-offset-checkpoint"


@functools.cache
def _keyed_folder(root: Path, codec_name: str, records: int) -> Path:
    """A partition's folder of `records` records with a tenth as many keys, all of it in closed segments."""
    from logkernel.config.topic import TopicSettings
    from logkernel.kernel import Kernel
    from logkernel.partition.producers import ProducerStates
    from logkernel.record.batch import batches
    from logkernel.record.encode import encode_batch
    from logkernel.storage.disk import RealDisk
    from logkernel.storage.log import Log
    from logkernel.vocabulary import Record

    home = root / f"keyed-{codec_name}"
    home.mkdir(parents=True)
    codec = None if codec_name == "none" else Kernel().codec(codec_name)
    log = Log.open(RealDisk(), str(home), TOPIC, 0, TopicSettings(), producers=ProducerStates())
    chance, values, now_ms = random.Random(1), clients.payloads(RECORD_BYTES - 10), time.time_ns() // 1_000_000
    for _ in range(0, records, BATCH_RECORDS):
        made = [
            Record(b"%010d" % chance.randrange(records // 10), values[chance.randrange(len(values))], (), now_ms)
            for _ in range(BATCH_RECORDS)
        ]
        data = encode_batch(made, base_offset=log.end_offset, leader_epoch=0, codec=codec)
        log.append(data, list(batches(data)), now_ms)
    log.roll(now_ms)
    log.close()
    return home / f"{TOPIC}-0"


@contextlib.contextmanager
def _with_copy(rig: Rig, folder: Path) -> Iterator[Server]:
    """A running broker that leads a copy of `folder`."""
    server = rig.make(rig.folder / f"cleaning-{time.monotonic_ns()}", CLEANER)
    server.prepare()
    try:
        server.start()
        clients.create_topic(server.bootstrap, TOPIC, 1)
        server.stop()
        home = server.data / f"{TOPIC}-0"
        own = (home / "partition.metadata").read_bytes()
        shutil.rmtree(home)
        shutil.copytree(folder, home)
        (home / "partition.metadata").write_bytes(own)  # the topic id is the broker's own
        server.start()
        clients.wait_for_leaders(
            AdminClient({"bootstrap.servers": server.bootstrap}), TOPIC, 1, time.perf_counter() + clients.WAIT_S
        )
        time.sleep(3)
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.folder, ignore_errors=True)


def _configure(server: Server, **settings: str) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(60)


def _is_clean(server: Server, end: int) -> bool:
    path = server.data / CHECKPOINT
    with contextlib.suppress(OSError):
        return f"{TOPIC} 0 {end}" in path.read_text().splitlines()
    return False


def _records(rig: Rig) -> int:
    """1 GB of 100-byte records with the default of --mb."""
    wanted = rig.megabytes * 2 * 1_000_000 // RECORD_BYTES
    return -(-wanted // BATCH_RECORDS) * BATCH_RECORDS


def compaction(rig: Rig) -> Samples:
    """CPU that a broker spends on compacting a log of 100-byte records, ten of each key; it does nothing else."""
    found: Samples = {}
    for codec in ("none", "lz4"):
        records = _records(rig)
        folder = _keyed_folder(rig.folder, codec, records)
        with _with_copy(rig, folder) as server:
            before, begun = process.cpu_s(server.pid), time.perf_counter()
            _configure(server, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
            while not _is_clean(server, records):
                if time.perf_counter() > begun + 10 * clients.WAIT_S:
                    raise TimeoutError("the log was not compacted")
                time.sleep(0.05)
            found[f"compaction, {codec}, broker CPU"] = process.cpu_s(server.pid) - before
            found[f"compaction, {codec}, resident after"] = process.resident_mib(server.pid)
    return found


def compaction_beside(rig: Rig) -> Samples:
    """p99, p99.9 and the longest of 1,000 produced records a second, without and with a compaction beside."""
    records = _records(rig)
    with _with_copy(rig, _keyed_folder(rig.folder, "none", records)) as server:
        clients.create_topic(server.bootstrap, "bench-beside", 1)
        _steady_ms(server.bootstrap, "bench-beside", lambda passed_s: passed_s > 2)
        alone = _steady_ms(server.bootstrap, "bench-beside", lambda passed_s: passed_s > ALONE_S)
        _configure(server, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
        beside = _steady_ms(
            server.bootstrap,
            "bench-beside",
            lambda passed_s: passed_s > clients.WAIT_S or _is_clean(server, records),
        )
    found: Samples = {}
    for where, each in (("alone", alone), ("beside compaction", beside)):
        each.sort()
        found[f"produce 1,000/s, p99 {where}"] = statistics.quantiles(each, n=100)[98]
        found[f"produce 1,000/s, p99.9 {where}"] = statistics.quantiles(each, n=1000)[998]
        found[f"produce 1,000/s, longest {where}"] = each[-1]
    found["produce 1,000/s, beside / alone"] = (
        found["produce 1,000/s, p99 beside compaction"] / found["produce 1,000/s, p99 alone"]
    )
    return found


def _steady_ms(bootstrap: str, topic: str, over: Callable[[float], bool]) -> list[float]:
    """Send to acknowledgement of each record, at a steady rate by one producer, until `over` (given the seconds that
    passed; asked ten times a second). What the producer's own start costs is left out. Acknowledgements are heard on a
    thread: `poll` with less than 1 ms does not wait, and a client that spins takes one core of two from the broker."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    producer.list_topics(topic, timeout=30)
    value, found = clients.payloads(RECORD_BYTES)[0], []
    ended = threading.Event()

    def hear() -> None:
        while not ended.is_set():
            producer.poll(0.1)

    hearing = threading.Thread(target=hear)
    hearing.start()
    begun = time.perf_counter()
    number = 0
    while number % (RATE // 10) or not over(time.perf_counter() - begun):
        while (wait_s := begun + number / RATE - time.perf_counter()) > 0:
            time.sleep(wait_s)
        sent = time.perf_counter()
        producer.produce(
            topic, value, partition=0,
            on_delivery=lambda error, _, sent=sent: found.append((time.perf_counter() - sent) * 1000),
        )  # fmt: skip
        number += 1
    ended.set()
    hearing.join()
    producer.flush(clients.WAIT_S)
    return found[RATE // 2 :]


RETENTION = """
import sys, time, logkernel
from logkernel.vocabulary import Record, TopicPartition
with logkernel.open(sys.argv[1]) as log:
    log.create_topic("t", 1)
    replica = log._broker.replicas.get(TopicPartition("t", 0))
    for _ in range(int(sys.argv[2])):
        log.append_many("t", [Record(b"k", b"v", (), 1)])
        replica.log.roll(0)
with logkernel.open(sys.argv[1], log_retention_ms=1000) as log:
    begun = time.perf_counter()
    (result,) = log.apply_retention("t")
    print(time.perf_counter() - begun)
    assert result.before.segments - result.after.segments == int(sys.argv[2]), result
"""


def retention(rig: Rig) -> Samples:
    """One call that drops 10,000 segments, after a restart; ours alone has such a call."""
    if not isinstance(rig.shared, LogkernelServer):
        return {}
    folder = rig.folder / f"retention-{time.monotonic_ns()}"
    command = [str(rig.shared.python), "-c", RETENTION, str(folder), str(SEGMENTS)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    shutil.rmtree(folder)
    return {f"retention of {SEGMENTS:,} segments": float(told)}
