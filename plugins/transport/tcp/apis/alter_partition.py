"""AlterPartition (key 56), versions 2-3: a leader proposes in-sync replicas (KIP-497).

- Version 2 has node ids alone (`new_isr`); the broker sees `new_isr_with_epochs` with epochs of -1.
"""

from __future__ import annotations

from collections.abc import Callable

from logkernel.attrs_lite import evolve
from logkernel.requests.replication import AlterPartitionPartition, AlterPartitionRequest, BrokerState

from ..api import Api


class AlterPartition(Api):
    def upgrade_request(self, version: int, request: AlterPartitionRequest) -> AlterPartitionRequest:
        return request if version >= 3 else _with(request, _to_epochs)

    def downgrade_request(self, version: int, request: AlterPartitionRequest) -> AlterPartitionRequest:
        return request if version >= 3 else _with(request, _to_ids)


def _with(
    request: AlterPartitionRequest, turn: Callable[[AlterPartitionPartition], AlterPartitionPartition]
) -> AlterPartitionRequest:
    topics = [evolve(topic, partitions=[turn(row) for row in topic.partitions]) for topic in request.topics]
    return evolve(request, topics=topics)


def _to_epochs(row: AlterPartitionPartition) -> AlterPartitionPartition:
    return evolve(row, new_isr=[], new_isr_with_epochs=[BrokerState(node) for node in row.new_isr])


def _to_ids(row: AlterPartitionPartition) -> AlterPartitionPartition:
    return evolve(row, new_isr=[member.broker_id for member in row.new_isr_with_epochs])
