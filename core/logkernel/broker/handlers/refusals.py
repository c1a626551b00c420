"""The response that says that a request failed as a whole: for each request that the core answers, one function.

`Router.dispatch` comes here when a handler raises: the disk failed, or the metadata log could not take a change.
Where the response has an error of its own, that says it all; elsewhere every item that was asked for carries the error.
"""

from __future__ import annotations

from functools import singledispatch
from sys import modules
from typing import Any

from attrs import fields_dict

from logkernel.errors import KafkaError
from logkernel.requests import access, cluster, configs, data, offsets, placement, topics, transactions
from logkernel.vocabulary import NO_ID


@singledispatch
def refusal(request: Any, error: KafkaError) -> Any:
    """The response to `request` that carries `error`. Raises `error` itself where no response could."""
    kind = type(request)
    response = getattr(modules[kind.__module__], kind.__name__.removesuffix("Request") + "Response")()
    known = fields_dict(type(response))
    if "error_code" not in known:
        raise error
    response.error_code = error.code
    if "error_message" in known:
        response.error_message = str(error)
    return response


# ---------------------------------------------------------------- data


@refusal.register
def _(request: data.ProduceRequest, error: KafkaError) -> data.ProduceResponse:
    response = data.ProduceResponse()
    for topic in request.topic_data:
        rows = [
            data.PartitionProduceResponse(row.index, error.code, -1, error_message=str(error))
            for row in topic.partition_data
        ]
        response.responses.append(data.TopicProduceResponse(topic.name, rows, topic.topic_id))
    return response


@refusal.register
def _(request: data.FetchRequest, error: KafkaError) -> data.FetchResponse:
    """Partitions of topics by name carry it, too; a client that names topics by their ids looks at the whole only."""
    response = data.FetchResponse(error_code=error.code)
    for topic in request.topics:
        if topic.topic:
            rows = [data.PartitionData(row.partition, error.code, -1, records=b"") for row in topic.partitions]
            response.responses.append(data.FetchableTopicResponse(topic.topic, rows))
    return response


@refusal.register
def _(request: offsets.ListOffsetsRequest, error: KafkaError) -> offsets.ListOffsetsResponse:
    response = offsets.ListOffsetsResponse()
    for topic in request.topics:
        rows = [offsets.ListOffsetsPartitionResponse(row.partition_index, error.code) for row in topic.partitions]
        response.topics.append(offsets.ListOffsetsTopicResponse(topic.name, rows))
    return response


@refusal.register
def _(request: offsets.OffsetForLeaderEpochRequest, error: KafkaError) -> offsets.OffsetForLeaderEpochResponse:
    response = offsets.OffsetForLeaderEpochResponse()
    for topic in request.topics:
        rows = [offsets.OffsetForLeaderEpochEpochEndOffset(error.code, row.partition) for row in topic.partitions]
        response.topics.append(offsets.OffsetForLeaderTopicResult(topic.topic, rows))
    return response


@refusal.register
def _(request: offsets.DeleteRecordsRequest, error: KafkaError) -> offsets.DeleteRecordsResponse:
    response = offsets.DeleteRecordsResponse()
    for topic in request.topics:
        rows = [offsets.DeleteRecordsPartitionResult(row.partition_index, -1, error.code) for row in topic.partitions]
        response.topics.append(offsets.DeleteRecordsTopicResult(topic.name, rows))
    return response


# ---------------------------------------------------------------- cluster


@refusal.register
def _(request: cluster.MetadataRequest, error: KafkaError) -> cluster.MetadataResponse:
    response = cluster.MetadataResponse(error_code=error.code)
    for topic in request.topics or ():
        response.topics.append(cluster.MetadataResponseTopic(error.code, topic.name, topic_id=topic.topic_id))
    return response


@refusal.register
def _(request: cluster.DescribeTopicPartitionsRequest, error: KafkaError) -> cluster.DescribeTopicPartitionsResponse:
    rows = [cluster.DescribeTopicPartitionsResponseTopic(error.code, topic.name) for topic in request.topics]
    return cluster.DescribeTopicPartitionsResponse(topics=rows)


# ---------------------------------------------------------------- topics


@refusal.register
def _(request: topics.CreateTopicsRequest, error: KafkaError) -> topics.CreateTopicsResponse:
    rows = [topics.CreatableTopicResult(topic.name, error.code, str(error)) for topic in request.topics]
    return topics.CreateTopicsResponse(topics=rows)


@refusal.register
def _(request: topics.DeleteTopicsRequest, error: KafkaError) -> topics.DeleteTopicsResponse:
    asked = [*((name, NO_ID) for name in request.topic_names), *((t.name, t.topic_id) for t in request.topics)]
    rows = [topics.DeletableTopicResult(name, error.code, str(error), topic_id) for name, topic_id in asked]
    return topics.DeleteTopicsResponse(responses=rows)


@refusal.register
def _(request: topics.CreatePartitionsRequest, error: KafkaError) -> topics.CreatePartitionsResponse:
    rows = [topics.CreatePartitionsTopicResult(topic.name, error.code, str(error)) for topic in request.topics]
    return topics.CreatePartitionsResponse(results=rows)


# ---------------------------------------------------------------- configs


