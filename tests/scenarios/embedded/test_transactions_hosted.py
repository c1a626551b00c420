"""The transaction coordinator in a real host: its log, its restart, and who answers InitProducerId without it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel.broker.build import build
from logkernel.contracts import ServiceDeclaration
from logkernel.embed import EmbeddedLog
from logkernel.errors import PluginError
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.requests.producers import InitProducerIdRequest
from logkernel.requests.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)

BLOCKED = ["service-transactions"]


def init(log: EmbeddedLog, name: str | None = "tx") -> tuple[int, int, int]:
    answer = log.request(InitProducerIdRequest(name, 60_000))
    return answer.error_code, answer.producer_id, answer.producer_epoch


def embedded(*plugins: object, block: Iterable[str] = ()) -> EmbeddedLog:
    return EmbeddedLog(build(None, (), in_memory=True, kernel=Kernel(plugins=plugins, block=block)))


def test_what_is_begun_is_known_after_a_restart(tmp_path: Path) -> None:
    with logkernel.open(tmp_path) as log:
        log.create_topic("t", partitions=2)
        code, producer_id, epoch = init(log)
        assert (code, epoch) == (0, 0)
        topics = [AddPartitionsToTxnTopic("t", [1])]
        asked = AddPartitionsToTxnTransaction("tx", producer_id, epoch, topics=topics)
        (result,) = log.request(AddPartitionsToTxnRequest([asked])).results_by_transaction
        assert result.topic_results[0].results_by_partition[0].partition_error_code == 0
    with logkernel.open(tmp_path) as log:
        (row,) = log.request(DescribeTransactionsRequest(["tx"])).transaction_states
        assert (row.transaction_state, row.producer_id, row.producer_epoch) == ("Ongoing", producer_id, 0)
        assert [(topic.topic, topic.partitions) for topic in row.topics] == [("t", [1])]
        (listed,) = log.request(ListTransactionsRequest()).transaction_states
        assert (listed.transactional_id, listed.transaction_state) == ("tx", "Ongoing")
        code, fresh, _ = init(log, "other")
        assert (code, fresh > producer_id) == (0, True), "an id is never given twice"


def test_plain_and_transactional_producers_share_their_ids() -> None:
    with logkernel.open() as log:
        answers = [init(log, name) for name in (None, "a", None, "b")]
        assert [code for code, _, _ in answers] == [0] * 4
        assert len({producer_id for _, producer_id, _ in answers}) == 4


def test_its_log_and_feature() -> None:
    with logkernel.open(transaction_state_log_num_partitions=3) as log:
        init(log)
        broker = log.broker
        assert broker.cluster.partition_count("__transaction_state") == 3
        assert broker.cluster.topic_setting("__transaction_state", "cleanup.policy") == ("compact",)
        assert broker.features()["transaction.version"] == (0, 2, 2)
        assert broker.cluster.leader_epoch("__transaction_state", 0) == 0
        assert broker.cluster.leader_epoch("nothing", 0) is None


def test_a_log_that_a_kafka_left_may_hold_later_epochs_than_ours() -> None:
    """The markers that its last leader wrote name that epoch, and partitions refuse older ones."""
    with logkernel.open() as log:
        init(log)
        broker = log.broker
        logs = [one for name, one in broker.replicas.led.items() if name[0] == "__transaction_state"]
        (replica,) = [one for one in logs if one.log.end_offset]
        replica.log.epochs.assign(7, replica.log.end_offset)
        assert broker.cluster.leader_epoch(*replica.name) == 7


def test_without_it_the_core_serves_idempotent_producers() -> None:
    with embedded(block=BLOCKED) as log:
        assert init(log, None)[0] == 0
        assert init(log) == (42, -1, -1)
        assert "EndTxnRequest" not in log.broker.serves()
        assert "transaction.version" not in log.broker.features()


class Wants:
    """A stranger's service that wants one request."""

    def __init__(self, request: str) -> None:
        self.request = request

    @hookimpl
    def logkernel_services(self) -> Iterable[ServiceDeclaration]:
        return [ServiceDeclaration("stranger", (self.request,))]

    @hookimpl
    def logkernel_service(self, name: str, settings: Any, cluster: Any) -> Any:
        return self if name == "stranger" else None

    def split(self, request: Any, shards: int) -> Any:
        return ()

    def join(self, request: Any, responses: Any, context: Any) -> Any:
        return "the stranger's answer"

    def machine(self, shard: int, new_id: Any) -> Any:
        raise AssertionError("no part of a request goes to a shard")

    def refusal(self, request: Any, code: int) -> Any:
        raise AssertionError("nothing is refused")


def test_a_stranger_may_take_over_what_is_a_fallback() -> None:
    with embedded(Wants("InitProducerIdRequest"), block=BLOCKED) as log:
        assert log.request(InitProducerIdRequest()) == "the stranger's answer"


@pytest.mark.parametrize(("wanted", "block"), [("InitProducerIdRequest", []), ("ProduceRequest", BLOCKED)])
def test_nothing_else_is_taken_from_anybody(wanted: str, block: list[str]) -> None:
    with pytest.raises(PluginError, match=f"{wanted}, which .* answers"), embedded(Wants(wanted), block=block):
        pass
