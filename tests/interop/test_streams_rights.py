"""Kafka Streams on a secured broker, with the rights that docs/streams-groups.md names and no others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel import TopicPartition
from logkernel.admin import ScramUpsertion

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "streams-groups.md"
WAIT_S = 240.0
SETTINGS = (
    "group.initial.rebalance.delay.ms=0", "group.streams.initial.rebalance.delay.ms=0",
    "group.streams.min.heartbeat.interval.ms=200", "group.streams.heartbeat.interval.ms=300",
)  # fmt: skip
REPARTITION = "my-app-by-word-repartition"


def rights() -> str:
    """The commands of the page."""
    (found,) = re.findall(r"<!-- rights -->\n```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return found


@pytest.mark.parametrize("protocol", ["streams", "classic"])
def test_the_rights_of_the_page_are_enough(
    streams_classpath: str, start_broker: Callable[..., Any], tmp_path: Path, protocol: str
) -> None:
    """Exactly once needs the most. Nothing is refused while the application counts, and removes what it has read from
    its repartition topic."""
    broker = start_broker("--secure", *(f"--set={one}" for one in SETTINGS))
    file = Path(broker.data) / "security" / "client.properties"
    admins = dict(line.split("=", 1) for line in file.read_text().splitlines())
    jaas = re.sub(r'username=".*?" password=".*?"', 'username="ann" password="hers"', admins["sasl.jaas.config"])
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    known = {"PATH": path, "LOGKERNEL_BOOTSTRAP": broker.bootstrap, "LOGKERNEL_COMMAND_CONFIG": str(file)}
    with logkernel.connect(broker.bootstrap, **admins) as log, log.admin() as admin:
        admin.create_topics(["lines", "counts"])
        admin.alter_user_scram_credentials(ScramUpsertion("ann", "hers", "SCRAM-SHA-512"))
        subprocess.run(["bash", "-euc", rights()], env={**os.environ, **known}, check=True, timeout=300)
        with log.producer() as producer:
            producer.send("lines", value=b"leader epoch leader").result(WAIT_S)
        own = {"group.protocol": protocol, "sasl.jaas.config": jaas}
        app = start(streams_classpath, broker.bootstrap, tmp_path, admins | own)
        try:
            with log.consumer("counts", auto_offset_reset="earliest", isolation_level="read_committed") as results:
                counts: dict[Any, Any] = {}

                def counted() -> bool:
                    counts.update((record.key, record.value) for record in results.poll(0.1))
                    return counts == {b"leader": b"2", b"epoch": b"1"}

                wait_until(counted, app, broker)
            wait_until(lambda: first_offset(admin, REPARTITION) > 0, app, broker)
        finally:
            app.kill()
            app.wait()
    assert "refused" not in broker.log()


def start(classpath: str, bootstrap: str, folder: Path, more: dict[str, str]) -> subprocess.Popen[bytes]:
    """An instance of `StreamsCount`, which writes to `app.log`."""
    words = [bootstrap, "my-app", "lines", "counts", str(folder / "state")]
    own = {"processing.guarantee": "exactly_once_v2", "repartition.purge.interval.ms": "200"}
    settings = [f"{name}={value}" for name, value in (own | more).items()]
    command = ["java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-cp", classpath, "StreamsCount", *words, *settings]
    with (folder / "app.log").open("wb") as out:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out)


def first_offset(admin: Any, topic: str) -> int:
    (found,) = admin.list_offsets({TopicPartition(topic, 0): "earliest"}).values()
    return int(found.offset)


def wait_until(done: Callable[[], bool], app: subprocess.Popen[bytes], broker: Any) -> None:
    deadline = time.monotonic() + WAIT_S
    while not done():
        if time.monotonic() > deadline or app.poll() is not None:
            said = Path(broker.data).with_name("app.log").read_text()
            raise AssertionError(f"{broker.log()[-3000:]}\n{said[-3000:]}")
        time.sleep(0.05)