@refusal.register
def _(request: configs.DescribeConfigsRequest, error: KafkaError) -> configs.DescribeConfigsResponse:
    rows = [
        configs.DescribeConfigsResult(error.code, str(error), row.resource_type, row.resource_name)
        for row in request.resources
    ]
    return configs.DescribeConfigsResponse(results=rows)


@refusal.register
def _(request: configs.AlterConfigsRequest, error: KafkaError) -> configs.AlterConfigsResponse:
    rows = [
        configs.AlterConfigsResourceResponse(error.code, str(error), row.resource_type, row.resource_name)
        for row in request.resources
    ]
    return configs.AlterConfigsResponse(responses=rows)


@refusal.register
def _(request: configs.IncrementalAlterConfigsRequest, error: KafkaError) -> configs.IncrementalAlterConfigsResponse:
    kind = configs.IncrementalAlterConfigsAlterConfigsResourceResponse
    rows = [kind(error.code, str(error), row.resource_type, row.resource_name) for row in request.resources]
    return configs.IncrementalAlterConfigsResponse(responses=rows)


# ---------------------------------------------------------------- transactions


@refusal.register
def _(request: transactions.WriteTxnMarkersRequest, error: KafkaError) -> transactions.WriteTxnMarkersResponse:
    response = transactions.WriteTxnMarkersResponse()
    for marker in request.markers:
        rows = [
            transactions.WritableTxnMarkerTopicResult(
                topic.name,
                [transactions.WritableTxnMarkerPartitionResult(index, error.code) for index in topic.partition_indexes],
            )
            for topic in marker.topics
        ]
        response.markers.append(transactions.WritableTxnMarkerResult(marker.producer_id, rows))
    return response


@refusal.register
def _(request: transactions.DescribeProducersRequest, error: KafkaError) -> transactions.DescribeProducersResponse:
    response = transactions.DescribeProducersResponse()
    for topic in request.topics:
        rows = [transactions.PartitionResponse(index, error.code, str(error)) for index in topic.partition_indexes]
        response.topics.append(transactions.TopicResponse(topic.name, rows))
    return response


# ---------------------------------------------------------------- access, placement


@refusal.register
def _(request: access.CreateAclsRequest, error: KafkaError) -> access.CreateAclsResponse:
    return access.CreateAclsResponse(
        results=[access.AclCreationResult(error.code, str(error)) for _ in request.creations]
    )


@refusal.register
def _(request: access.DeleteAclsRequest, error: KafkaError) -> access.DeleteAclsResponse:
    rows = [access.DeleteAclsFilterResult(error.code, str(error)) for _ in request.filters]
    return access.DeleteAclsResponse(filter_results=rows)


@refusal.register
def _(request: access.AlterClientQuotasRequest, error: KafkaError) -> access.AlterClientQuotasResponse:
    kind = access.AlterClientQuotasResponseEntryDataEntityData
    rows = []
    for entry in request.entries:
        entity = [kind(part.entity_type, part.entity_name) for part in entry.entity]
        rows.append(access.AlterClientQuotasResponseEntryData(error.code, str(error), entity))
    return access.AlterClientQuotasResponse(entries=rows)


@refusal.register
def _(request: access.AlterUserScramCredentialsRequest, error: KafkaError) -> access.AlterUserScramCredentialsResponse:
    users = dict.fromkeys([*(row.name for row in request.deletions), *(row.name for row in request.upsertions)])
    rows = [access.AlterUserScramCredentialsResult(user, error.code, str(error)) for user in users]
    return access.AlterUserScramCredentialsResponse(results=rows)


@refusal.register
def _(
    request: access.DescribeUserScramCredentialsRequest, error: KafkaError
) -> access.DescribeUserScramCredentialsResponse:
    rows = [
        access.DescribeUserScramCredentialsResult(user.name, error.code, str(error)) for user in request.users or ()
    ]
    return access.DescribeUserScramCredentialsResponse(error_code=error.code, error_message=str(error), results=rows)


@refusal.register
def _(request: placement.AlterReplicaLogDirsRequest, error: KafkaError) -> placement.AlterReplicaLogDirsResponse:
    response = placement.AlterReplicaLogDirsResponse()
    for folder in request.dirs:
        for topic in folder.topics:
            rows = [placement.AlterReplicaLogDirPartitionResult(index, error.code) for index in topic.partitions]
            response.results.append(placement.AlterReplicaLogDirTopicResult(topic.name, rows))
    return response


@refusal.register
def _(request: placement.ElectLeadersRequest, error: KafkaError) -> placement.ElectLeadersResponse:
    response = placement.ElectLeadersResponse(error_code=error.code)
    for topic in request.topic_partitions or ():
        rows = [placement.PartitionResult(index, error.code, str(error)) for index in topic.partitions]
        response.replica_election_results.append(placement.ReplicaElectionResult(topic.topic, rows))
    return response


@refusal.register
def _(
    request: placement.AlterPartitionReassignmentsRequest, error: KafkaError
) -> placement.AlterPartitionReassignmentsResponse:
    response = placement.AlterPartitionReassignmentsResponse(error_code=error.code, error_message=str(error))
    for topic in request.topics:
        rows = [
            placement.ReassignablePartitionResponse(row.partition_index, error.code, str(error))
            for row in topic.partitions
        ]
        response.responses.append(placement.ReassignableTopicResponse(topic.name, rows))
    return response
