"""Each outside client writes to a served log and reads back what it wrote; `tests/interop` holds the rest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from outside_clients import PYTHON_CLIENTS, Client, Java, Sent

from logkernel.plugins.spark import java_home

HERE = Path(__file__).resolve().parent
INTEROP = HERE.parent / "interop"
pytestmark = pytest.mark.interop


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


def check_round_trip(client: Client, bootstrap: str, topic: str) -> None:
    """Write compressed records with acks=all; places, keys, values and headers come back."""
    sent = [Sent(b"k%d" % number, b"value %d" % number, (("h", b"1"),)) for number in range(100)]
    assert client.produce(bootstrap, topic, sent, codec="lz4") == [(0, offset) for offset in range(100)]
    got = client.consume(bootstrap, topic, 100)
    assert [(row.offset, *row.content) for row in got] == [
        (offset, record.key, record.value, record.headers) for offset, record in enumerate(sent)
    ]


@pytest.mark.parametrize("name", PYTHON_CLIENTS)
def test_a_python_client_reads_what_it_wrote(name: str, broker_session: Any, topic: str) -> None:
    check_round_trip(PYTHON_CLIENTS[name], broker_session.bootstrap, topic)


def test_kcat_reads_what_it_wrote(kcat: str, broker_session: Any, topic: str) -> None:
    def run(*arguments: str, stdin: str = "") -> str:
        command = [kcat, "-b", broker_session.bootstrap, "-t", topic, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=300, check=True).stdout

    lines = [f"k{number}:value {number}" for number in range(100)]
    run("-P", "-K:", "-z", "lz4", stdin="\n".join(lines))
    assert run("-C", "-e", "-q", "-f", "%k:%s\n").splitlines() == lines


def test_the_java_client_reads_what_it_wrote(
    kafka_clients_jars: Path, broker_session: Any, topic: str, tmp_path: Path
) -> None:
    jars = f"{kafka_clients_jars}/*"
    subprocess.run(["javac", "-cp", jars, "-d", str(tmp_path), str(INTEROP / "Interop.java")], check=True)
    command = ["java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}:{tmp_path}", "Interop"]
    check_round_trip(Java(lambda *arguments: [*command, *arguments]), broker_session.bootstrap, topic)


@pytest.mark.long
def test_spark_reads_what_it_wrote(broker_session: Any, topic: str, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    pytest.importorskip("pyarrow")
    environment = dict(os.environ)
    if shutil.which("java") is None and "JAVA_HOME" not in environment:
        environment["JAVA_HOME"] = java_home(str(tmp_path / "java"))
    driver = [sys.executable, str(HERE / "spark_round_trip.py"), broker_session.bootstrap, topic]
    done = subprocess.run(driver, env=environment, check=True, capture_output=True, text=True, timeout=240)
    assert done.stdout.split() == ["1000"]
