"""A handler that fails as a whole is answered in its request's own words; the connection stays."""

import errno
import pkgutil
from importlib import import_module

import pytest

import logkernel
from logkernel.broker.handlers import refusals
from logkernel.broker.router import CORE
from logkernel.errors import KafkaStorageError, PolicyViolation, UnknownServerError
from logkernel.plugins.transport.tcp import registry
from logkernel.requests import access, cluster, configs, data, offsets, placement, topics, transactions
from logkernel.requests.producers import InitProducerIdRequest

CODE = KafkaStorageError.code
SAMPLES = {
    "ProduceRequest": data.ProduceRequest(
        None, 1, 0, [data.TopicProduceData("t", [data.PartitionProduceData(3, b"")])]
    ),
    "FetchRequest": data.FetchRequest(topics=[data.FetchTopic("t", [data.FetchPartition(3)])]),
    "ListOffsetsRequest": offsets.ListOffsetsRequest(
        topics=[offsets.ListOffsetsTopic("t", [offsets.ListOffsetsPartition(3)])]
    ),
    "OffsetForLeaderEpochRequest": offsets.OffsetForLeaderEpochRequest(
        [offsets.OffsetForLeaderTopic("t", [offsets.OffsetForLeaderPartition(3)])]
    ),
    "DeleteRecordsRequest": offsets.DeleteRecordsRequest(
        [offsets.DeleteRecordsTopic("t", [offsets.DeleteRecordsPartition(3)])]
    ),
    "MetadataRequest": cluster.MetadataRequest([cluster.MetadataRequestTopic("t")]),
    "DescribeTopicPartitionsRequest": cluster.DescribeTopicPartitionsRequest([cluster.TopicRequest("t")]),
    "CreateTopicsRequest": topics.CreateTopicsRequest([topics.CreatableTopic("t", 1, 1)]),
    "DeleteTopicsRequest": topics.DeleteTopicsRequest(["t"], 0, [topics.DeleteTopicState("u")]),
    "CreatePartitionsRequest": topics.CreatePartitionsRequest([topics.CreatePartitionsTopic("t", 9)]),
    "DescribeConfigsRequest": configs.DescribeConfigsRequest([configs.DescribeConfigsResource(2, "t")]),
    "AlterConfigsRequest": configs.AlterConfigsRequest([configs.AlterConfigsResource(2, "t")]),
    "IncrementalAlterConfigsRequest": configs.IncrementalAlterConfigsRequest(
        [configs.IncrementalAlterConfigsAlterConfigsResource(2, "t")]
    ),
    "WriteTxnMarkersRequest": transactions.WriteTxnMarkersRequest(
        [transactions.WritableTxnMarker(7, 0, True, [transactions.WritableTxnMarkerTopic("t", [3])])]
    ),
    "DescribeProducersRequest": transactions.DescribeProducersRequest([transactions.TopicRequest("t", [3])]),
    "CreateAclsRequest": access.CreateAclsRequest([access.AclCreation(2, "t")]),
    "DeleteAclsRequest": access.DeleteAclsRequest([access.DeleteAclsFilter(2, "t")]),
    "AlterClientQuotasRequest": access.AlterClientQuotasRequest(
        [access.AlterClientQuotasRequestEntryData([access.AlterClientQuotasRequestEntryDataEntityData("user", "u")])]
    ),
    "AlterUserScramCredentialsRequest": access.AlterUserScramCredentialsRequest(
        [access.ScramCredentialDeletion("u", 1)]
    ),
    "AlterReplicaLogDirsRequest": placement.AlterReplicaLogDirsRequest(
        [placement.AlterReplicaLogDir("/d", [placement.AlterReplicaLogDirTopic("t", [3])])]
    ),
    "InitProducerIdRequest": InitProducerIdRequest(),
    "DescribeClusterRequest": cluster.DescribeClusterRequest(),
}
REQUESTS = {
    name: kind
    for module in pkgutil.iter_modules(logkernel.requests.__path__, "logkernel.requests.")
    for name, kind in vars(import_module(module.name)).items()
    if name.endswith("Request")
}


def codes(value):
    """Every error code in a response."""
    if isinstance(value, list):
        return [code for row in value for code in codes(row)]
    if not hasattr(value, "__attrs_attrs__"):
        return []
    own = [value.error_code] if hasattr(value, "error_code") else []
    return own + [code for field in value.__attrs_attrs__ for code in codes(getattr(value, field.name))]


@pytest.mark.parametrize("name", sorted(CORE))
def test_every_request_of_the_core_can_be_refused_at_every_version(name):
    request = SAMPLES.get(name)
    row = registry.BY_REQUEST.get(name)
    if request is None:
        request = REQUESTS[name]()
    response = refusals.refusal(request, KafkaStorageError("the disk is gone"))
    assert type(response).__name__ == name.removesuffix("Request") + "Response"
    assert CODE in codes(response), "nobody would learn of it"
    if isinstance(response, (topics.DeleteTopicsResponse,)):
        assert [(topic.name, topic.error_code) for topic in response.responses] == [("t", CODE), ("u", CODE)]
    if row is None:
        return  # one broker asks another one, and not yet over TCP
    for version in range(row.min_version, row.max_version + 1):
        registry.load(row.key).response_encoder(version)(response)


def test_what_no_response_can_say_is_raised():
    class NobodyRequest:
        pass

    refusals.NobodyResponse = type("NobodyResponse", (), {"__attrs_attrs__": ()})
    NobodyRequest.__module__ = refusals.__name__
    with pytest.raises(PolicyViolation):
        refusals.refusal(NobodyRequest(), PolicyViolation("no"))


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "no space"), KafkaStorageError("offline")])
def test_a_metadata_log_that_cannot_be_written_is_told(failure, caplog):
    with logkernel.open() as log:

        def commit(changes):
            raise failure

        log.broker.metadata._coordination.commit = commit
        (row,) = log.request(topics.CreateTopicsRequest([topics.CreatableTopic("t", 1, 1)])).topics
        assert (row.name, row.error_code) == ("t", CODE)
        assert str(failure) in row.error_message
        assert log.topics() == {}
        assert "request refused: request=CreateTopicsRequest" in caplog.text


def test_a_handler_with_a_bug_is_an_answer_and_not_the_end_of_the_connection(monkeypatch, caplog):
    def fail(request, context, answer):
        raise ZeroDivisionError

    with logkernel.open() as log:
        monkeypatch.setitem(log.broker.router._handlers, "DescribeClusterRequest", fail)
        response = log.request(cluster.DescribeClusterRequest())
    assert response.error_code == UnknownServerError.code
    assert "ZeroDivisionError" not in response.error_message, "a client learns nothing of our insides"
    assert "request failed: request=DescribeClusterRequest" in caplog.text
