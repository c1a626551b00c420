"""The same tests on either broker: ours by the fixture `kafka`, new for each test; Apache Kafka started once, with a
topic made for each test. `BENCH_BROKER` says which."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
OURS = os.environ.get("BENCH_BROKER", "ours") == "ours"
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
"""What suites that start Kafka set, so that their tests are quick: testcontainers does, too."""

if OURS:

    @pytest.fixture
    def bootstrap(kafka: Any) -> str:
        return str(kafka.bootstrap_servers)

else:

    @pytest.fixture(scope="session")
    def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
        from apache_kafka import KafkaServer

        server = KafkaServer(tmp_path_factory.mktemp("kafka"), QUICK)
        server.prepare()
        server.start()
        yield server.bootstrap
        server.stop()


@pytest.fixture
def topic(bootstrap: str, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, of three partitions."""
    import clients

    name = "orders" if OURS else f"orders-{abs(hash(request.node.name))}"
    clients.create_topic(bootstrap, name, 3)
    return name
