"""Suites that ask for no fixture of ours: the pytest plugin's ini options alone give them a broker."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest
from testing_plugin import suite

from logkernel.errors import ConfigError
from logkernel.testing import LogkernelContainer
from logkernel.testing.suite import replace_containers, serve

CONFTEST = """
import os
ADDRESS = os.environ["BROKER"]        # as this file is imported
"""
BY_ENVIRONMENT = """
import os
import pytest
from conftest import ADDRESS
from confluent_kafka.admin import AdminClient

@pytest.mark.parametrize("turn", range(4))
def test_it_is_there(turn, record_property):
    assert os.environ["KAFKA_URL"] == f"kafka://{ADDRESS}/"
    found = AdminClient({"bootstrap.servers": ADDRESS}).list_topics(timeout=120)
    assert {name: len(topic.partitions) for name, topic in found.topics.items()} == {"orders": 3, "from.ini": 2}
    print("broker", ADDRESS, "of", os.environ.get("PYTEST_XDIST_WORKER"))
"""
ENVIRONMENT_INI = (
    "kafka_env =\n    BROKER\n    KAFKA_URL = kafka://{}/\n"
    "kafka_topics =\n    from.ini=2\n    orders\nkafka_settings =\n    num.partitions=3\n"
)


def seen(said: str) -> tuple[int, set[str]]:
    """How many brokers there were, and the workers that saw them."""
    lines = [line.split() for line in said.splitlines() if line.startswith("broker ")]
    return len({line[1] for line in lines}), {line[3] for line in lines}


@pytest.mark.parametrize(
    ("options", "workers"), [((), {"None"}), (("-n", "2", "--dist", "each"), {"gw0", "gw1"})], ids=["alone", "xdist"]
)
def test_the_address_is_there_before_a_conftest_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], workers: set[str]
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # of the worker that runs this test
    assert seen(suite(tmp_path, BY_ENVIRONMENT, ENVIRONMENT_INI, CONFTEST, "-rP", *options)) == (1, workers)


def test_a_suite_within_a_worker_of_another_one_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw7")
    assert seen(suite(tmp_path, BY_ENVIRONMENT, ENVIRONMENT_INI, CONFTEST, "-rP")) == (1, {"gw7"})


def test_it_listens_where_it_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"kafka_listen=127.0.0.1:{taken.getsockname()[1]}"
        suite(tmp_path, "def test_it(): ...", "", "", "-o", listen, code=4)


@pytest.fixture
def variable(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LOGKERNEL_TEST_BROKER", "before")
    return "LOGKERNEL_TEST_BROKER"


def test_the_environment_is_as_it_was_afterwards(variable: str) -> None:
    end = serve([variable, "LOGKERNEL_TEST_URL=kafka://{}"], "", {"topics": ["orders"]})
    host, _, port = os.environ[variable].rpartition(":")
    socket.create_connection((host, int(port))).close()
    assert os.environ["LOGKERNEL_TEST_URL"] == f"kafka://{host}:{port}"
    end()
    assert (os.environ[variable], os.environ.get("LOGKERNEL_TEST_URL")) == ("before", None)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


def test_mistakes_name_the_option_and_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"kafka_env: 'URL=kafka://' is not of the form NAME or NAME=TEXT with \{\}"):
        serve(["URL=kafka://"], "", {})
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConfigError, match=f"kafka_listen: cannot listen on {listen}: another process"):
            serve([], listen, {})


CONTAINER = """
class KafkaContainer:
    def __init__(self, image):
        raise OSError("no Docker here")
"""
BY_CONTAINER = """
from confluent_kafka import Producer
from testcontainers.kafka import KafkaContainer

def test_it_is_ours():
    with KafkaContainer("confluentinc/cp-kafka:7.6.0").with_kraft() as container:
        assert container.kraft_enabled
        producer = Producer({"bootstrap.servers": container.get_bootstrap_server()})
        producer.produce("orders", b"1")
        assert producer.flush(10) == 0
        container.kafka.assert_produced("orders", value="1")
"""


@pytest.fixture
def testcontainers(tmp_path: Path) -> Path:
    """A package in the place of testcontainers, as its releases before 4.14 are laid out."""
    package = tmp_path / "testcontainers" / "kafka"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text(CONTAINER)
    return package


@pytest.mark.usefixtures("testcontainers")
def test_containers_of_kafka_are_ours(tmp_path: Path) -> None:
    assert "1 passed" in suite(tmp_path, BY_CONTAINER, "kafka_containers = true")
    assert "OSError: no Docker here" in suite(tmp_path, BY_CONTAINER, "", code=1)


@pytest.mark.usefixtures("testcontainers")
def test_classes_of_containers_are_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    put_back = replace_containers()
    from testcontainers import kafka  # type: ignore[import-not-found,unused-ignore]

    assert kafka.KafkaContainer is LogkernelContainer
    put_back()
    assert kafka.KafkaContainer.__module__ == "testcontainers.kafka"
    for name in ("testcontainers.kafka", "testcontainers"):
        monkeypatch.delitem(sys.modules, name)


def test_containers_that_are_not_installed_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logkernel.testing.suite.CONTAINERS", ("no_such_testcontainers",))
    with pytest.raises(ConfigError, match="kafka_containers: testcontainers is not installed here; install it"):
        replace_containers()
