"""Our broker refuses, shows and hides what Apache Kafka 4.3.1 does: each request of each user beside what
`tests/golden/authorization/record.py` recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from golden.authorization.authorization_cases import KEY, ROOT, set_up, table
from golden.recorded import answer_of, by_case

from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.contracts import RequestContext
from logkernel.requests import data
from logkernel.vocabulary import NO_ID, Principal

GOLDEN = Path(__file__).parents[2] / "golden" / "authorization" / "kafka-4.3.1.txt"
CAPABILITIES = frozenset({"zstd", "transaction_abortable", "group_not_found", "client_member_id", "share_coordinator",
                          "member_id_required", "static_members", "member_epochs"})  # fmt: skip
DEADLINE_S = 180


KAFKA = by_case(GOLDEN.read_text().splitlines())


def asker(broker: Broker) -> Callable[[str, Any], Any]:
    def ask(user: str, request: Any) -> Any:
        by_id = isinstance(request, data.FetchRequest) and request.topics[0].topic_id != NO_ID
        capabilities = CAPABILITIES | {"topic_ids"} if by_id else CAPABILITIES
        context = RequestContext(
            client_id="test", client_host="127.0.0.1", principal=Principal("User", user), capabilities=capabilities
        )
        return answer_of(broker, request, context)

    return ask


def retried(step: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not step():
        assert time.monotonic() < deadline_s


@pytest.fixture(scope="module")
def ours() -> Iterator[dict[str, list[str]]]:
    settings = [
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", f"super.users=User:{ROOT}",
        f"delegation.token.secret.key={KEY.decode()}",
        "offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1",
        "share.coordinator.state.topic.num.partitions=1",
    ]  # fmt: skip
    broker = build(None, settings, in_memory=True)
    broker.start()
    ask = asker(broker)
    yield by_case(list(table(ask, set_up(ask, retried))))
    broker.close()


@pytest.mark.parametrize("case", KAFKA)
def test_each_user_gets_what_kafka_gives(ours: dict[str, list[str]], case: str) -> None:
    assert ours[case] == KAFKA[case]


def test_the_recording_has_every_case(ours: dict[str, list[str]]) -> None:
    assert list(ours) == list(KAFKA)
