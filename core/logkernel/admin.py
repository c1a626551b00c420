"""The words of the admin client, in one place: what `log.admin()` takes and gives.

from logkernel.admin import NewTopic

with logkernel.open() as log, log.admin() as admin:
    admin.create_topics(NewTopic("orders", partitions=6))
"""

from logkernel.client.admin.access import (
    AclBinding,
    AclFilter,
    ScramCredential,
    ScramDeletion,
    ScramUpsertion,
    entity,
)
from logkernel.client.admin.aio_client import AsyncAdmin
from logkernel.client.admin.client import Admin
from logkernel.client.admin.cluster import (
    Broker,
    ClusterDescription,
    FeatureRange,
    MetadataDescription,
    QuorumDescription,
    QuorumReplica,
)
from logkernel.client.admin.configs import Append, ConfigEntry, ConfigResource, ConfigSynonym, Subtract
from logkernel.client.admin.group_offsets import ShareOffset
from logkernel.client.admin.groups import GroupDescription, GroupListing, GroupMember
from logkernel.client.admin.placement import LogDirDescription, Reassignment, ReplicaInfo
from logkernel.client.admin.streams_groups import (
    StreamsMember,
    StreamsSubtopology,
    StreamsTasks,
    StreamsTopic,
    StreamsTopology,
)
from logkernel.client.admin.tokens import DelegationToken
from logkernel.client.admin.topics import (
    CreatedTopic,
    NewPartitions,
    NewTopic,
    PartitionDescription,
    TopicDescription,
    TopicListing,
)
from logkernel.client.admin.transactions import (
    FencedProducer,
    HangingTransaction,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from logkernel.client.vocabulary import Committed, OffsetAndTime

__all__ = [
    "AclBinding",
    "AclFilter",
    "Admin",
    "Append",
    "AsyncAdmin",
    "Broker",
    "ClusterDescription",
    "Committed",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSynonym",
    "CreatedTopic",
    "DelegationToken",
    "FeatureRange",
    "FencedProducer",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "HangingTransaction",
    "LogDirDescription",
    "MetadataDescription",
    "NewPartitions",
    "NewTopic",
    "OffsetAndTime",
    "PartitionDescription",
    "ProducerState",
    "QuorumDescription",
    "QuorumReplica",
    "Reassignment",
    "ReplicaInfo",
    "ScramCredential",
    "ScramDeletion",
    "ScramUpsertion",
    "ShareOffset",
    "StreamsMember",
    "StreamsSubtopology",
    "StreamsTasks",
    "StreamsTopic",
    "StreamsTopology",
    "Subtract",
    "TopicDescription",
    "TopicListing",
    "TransactionDescription",
    "TransactionListing",
    "entity",
]
