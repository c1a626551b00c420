"""A broker that a test commands, as a controller would."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.broker.governance.access import ClusterAccess
from logkernel.cluster.network import REPLICATION, ProcessNetwork
from logkernel.cluster.store import SharedStore
from logkernel.contracts import RequestContext
from logkernel.kernel import Kernel
from logkernel.requests.replication import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from logkernel.vocabulary import TopicPartition

NAME = TopicPartition("t", 0)
DELETED = -2


def no_log() -> Any:
    raise AssertionError("memory keeps no log")


class Commanded:
    """A broker, and the orders that it gets as a member of a cluster, without a network."""

    def __init__(self, folder: str | None = None) -> None:
        """`folder` holds its data; without one, they are in memory."""
        store = SharedStore(Kernel().coordination("memory", no_log))
        access = ClusterAccess(store.session, ProcessNetwork(lambda call: None).transport(1))
        settings = (f"log.dirs={folder or '/data'}", "node.id=1", "log.cleaner.enable=false")
        self.broker: Broker = build(None, settings, in_memory=folder is None, access=access)
        self.broker.start()
        self.broker.governance.join()
        self.broker.step()
        self.epochs = (store.term, store.brokers[1][1])

    def order(self, request: type[Any], *topics: Any) -> Any:
        controller_epoch, broker_epoch = self.epochs
        return self.answer(
            request(
                controller_id=1, controller_epoch=controller_epoch, broker_epoch=broker_epoch, topic_states=list(topics)
            )
        )

    def answer(self, request: Any, error_code: int = 0, connection_id: int = 0) -> Any:
        answers: list[Any] = []
        context = RequestContext(listener=REPLICATION, internal=True, commands=True, connection_id=connection_id)
        self.broker.submit(request, context, answers.append)
        (answer,) = answers
        assert answer.error_code == error_code
        return answer

    def lead(self, topic_id: UUID) -> int:
        state = LeaderAndIsrPartitionState(0, 1, 1, 0, [1], 0, [1], is_new=True)
        answer = self.order(LeaderAndIsrRequest, LeaderAndIsrTopicState("t", topic_id, [state]))
        return int(answer.topics[0].partition_errors[0].error_code)

    def tell(self, topic_id: UUID, leader: int = 1, epoch: int = 0, partition_epoch: int = 0) -> None:
        state = UpdateMetadataPartitionState(0, 1, leader, epoch, [1], partition_epoch, [1])
        self.order(UpdateMetadataRequest, UpdateMetadataTopicState("t", topic_id, [state]))

    def stop(self, *, delete: bool) -> int:
        state = StopReplicaPartitionState(0, DELETED, delete)
        answer = self.order(StopReplicaRequest, StopReplicaTopicState("t", [state]))
        return int(answer.partition_errors[0].error_code)

    @property
    def topic_id(self) -> UUID | None:
        found = self.broker.replicas.find(NAME)
        return None if found is None else found.topic_id
