"""More partitions than a request may add, of clients and of Streams groups, as Apache Kafka 4.3.1 refuses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from golden.groups.large_cases import table
from golden.recorded import answer_of, by_case

from logkernel.broker.build import build
from logkernel.contracts import RequestContext

EXPECTED = by_case(Path(__file__).with_name("kafka-4.3.1-large.txt").read_text().splitlines())
WHY = "Excessively large number of partitions per request."
OURS = "10002 new partitions, where a request may add 10000 in all; ask for fewer at once"


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    broker = build(None, [f"log.dirs={tmp_path_factory.mktemp('data')}", "log.cleaner.enable=false"])
    broker.start()

    def ask(request: Any) -> Any:
        return answer_of(broker, request, RequestContext(client_id="c", client_host="/127.0.0.1"))

    def soon(step: Callable[[], bool]) -> None:
        assert any(step() for _ in range(3))

    yield by_case(table(ask, soon))
    broker.close()


@pytest.mark.parametrize("case", EXPECTED)
def test_too_many_partitions_are_refused_as_kafka_does(answered: dict[str, list[str]], case: str) -> None:
    assert answered[case] == [line.replace(WHY, OURS) for line in EXPECTED[case]]
