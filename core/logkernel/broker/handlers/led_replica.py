"""Which replica a fetch of a partition reads, by the topic's id or name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logkernel.broker.fetch_sessions import CachedPartition
from logkernel.broker.handlers.context import HandlerContext
from logkernel.errors import UnknownTopicId
from logkernel.vocabulary import NO_ID, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.replicas.leader_replica import LeaderReplica


def led_replica(ctx: HandlerContext, partition: CachedPartition) -> LeaderReplica:
    """Return the replica to read. Raises the error for the client if there is none.

    What has another id belongs to another topic, whatever its name: an order for the later one is still to come.
    """
    name, topic_id = partition.name, partition.key[1]
    if name is None:
        found = ctx.cluster.topic_name(topic_id)
        if found is None:
            raise UnknownTopicId(f"no topic has id {topic_id}")
        name = partition.name = TopicPartition(found, partition.key[2])
    replica = ctx.replicas.led.get(name)
    if replica is None or (topic_id is not NO_ID and replica.topic_id != topic_id):
        by_id = topic_id is not NO_ID and topic_id != NO_ID
        if by_id and (replica is not None or ctx.cluster.topic_name(topic_id) != name.topic):
            partition.name = None
            raise UnknownTopicId(f"no topic has id {topic_id}")
        replica = ctx.replicas.get(name)
    return replica
