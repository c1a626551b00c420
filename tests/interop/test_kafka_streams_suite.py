"""Kafka's own integration tests of Kafka Streams, unchanged, against brokers of ours.

Their cluster is one class, `KafkaClusterTestKit`, for which `kafka_suite/` has a stand-in. `docs/outside-suites.md` has
what all of their classes say; here runs one of their tests. `LOGKERNEL_STREAMS_SUITE` runs whole classes:
EosIntegrationTest,org.apache.kafka.tools.ResetIntegrationTest. `LOGKERNEL_STREAMS_SUITE_ON=kafka` runs them on Apache
Kafka, without the stand-in.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from outside_tools import missing

ASKED = os.environ.get("LOGKERNEL_STREAMS_SUITE")
ON_KAFKA = os.environ.get("LOGKERNEL_STREAMS_SUITE_ON") == "kafka"
pytestmark = [pytest.mark.interop, pytest.mark.timeout(3_600 if ASKED else 900)]
PACKAGE = "org.apache.kafka.streams.integration"
KIT = Path(__file__).parent / "kafka_suite" / "KafkaClusterTestKit.java"
JUNIT = ("org.junit.platform", "junit-platform-console-standalone", "1.11.4")
OTHERS = (
    ("org.hamcrest", "hamcrest", "3.0"), ("org.mockito", "mockito-core", "5.20.0"),
    *(("org.bouncycastle", f"{name}-jdk18on", "1.82") for name in ("bcpkix", "bcprov", "bcutil")),
)  # fmt: skip
TESTS = (
    "kafka-streams-integration-tests:test", "kafka-streams:test", "kafka-clients:test", "kafka-server-common:test",
    "kafka-test-common-runtime", "kafka-test-common-internal-api", "kafka-streams-test-utils",
    "kafka-streams-scala_2.13", "kafka-tools:test",
)  # fmt: skip
TEST = "StandbyTaskCreationIntegrationTest#shouldCreateStandByTasksForMaterializedAndOptimizedSourceTables(boolean)"
RUNS = "[0,1]"
"""By the streams protocol and by the classic one. Tests that wait until a client has no lag are no judges: on a slow
machine, its answer to ListOffsets may set the watermark back that a Fetch has told it."""


@pytest.fixture(scope="module")
def classpath(apache_kafka: ModuleType, streams_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    tests = (*(("org.apache.kafka", name, apache_kafka.VERSION) for name in TESTS), *OTHERS)
    try:
        suite = apache_kafka.fetch(
            apache_kafka.CACHE / f"streams-and-tools-tests-{apache_kafka.VERSION}", tests, alone=True
        )
        junit = apache_kafka.fetch(apache_kafka.CACHE / f"junit-{JUNIT[2]}", (JUNIT,), alone=True)
        if ON_KAFKA:
            own = (("org.apache.kafka", "kafka-test-common-runtime", apache_kafka.VERSION),)
            cluster = apache_kafka.fetch(apache_kafka.CACHE / f"kafka-test-cluster-{apache_kafka.VERSION}", own)
            return f"{suite}/*:{cluster}/*:{apache_kafka.JARS}/*:{junit}/*:{streams_classpath}"
    except subprocess.CalledProcessError as error:
        missing(f"Kafka's tests cannot be fetched: {error}")
    jars = f"{suite}/*:{apache_kafka.JARS}/*:{junit}/*"
    kit = tmp_path_factory.mktemp("kit")
    subprocess.run(["javac", "-cp", jars, "-d", str(kit), str(KIT)], check=True, capture_output=True)
    return f"{kit}:{jars}:{streams_classpath}"


def test_kafkas_own_tests_pass(apache_kafka: ModuleType, classpath: str, tmp_path: Path) -> None:
    if ASKED:
        names = [name if "." in name else f"{PACKAGE}.{name}" for name in ASKED.split(",")]
        selected = [word for name in names for word in ("--select-class", name)]
    else:
        selected = ["--select-iteration", f"method:{PACKAGE}.{TEST}{RUNS}"]
    level = "INFO" if ASKED else "WARN"  # some classes look at what Kafka Streams logs
    program = "\t".join((sys.executable, "-m", "logkernel"))
    command = [
        *("java", "-Xmx2G" if ON_KAFKA else "-Xmx1G", "-XX:TieredStopAtLevel=1", *apache_kafka.logging_options(level)),
        *(f"-Dlogkernel.command={program}", f"-Djava.io.tmpdir={tmp_path}", "-cp", classpath),
        *("org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner", "--disable-ansi-colors"),
        *selected,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    counts = {name: int(count) for count, name in re.findall(r"\[ +(\d+) tests (\w+) +\]", done.stdout)}
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-6000:]}"
    assert counts["found"] == counts["successful"] > 0, counts
