"""Apache Kafka, fetched by Maven and run as one KRaft node. The interop tests take its jars from here as well."""

from __future__ import annotations

import base64
import fcntl
import os
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import class_archive
from members import MEMBERS, MemberCluster
from server import Server, free_port

VERSION = "4.3.1"
OLDER = "3.9.2"
"""The last line before 4: brokers that know less, which our clients must get on with."""
CACHE = Path(os.environ.get("LOGKERNEL_INTEROP_CACHE") or Path.home() / ".cache" / "logkernel-interop")


def jars_of(version: str) -> Path:
    """Where `fetch` puts them."""
    return CACHE / f"kafka-{version}"


def artifacts_of(version: str) -> tuple[tuple[str, str, str], ...]:
    """What a broker and its tools need; 3.9 brings its own logging."""
    kafka = tuple(("org.apache.kafka", name, version) for name in ("kafka_2.13", "kafka-tools"))
    if version.startswith("3."):
        return (*kafka, ("org.slf4j", "slf4j-reload4j", "1.7.36"))
    return (*kafka, ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"))


JARS = jars_of(VERSION)
ARTIFACTS = artifacts_of(VERSION)

SPARK_KAFKA_VERSION = "4.2.0"
"""Spark's own Kafka connector: the newest in Maven Central."""
OLDER_SPARK_KAFKA = {"4.0": "4.0.4", "4.1": "4.1.3"}
"""For a Spark before 4.2, as the connector calls Spark's insides."""

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
OLD = """\
log4j.rootLogger={level}, ERR
log4j.appender.ERR=org.apache.log4j.ConsoleAppender
log4j.appender.ERR.Target=System.err
log4j.appender.ERR.layout=org.apache.log4j.PatternLayout
log4j.appender.ERR.layout.ConversionPattern=%d %p %c: %m%n
"""


ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


def _dependency(group: str, artifact: str, version: str, more: str) -> str:
    """`artifact` may name a classifier behind a colon."""
    name, _, classifier = artifact.partition(":")
    kind = f"<classifier>{classifier}</classifier>" if classifier else ""
    ids = f"<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>{kind}"
    return f"    <dependency>{ids}{more}</dependency>"


def _pom(artifacts: Sequence[tuple[str, str, str]], alone: bool) -> str:
    entries = "\n".join(_dependency(*artifact, ALONE if alone else "") for artifact in artifacts)
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


def spark_kafka_version(spark: str) -> str:
    """Of the connector for this version of Spark."""
    return OLDER_SPARK_KAFKA.get(".".join(spark.split(".")[:2]), SPARK_KAFKA_VERSION)


def spark_kafka(spark: str) -> Path:
    """The jars of Spark's own connector, alone: its pom names repositories that are not needed. Raises
    CalledProcessError where Maven fails."""
    version = spark_kafka_version(spark)
    artifacts = (
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", version),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
        ("org.apache.kafka", "kafka-clients", "3.9.2"),
        ("org.apache.commons", "commons-pool2", "2.13.1"),
    )
    return fetch(CACHE / f"spark-kafka-{version}", artifacts, alone=True)


def logging_options(level: str) -> list[str]:
    """JVM options that send log lines of `level` and above to stderr, by either logging library."""
    options = []
    for option, name, text in (("log4j2.configurationFile", "log4j2", LOGGING), ("log4j.configuration", "log4j1", OLD)):
        path = CACHE / f"{name}-{level.lower()}.properties"
        if not path.exists():
            made = path.with_suffix(f".{os.getpid()}")
            made.write_text(text.format(level=level))
            made.rename(path)
        options.append(f"-D{option}={path if name == 'log4j2' else path.as_uri()}")
    return options


def java(main: str, *arguments: str, heap: str = "256M", classpath: str = "", version: str = VERSION) -> list[str]:
    """The command line of a Java class with Kafka's jars; for tools and clients, not for the server."""
    jars = jars_of(version)
    paths = f"{jars}/*:{classpath}" if classpath else f"{jars}/*"  # an archive asks for its jars first
    quick = [*class_archive.QUICK, *class_archive.options(TOOLS, CACHE, jars)]
    return ["java", f"-Xmx{heap}", *quick, *logging_options("WARN"), "-cp", paths, main, *arguments]


TOOLS = "kafka-tools"


def archive_tools(serve: Callable[[], str]) -> None:
    """Have what `java` gives begin sooner: its archive is made from a tool that is producer, consumer and admin, at the
    broker that `serve` starts."""

    def train(given: list[str]) -> None:
        tool = java("org.apache.kafka.tools.EndToEndLatency", "--bootstrap-server", serve(), "--topic", "latency",
                    "--num-records", "5", "--producer-acks", "1", "--record-size", "20")  # fmt: skip
        subprocess.run([tool[0], *given, *tool[1:]], check=True, capture_output=True, timeout=120)

    class_archive.options(TOOLS, CACHE, JARS, train)


SHARES = {"share.coordinator.state.topic.replication.factor": "1", "share.coordinator.state.topic.min.isr": "1"}


class KafkaServer(Server):
    """A combined broker and controller. Only what one node forces is changed from Kafka's defaults."""

    brief = False
    """For a test: a JVM that begins sooner, not the one that Kafka's launcher starts. A busy machine may hold it up for
    longer than its own controller waits by default."""

    def __init__(self, folder: Path, settings: dict[str, str] | None = None, version: str = VERSION) -> None:
        super().__init__(folder, settings)
        self.version = version
        self.jvm: Sequence[str] = SERVER_JVM
        self.name = f"Apache Kafka {version}"
        self.controller_port = free_port()
        self.cluster_id = base64.b64encode(uuid.uuid4().bytes, b"00")[:22].decode()

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
            **({} if self.version.startswith("3.") else SHARES),
            **({"broker.session.timeout.ms": "60000"} if self.brief else {}),
            **self.settings,
        }

    def prepare(self) -> None:
        super().prepare()
        fetch(jars_of(self.version), artifacts_of(self.version))
        lines = [f"{name}={value}\n" for name, value in self._properties().items()]
        self._properties_path.write_text("".join(lines))
        form = ["kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", str(self._properties_path)]
        subprocess.run(java(*form, version=self.version), check=True, capture_output=True)
        if self.brief:
            self._archive(self._train)

    def _train(self, given: list[str]) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            seen = KafkaServer(Path(scratch), self.settings, self.version)
            seen.brief = False
            seen.jvm = (*class_archive.QUICK, *given)
            seen.prepare()
            seen.start()
            seen.stop()

    def _archive(self, train: class_archive.Train | None = None) -> list[str]:
        return class_archive.options("kafka", CACHE, jars_of(self.version), train)

    def command(self) -> list[str]:
        jvm = ("-Xmx1G", *class_archive.QUICK, *self._archive()) if self.brief else self.jvm
        paths = ["-cp", f"{jars_of(self.version)}/*", "kafka.Kafka", str(self._properties_path)]
        return ["java", *jvm, *logging_options("INFO"), *paths]


