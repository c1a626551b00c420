"""The settings of groups, and the brokers' behind them, as a running Apache Kafka 4.3.1 tells and takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from golden.recorded import answer_of, by_case
from golden.settings import interval_cases, settings_cases

from logkernel.broker.build import build
from logkernel.contracts import RequestContext

OURS = ("streams.assignor.name ", "group.streams.assignors ")
"""Settings that Kafka has not."""
WITHOUT_EFFECT = "group.coordinator."
"""Of Kafka's threads and buffers: taken where they are given, whatever they say, and described only then."""
EXPECTED = by_case(Path(__file__).with_name("kafka-4.3.1.txt").read_text().splitlines())


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    broker = build(None, [f"log.dirs={tmp_path_factory.mktemp('data')}", "node.id=1", "log.cleaner.enable=false"])
    broker.start()

    def ask(request: Any) -> Any:
        return answer_of(broker, request, RequestContext(client_id="c", client_host="/127.0.0.1"))

    def at_once(step: Callable[[], bool]) -> None:
        assert step()

    yield by_case([*settings_cases.table(ask, at_once, EXPECTED), *interval_cases.table(ask, at_once)])
    broker.close()


def test_the_same_was_asked(answered: dict[str, list[str]]) -> None:
    assert list(answered) == list(EXPECTED)


@pytest.mark.parametrize("case", [case for case in EXPECTED if WITHOUT_EFFECT not in case])
def test_settings_are_told_and_taken_as_kafka_does(answered: dict[str, list[str]], case: str) -> None:
    told = [row for row in answered[case] if not row.startswith(OURS)]
    assert told == [row for row in EXPECTED[case] if not row.startswith(WITHOUT_EFFECT)]
