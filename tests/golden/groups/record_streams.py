"""Records what Apache Kafka keeps of a Streams group: python record_streams.py > kafka-4.3.1-streams-log.tsv

One KRaft node, and `tests/interop/StreamsCount.java` twice: the second instance takes over tasks of the first, and
copies; both leave, and the group is deleted. Printed is what lies in `__consumer_offsets` of the group, in order: key
TAB value, each as hex, `-` for a tombstone.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "bench"))

import apache_kafka  # noqa: E402

import logkernel  # noqa: E402
from logkernel.kernel import Kernel  # noqa: E402
from logkernel.plugins.services.groups.streams.records import decode_key  # noqa: E402
from logkernel.record.batch import batches  # noqa: E402
from logkernel.record.decode import decode_batch  # noqa: E402

GROUP = "app"
WAIT_S = 120.0
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "group.streams.num.standby.replicas": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
}
FACTS = ("client.tag.zone=z1", "rack.aware.assignment.tags=zone", "client.rack=r1")


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        kafka = apache_kafka.KafkaServer(Path(scratch) / "kafka", SETTINGS)
        kafka.prepare()
        kafka.start()
        try:
            tell(kafka.bootstrap, Path(scratch), classpath(Path(scratch)))
        finally:
            kafka.stop()
        show(kafka.data / "__consumer_offsets-0")


def classpath(scratch: Path) -> str:
    streams = (("org.apache.kafka", "kafka-streams", apache_kafka.VERSION),)
    jars = apache_kafka.fetch(apache_kafka.CACHE / f"streams-{apache_kafka.VERSION}", streams)
    source = HERE.parents[1] / "interop" / "StreamsCount.java"
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(scratch), str(source)], check=True)
    return f"{scratch}:{jars}/*"


def tell(bootstrap: str, scratch: Path, paths: str) -> None:
    with logkernel.connect(bootstrap) as log, log.admin() as admin:
        for name in ("in", "out"):
            log.create_topic(name, partitions=3)
        running: list[subprocess.Popen[str]] = []
        try:
            for number in (1, 2):
                facts = [*FACTS, f"application.server=host{number}:{65_000 + number}"]
                command = [
                    "java",
                    "-cp",
                    paths,
                    "StreamsCount",
                    bootstrap,
                    GROUP,
                    "in",
                    "out",
                    str(scratch / f"{number}"),
                ]
                more = ["group.protocol=streams", *facts]
                running.append(subprocess.Popen([*command, *more], stdin=subprocess.PIPE, stdout=sys.stderr, text=True))
                wait(lambda number=number: is_stable(admin, number))
            for one in running:
                assert one.stdin is not None
                print("close", file=one.stdin, flush=True)
                assert one.wait(WAIT_S) == 0
        finally:
            for one in running:
                one.kill()
                one.wait()
        wait(lambda: is_stable(admin, 0, "Empty"))
        admin.delete_groups(GROUP)


def is_stable(admin: logkernel.Admin, members: int, state: str = "Stable") -> bool:
    if GROUP not in admin.list_groups():
        return False
    found = admin.describe_groups(GROUP)[GROUP]
    return found.state == state and len(found.members) == members


def wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def show(folder: Path) -> None:
    codec_for = Kernel().codec_for
    for segment in sorted(folder.glob("*.log")):
        data = segment.read_bytes()
        for facts in batches(data):
            for record in () if facts.is_control else decode_batch(data, facts, codec_for):
                if record.key is not None and (key := decode_key(record.key)) is not None and key.group_id == GROUP:
                    print(record.key.hex(), "-" if record.value is None else record.value.hex(), sep="\t")


if __name__ == "__main__":
    main()