class ZooKeeperServer(Server):
    """One ZooKeeper of the version that Kafka 3.9 brings."""

    name = "ZooKeeper"

    def command(self) -> list[str]:
        path = self.folder / "zookeeper.properties"
        properties = {
            "dataDir": str(self.folder / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": "127.0.0.1",
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
            **self.settings,
        }
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        paths = ["-cp", f"{jars_of(OLDER)}/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(path)]
        return ["java", "-Xmx512M", *class_archive.QUICK, *logging_options("INFO"), *paths]

    def ask(self, link: socket.socket) -> None:
        """It listens when it is ready."""


class KafkaMember(Server):
    """A broker of Kafka 3.9 in a cluster with ZooKeeper (HOST:PORT/CHROOT). Settings are Kafka's defaults, for three
    brokers."""

    name = f"Apache Kafka {OLDER}"

    brief = False
    """As of `KafkaServer`; an archive is used where there is one, and not made."""

    def __init__(self, folder: Path, node_id: int, zookeeper: str, settings: dict[str, str] | None = None) -> None:
        super().__init__(folder, settings)
        self.node_id, self.zookeeper = node_id, zookeeper

    def prepare(self) -> None:
        super().prepare()
        fetch(jars_of(OLDER), artifacts_of(OLDER))

    def command(self) -> list[str]:
        properties = {
            "broker.id": str(self.node_id),
            "zookeeper.connect": self.zookeeper,
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": str(self.folder / "data"),
            "transaction.state.log.min.isr": "2",
            **({"zookeeper.connection.timeout.ms": "120000"} if self.brief else {}),
            **self.settings,
        }
        path = self.folder / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        archive = class_archive.options("kafka", CACHE, jars_of(OLDER))
        jvm = ("-Xmx512M", *class_archive.QUICK, *archive) if self.brief else SERVER_JVM
        return ["java", *jvm, *logging_options("INFO"), "-cp", f"{jars_of(OLDER)}/*", "kafka.Kafka", str(path)]


def kafka_members(folder: Path, zookeeper: str, settings: dict[str, str] | None = None) -> list[Server]:
    return [KafkaMember(folder / f"broker-{node_id}", node_id, zookeeper, settings) for node_id in MEMBERS]


class KafkaCluster(MemberCluster):
    """ZooKeeper and three brokers of Kafka 3.9."""

    def __init__(self, folder: Path) -> None:
        self.zookeeper = ZooKeeperServer(folder / "zookeeper")
        super().__init__(kafka_members(folder, self.zookeeper.bootstrap))

    def start(self) -> None:
        self.zookeeper.prepare()
        self.zookeeper.start()
        super().start()

    def stop(self) -> None:
        super().stop()
        self.zookeeper.stop()
