"""Requests for share states that no broker of good will sends: answered as Apache Kafka 4.3.1 does, where decision 073
does not say otherwise, and read again after a restart."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from golden.recorded import answer_of
from golden.shares.share_state_cases import BATCHES, TOPIC, coordinators, initialize, is_ready, read, table, told

from logkernel.broker.build import build
from logkernel.contracts import RequestContext
from logkernel.requests.topics import CreatableTopic, CreateTopicsRequest
from logkernel.vocabulary import Principal

GOLDEN = Path(__file__).parents[2] / "golden" / "shares"
SETTINGS = (
    "authorizer.class.name=standard", "super.users=User:root", "share.coordinator.state.topic.num.partitions=1",
)  # fmt: skip
DEADLINE_S = 60
Ask = Callable[..., Any]


def by_name(name: str) -> dict[str, str]:
    return dict(line.rsplit(": ", 1) for line in (GOLDEN / name).read_text().splitlines())


@contextmanager
def serving(folder: Path) -> Iterator[Ask]:
    broker = build(None, [*SETTINGS, f"log.dirs={folder}"])
    broker.start()

    def ask(request: Any, user: str = "root") -> Any:
        context = RequestContext(principal=Principal("User", user), capabilities=frozenset({"share_coordinator"}))
        return answer_of(broker, request, context)

    try:
        yield ask
    finally:
        broker.close()


def ready(ask: Ask, topic_id: Any) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not is_ready(ask, topic_id):
        assert time.monotonic() < deadline_s
        ask(coordinators(topic_id))


def test_each_request_is_answered_as_kafka_does_or_more_strictly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kafka, stricter = by_name("kafka-4.3.1.txt"), by_name("stricter.txt")
    groups = [f"batch {name}" for name in BATCHES]
    with serving(tmp_path) as ask:
        topic_id = ask(CreateTopicsRequest([CreatableTopic(TOPIC, 1, 1)])).topics[0].topic_id
        ready(ask, topic_id)
        found = dict(line.rsplit(": ", 1) for line in table(ask, topic_id))
        kept = {group: told(ask(read(topic_id, group))) for group in groups}
        row = ask(initialize(topic_id), "ann").results[0].partitions[0]
    assert found == kafka | stricter
    assert all(kafka[name] != ours for name, ours in stricter.items())
    assert (row.error_code, row.error_message) == (
        31,
        "Not authorized for this operation on the cluster; ask for an ACL",
    )
    with serving(tmp_path) as ask:
        ready(ask, topic_id)
        assert {group: told(ask(read(topic_id, group))) for group in groups} == kept
    assert not [line for line in caplog.records if line.levelno >= logging.ERROR]
