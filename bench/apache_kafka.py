"""Apache Kafka, fetched by Maven and run as one KRaft node. The interop tests take its jars from here as well."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from server import Server, free_port

VERSION = "4.3.1"
CACHE = Path(os.environ.get("LOGKERNEL_INTEROP_CACHE") or Path.home() / ".cache" / "logkernel-interop")
JARS = CACHE / f"kafka-{VERSION}"

ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", VERSION),
    ("org.apache.kafka", "kafka-tools", VERSION),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)

SPARK_KAFKA_VERSION = "4.2.0"
"""Spark's own Kafka connector: the newest in Maven Central. Spark's pom names repositories that are not needed."""
SPARK_KAFKA = CACHE / f"spark-kafka-{SPARK_KAFKA_VERSION}"
SPARK_KAFKA_ARTIFACTS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK_KAFKA_VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)

# Kafka's own launcher passes these to the JVM; without them the comparison would be with a slower Kafka.
SERVER_JVM = (
    "-Xms1G",
    "-Xmx1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)

LOGGING = """\
rootLogger.level = {level}
rootLogger.appenderRef.err.ref = ERR
appender.err.type = Console
appender.err.name = ERR
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %d %p %c: %m%n
"""


ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


def _pom(artifacts: Sequence[tuple[str, str, str]], alone: bool) -> str:
    entries = "\n".join(
        f"    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"{ALONE if alone else ''}</dependency>"
        for group, artifact, version in artifacts
    )
    return (
        "<project>\n  <modelVersion>4.0.0</modelVersion>\n  <groupId>logkernel</groupId>\n"
        "  <artifactId>anchor</artifactId>\n  <version>1</version>\n  <packaging>pom</packaging>\n"
        f"  <dependencies>\n{entries}\n  </dependencies>\n</project>\n"
    )


def fetch(folder: Path = JARS, artifacts: Sequence[tuple[str, str, str]] = ARTIFACTS, *, alone: bool = False) -> Path:
    """Jars of Kafka, or of other artifacts, with all that they need (`alone`: without); raises CalledProcessError where
    Maven fails."""
    if folder.is_dir():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if folder.is_dir():
            return folder
        (Path(scratch) / "pom.xml").write_text(_pom(artifacts, alone))
        jars = Path(scratch) / "jars"
        goal = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        subprocess.run(goal, cwd=scratch, check=True, stdin=subprocess.DEVNULL)
        jars.rename(folder)
    return folder


def logging_options(level: str) -> list[str]:
    """JVM options that send log lines of `level` and above to stderr."""
    path = CACHE / f"log4j2-{level.lower()}.properties"
    if not path.exists():
        made = path.with_suffix(f".{os.getpid()}")
        made.write_text(LOGGING.format(level=level))
        made.rename(path)
    return [f"-Dlog4j2.configurationFile={path}"]


def java(main: str, *arguments: str, heap: str = "256M", classpath: str = "") -> list[str]:
    """The command line of a Java class with Kafka's jars; for tools and clients, not for the server."""
    paths = f"{classpath}:{JARS}/*" if classpath else f"{JARS}/*"
    return ["java", f"-Xmx{heap}", "-XX:TieredStopAtLevel=1", *logging_options("WARN"), "-cp", paths, main, *arguments]


class KafkaServer(Server):
    """A combined broker and controller. Only what one node forces is changed from Kafka's defaults."""

    name = f"Apache Kafka {VERSION}"

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        super().__init__(folder, settings)
        self.controller_port = free_port()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def _properties_path(self) -> Path:
        return self.folder / "server.properties"

    def _properties(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self.settings,
        }

    def prepare(self) -> None:
        super().prepare()
        fetch()
        lines = [f"{name}={value}\n" for name, value in self._properties().items()]
        self._properties_path.write_text("".join(lines))
        cluster_id = subprocess.run(
            java("kafka.tools.StorageTool", "random-uuid"), check=True, capture_output=True, text=True
        ).stdout.strip()
        form = java("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._properties_path))
        subprocess.run(form, check=True, capture_output=True)

    def command(self) -> list[str]:
        paths = ["-cp", f"{JARS}/*", "kafka.Kafka", str(self._properties_path)]
        return ["java", *SERVER_JVM, *logging_options("INFO"), *paths]
