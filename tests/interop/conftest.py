"""Fixtures of the interop tests: outside clients, Apache Kafka brokers and Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from outside_clients import PYTHON_CLIENTS, READ_TIMEOUT_S, Client, Java, Sent
from outside_tools import missing

import logkernel

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # for what the tests of this folder share


@pytest.fixture
def clients() -> dict[str, Client]:
    """Every Python client by its distribution's name."""
    return PYTHON_CLIENTS


@pytest.fixture(scope="session")
def java(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Java:
    """The Java client, its driver compiled once."""
    classes = tmp_path_factory.mktemp("java")
    compile_command = ["javac", "-cp", f"{apache_kafka.JARS}/*", "-d", str(classes), str(HERE / "Interop.java")]
    subprocess.run(compile_command, check=True, capture_output=True)
    return Java(lambda *arguments: apache_kafka.java("Interop", *arguments, classpath=str(classes)))


@pytest.fixture(scope="session")
def kafkas(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Addresses of Apache Kafka brokers by version; each is started when it is first asked for."""
    settings = {
        "transaction.state.log.num.partitions": "2",
        "offsets.topic.num.partitions": "2",
        "group.initial.rebalance.delay.ms": "0",
    }
    started: dict[str, Any] = {}

    def start(version: str) -> str:
        if version not in started:
            try:
                apache_kafka.fetch(apache_kafka.jars_of(version), apache_kafka.artifacts_of(version))
            except subprocess.CalledProcessError as error:
                missing(f"the jars of Kafka {version} cannot be fetched: {error}")
            server = apache_kafka.KafkaServer(tmp_path_factory.mktemp("kafka"), settings, version)
            server.prepare()
            server.start()
            started[version] = server
        return str(started[version].bootstrap)

    yield start
    for server in started.values():
        server.stop()


KAFKAS = ["4.3.1", "3.9.2"]


@pytest.fixture(params=KAFKAS)
def kafka(request: pytest.FixtureRequest, kafkas: Callable[[str], str]) -> str:
    """The address of an Apache Kafka broker, of each version that our clients are held against."""
    return kafkas(request.param)


@pytest.fixture(params=["ours", *KAFKAS])
def bootstrap(request: pytest.FixtureRequest) -> str:
    """The address of a broker: ours, or Apache Kafka's of some version."""
    if request.param == "ours":
        return str(request.getfixturevalue("broker_session").bootstrap)
    return str(request.getfixturevalue("kafkas")(request.param))


@pytest.fixture
def topic() -> str:
    """A topic name that no other test has."""
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def sample() -> list[Sent]:
    """Records with every shape that a client can send: null and empty parts, headers, timestamps."""
    base_ms = int(time.time() * 1000) - 60_000
    return [
        Sent(b"key", b"value", (), base_ms),
        Sent(None, b"no key", (), base_ms + 1),
        Sent(b"tombstone", None, (), base_ms + 2),
        Sent(b"", b"", (), base_ms + 3),
        Sent(b"h", b"headers", (("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None)), base_ms + 4),
        Sent(b"order", b"older than its neighbours", (), base_ms - 5000),
        Sent(b"\x00\xff", bytes(range(256)) * 40, (("utf-8 é", b"\xc3\xa9"),), base_ms + 5),
        *(Sent(b"k%d" % number, b"v%d" % number * 20, (), base_ms + 10 + number) for number in range(100)),
    ]


@pytest.fixture
def make_topic() -> Callable[..., None]:
    """Creates a topic through confluent-kafka's admin client, and waits until each partition has a leader."""

    def make(bootstrap: str, name: str, partitions: int = 1, **config: str) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": bootstrap})
        settings = {setting.replace("_", "."): value for setting, value in config.items()}
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(READ_TIMEOUT_S)
        deadline = time.monotonic() + READ_TIMEOUT_S
        while time.monotonic() < deadline:
            found = admin.list_topics(name, timeout=READ_TIMEOUT_S).topics[name].partitions
            if len(found) == partitions and all(partition.leader >= 0 for partition in found.values()):
                return
        pytest.fail(f"topic {name} has no leaders")

    return make


@pytest.fixture(scope="session")
def java_transactions(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Java:
    """Transactions of the Java client, through `Transactions.java`, compiled once."""
    classes = tmp_path_factory.mktemp("java-transactions")
    sources = str(HERE / "Transactions.java")
    command = ["javac", "-cp", f"{apache_kafka.JARS}/*", "-d", str(classes), sources]
    subprocess.run(command, check=True, capture_output=True)
    return Java(lambda *arguments: apache_kafka.java("Transactions", *arguments, classpath=str(classes)))


@pytest.fixture(scope="session")
def streams_classpath(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where `WordCount`, `StreamsCount` and Kafka Streams are."""
    jars = apache_kafka.fetch(
        apache_kafka.CACHE / f"streams-{apache_kafka.VERSION}",
        (("org.apache.kafka", "kafka-streams", apache_kafka.VERSION),),
    )
    classes = tmp_path_factory.mktemp("streams")
    sources = [str(HERE / f"{name}.java") for name in ("WordCount", "StreamsCount")]
    command = ["javac", "-cp", f"{jars}/*", "-d", str(classes), *sources]
    subprocess.run(command, check=True, capture_output=True)
    return f"{classes}:{jars}/*"


@pytest.fixture(scope="session")
def spark_kafka_jars(apache_kafka: ModuleType) -> list[Path]:
    """Spark's own Kafka connector, the judge of ours."""
    pyspark = pytest.importorskip("pyspark")
    return sorted(apache_kafka.spark_kafka(pyspark.__version__).glob("*.jar"))


@pytest.fixture(scope="session")
def spark_java(tmp_path_factory: pytest.TempPathFactory) -> str:
    """JVM options for a Spark that lives for seconds, made from one that copies a little."""
    import pyspark

    sys.path.insert(0, str(HERE.parents[1] / "bench"))
    import apache_kafka
    import class_archive
    from ours import LogkernelServer

    folder = tmp_path_factory.mktemp("spark-archive")

    def train(given: list[str]) -> None:
        server = LogkernelServer(folder / "broker")
        server.prepare()
        server.start()
        try:
            with logkernel.connect(server.bootstrap) as log:
                for name in ("original", "copy"):
                    log.create_topic(name, partitions=3)
                with log.producer() as producer:
                    for number in range(900):
                        producer.send("original", b"%d" % number, key=b"key")
            copy = [sys.executable, str(HERE / "spark_copy.py"), server.bootstrap, "copy", "topic:original"]
            command = [*copy, str(folder / "checkpoint"), "--java", " ".join([*class_archive.QUICK, *given])]
            subprocess.run(command, check=True, capture_output=True, timeout=1200)  # its JVM holds the pipes, too
        finally:
            server.stop()

    jars = Path(pyspark.__file__).parent / "jars"
    return " ".join([*class_archive.QUICK, *class_archive.options("spark", apache_kafka.CACHE, jars, train)])


@pytest.fixture(scope="module")
def spark(spark_kafka_jars: list[Path], spark_java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A small local Spark with both sources: `logkernel`, found without being registered, and `kafka`."""
    from pyspark.sql import SparkSession

    from logkernel.plugins.spark import RECOMMENDED

    folder = tmp_path_factory.mktemp("spark")
    settings = {
        **RECOMMENDED,
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": spark_java,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.jars": ",".join(map(str, spark_kafka_jars)),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master("local[2]").appName("logkernel-tests")
        for name, text in settings.items():
            builder = builder.config(name, text)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


SPARK_READS = ["ours", "Apache Kafka"] if os.environ.get("LOGKERNEL_SPARK_JUDGE") == "all" else ["ours"]


@pytest.fixture(scope="module", params=SPARK_READS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """What Spark's two sources read: a `spark_judged.Cluster`."""
    from spark_judged import serving

    yield from serving(request, tmp_path_factory)
