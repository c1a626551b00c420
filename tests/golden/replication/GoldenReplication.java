import java.nio.ByteBuffer;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.message.LeaderAndIsrRequestData.*;
import org.apache.kafka.common.message.UpdateMetadataRequestData.*;
import org.apache.kafka.common.message.StopReplicaRequestData.*;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;

/**
 * Prints what brokers of Apache Kafka 3.9.2 say to one another, by its own classes: name, version, hex of the request
 * with its header, hex of the response's body.
 *
 * javac -cp 'JARS/*' -d OUT GoldenReplication.java && java -cp 'JARS/*:OUT' GoldenReplication > messages.txt
 */
public class GoldenReplication {
    static final Uuid ID = new Uuid(0x0123456789abcdefL, 0x0fedcba987654321L);

    static String hex(ByteBuffer buffer) {
        StringBuilder out = new StringBuilder();
        while (buffer.hasRemaining()) out.append(String.format("%02x", buffer.get()));
        return out.toString();
    }

    static void show(ApiKeys key, int version, ApiMessage request, ApiMessage response) {
        RequestHeader header = new RequestHeader(key, (short) version, "broker-1", 7);
        String asked = hex(RequestUtils.serialize(header.data(), header.headerVersion(), request, (short) version));
        ByteBuffer body = org.apache.kafka.common.protocol.MessageUtil.toByteBuffer(response, (short) version);
        System.out.println(key.name + " " + version + " " + asked + " " + hex(body));
    }

    public static void main(String[] args) {
        show(ApiKeys.LEADER_AND_ISR, 7,
            new LeaderAndIsrRequestData().setControllerId(1).setIsKRaftController(true).setControllerEpoch(3)
                .setBrokerEpoch(1L << 40).setType((byte) 2)
                .setTopicStates(List.of(new LeaderAndIsrTopicState().setTopicName("größe").setTopicId(ID)
                    .setPartitionStates(List.of(
                        new LeaderAndIsrPartitionState().setPartitionIndex(5).setControllerEpoch(3).setLeader(2)
                            .setLeaderEpoch(9).setIsr(List.of(2, 3)).setPartitionEpoch(77)
                            .setReplicas(List.of(1, 2, 3)).setAddingReplicas(List.of(1)).setRemovingReplicas(List.of(3))
                            .setIsNew(true).setLeaderRecoveryState((byte) 1),
                        new LeaderAndIsrPartitionState().setPartitionIndex(6).setControllerEpoch(2).setLeader(-1)
                            .setLeaderEpoch(10).setIsr(List.of()).setPartitionEpoch(0).setReplicas(List.of(1))
                            .setAddingReplicas(List.of()).setRemovingReplicas(List.of())))))
                .setLiveLeaders(List.of(new LeaderAndIsrLiveLeader().setBrokerId(2).setHostName("h2").setPort(9092))),
            response());
        show(ApiKeys.STOP_REPLICA, 4,
            new StopReplicaRequestData().setControllerId(1).setIsKRaftController(true).setControllerEpoch(3)
                .setBrokerEpoch(8)
                .setTopicStates(List.of(new StopReplicaTopicState().setTopicName("t").setPartitionStates(List.of(
                    new StopReplicaPartitionState().setPartitionIndex(4).setLeaderEpoch(-2).setDeletePartition(true),
                    new StopReplicaPartitionState().setPartitionIndex(5).setLeaderEpoch(6))))),
            new StopReplicaResponseData().setErrorCode((short) 0).setPartitionErrors(List.of(
                new StopReplicaResponseData.StopReplicaPartitionError().setTopicName("t").setPartitionIndex(4)
                    .setErrorCode((short) 74))));
        show(ApiKeys.UPDATE_METADATA, 8,
            new UpdateMetadataRequestData().setControllerId(1).setIsKRaftController(true).setType((byte) 2)
                .setControllerEpoch(3).setBrokerEpoch(8)
                .setTopicStates(List.of(new UpdateMetadataTopicState().setTopicName("t").setTopicId(ID)
                    .setPartitionStates(List.of(new UpdateMetadataPartitionState().setPartitionIndex(1)
                        .setControllerEpoch(3).setLeader(-2).setLeaderEpoch(4).setIsr(List.of(3)).setZkVersion(12)
                        .setReplicas(List.of(3, 2)).setOfflineReplicas(List.of(2))))))
                .setLiveBrokers(List.of(
                    new UpdateMetadataBroker().setId(2).setRack("r").setEndpoints(List.of(
                        new UpdateMetadataEndpoint().setPort(9092).setHost("h").setListener("IN")
                            .setSecurityProtocol((short) 3))),
                    new UpdateMetadataBroker().setId(3).setRack(null).setEndpoints(List.of()))),
            new UpdateMetadataResponseData().setErrorCode((short) 11));
        show(ApiKeys.UPDATE_METADATA, 8, new UpdateMetadataRequestData().setControllerId(1).setBrokerEpoch(8),
            new UpdateMetadataResponseData());
        show(ApiKeys.CONTROLLED_SHUTDOWN, 3, new ControlledShutdownRequestData().setBrokerId(2).setBrokerEpoch(1L << 33),
            new ControlledShutdownResponseData().setErrorCode((short) 77).setRemainingPartitions(
                new ControlledShutdownResponseData.RemainingPartitionCollection(List.of(
                    new ControlledShutdownResponseData.RemainingPartition().setTopicName("t").setPartitionIndex(3))
                    .iterator())));
        for (int version : new int[] {2, 3}) {
            AlterPartitionRequestData.PartitionData part = new AlterPartitionRequestData.PartitionData()
                .setPartitionIndex(2).setLeaderEpoch(5).setLeaderRecoveryState((byte) 1).setPartitionEpoch(9);
            if (version == 2) part.setNewIsr(List.of(1, 3));
            else part.setNewIsrWithEpochs(List.of(
                new AlterPartitionRequestData.BrokerState().setBrokerId(1).setBrokerEpoch(4),
                new AlterPartitionRequestData.BrokerState().setBrokerId(3)));
            show(ApiKeys.ALTER_PARTITION, version,
                new AlterPartitionRequestData().setBrokerId(1).setBrokerEpoch(4).setTopics(List.of(
                    new AlterPartitionRequestData.TopicData().setTopicId(ID).setPartitions(List.of(part)))),
                new AlterPartitionResponseData().setTopics(List.of(
                    new AlterPartitionResponseData.TopicData().setTopicId(ID).setPartitions(List.of(
                        new AlterPartitionResponseData.PartitionData().setPartitionIndex(2).setErrorCode((short) 0)
                            .setLeaderId(1).setLeaderEpoch(5).setIsr(List.of(1, 3)).setLeaderRecoveryState((byte) 1)
                            .setPartitionEpoch(10))))));
        }
        show(ApiKeys.ALLOCATE_PRODUCER_IDS, 0, new AllocateProducerIdsRequestData().setBrokerId(2).setBrokerEpoch(5),
            new AllocateProducerIdsResponseData().setErrorCode((short) 0).setProducerIdStart(4000).setProducerIdLen(1000));
        show(ApiKeys.WRITE_TXN_MARKERS, 1,
            new WriteTxnMarkersRequestData().setMarkers(List.of(new WriteTxnMarkersRequestData.WritableTxnMarker()
                .setProducerId(4000).setProducerEpoch((short) 2).setTransactionResult(true).setCoordinatorEpoch(6)
                .setTopics(List.of(new WriteTxnMarkersRequestData.WritableTxnMarkerTopic().setName("t")
                    .setPartitionIndexes(List.of(0, 2)))))),
            new WriteTxnMarkersResponseData().setMarkers(List.of(new WriteTxnMarkersResponseData.WritableTxnMarkerResult()
                .setProducerId(4000).setTopics(List.of(new WriteTxnMarkersResponseData.WritableTxnMarkerTopicResult()
                    .setName("t").setPartitions(List.of(new WriteTxnMarkersResponseData
                        .WritableTxnMarkerPartitionResult().setPartitionIndex(2).setErrorCode((short) 6))))))));
        show(ApiKeys.OFFSET_FOR_LEADER_EPOCH, 4,
            new OffsetForLeaderEpochRequestData().setReplicaId(2).setTopics(
                new OffsetForLeaderEpochRequestData.OffsetForLeaderTopicCollection(List.of(
                    new OffsetForLeaderEpochRequestData.OffsetForLeaderTopic().setTopic("t").setPartitions(List.of(
                        new OffsetForLeaderEpochRequestData.OffsetForLeaderPartition().setPartition(1)
                            .setCurrentLeaderEpoch(5).setLeaderEpoch(4)))).iterator())),
            new OffsetForLeaderEpochResponseData().setTopics(
                new OffsetForLeaderEpochResponseData.OffsetForLeaderTopicResultCollection(List.of(
                    new OffsetForLeaderEpochResponseData.OffsetForLeaderTopicResult().setTopic("t").setPartitions(List.of(
                        new OffsetForLeaderEpochResponseData.EpochEndOffset().setPartition(1).setLeaderEpoch(4)
                            .setEndOffset(99)))).iterator())));
        show(ApiKeys.LIST_OFFSETS, 9,
            new ListOffsetsRequestData().setReplicaId(2).setTopics(List.of(
                new ListOffsetsRequestData.ListOffsetsTopic().setName("t").setPartitions(List.of(
                    new ListOffsetsRequestData.ListOffsetsPartition().setPartitionIndex(1).setCurrentLeaderEpoch(5)
                        .setTimestamp(-2))))),
            new ListOffsetsResponseData().setTopics(List.of(
                new ListOffsetsResponseData.ListOffsetsTopicResponse().setName("t").setPartitions(List.of(
                    new ListOffsetsResponseData.ListOffsetsPartitionResponse().setPartitionIndex(1).setOffset(17)
                        .setLeaderEpoch(5))))));
        for (int version : new int[] {4, 11, 12, 14, 17}) {
            FetchRequestData fetch = new FetchRequestData().setMaxWaitMs(500).setMinBytes(1).setMaxBytes(10485760);
            if (version >= 7) fetch.setSessionId(66).setSessionEpoch(3);
            if (version <= 14) fetch.setReplicaId(2);
            else fetch.setReplicaState(new FetchRequestData.ReplicaState().setReplicaId(2).setReplicaEpoch(1L << 34));
            FetchRequestData.FetchPartition part = new FetchRequestData.FetchPartition().setPartition(1)
                .setFetchOffset(100).setPartitionMaxBytes(1048576);
            if (version >= 5) part.setLogStartOffset(10);
            if (version >= 9) part.setCurrentLeaderEpoch(5);
            if (version >= 12) part.setLastFetchedEpoch(4);
            FetchRequestData.FetchTopic topic = new FetchRequestData.FetchTopic().setPartitions(List.of(part));
            if (version >= 13) topic.setTopicId(ID); else topic.setTopic("t");
            fetch.setTopics(List.of(topic));
            FetchResponseData.PartitionData data = new FetchResponseData.PartitionData().setPartitionIndex(1)
                .setHighWatermark(90).setLastStableOffset(80).setPreferredReadReplica(-1)
                .setRecords(org.apache.kafka.common.record.MemoryRecords.EMPTY);
            if (version >= 5) data.setLogStartOffset(10);
            if (version >= 12) data.setDivergingEpoch(
                new FetchResponseData.EpochEndOffset().setEpoch(4).setEndOffset(95));
            FetchResponseData.FetchableTopicResponse back = new FetchResponseData.FetchableTopicResponse()
                .setPartitions(List.of(data));
            if (version >= 13) back.setTopicId(ID); else back.setTopic("t");
            FetchResponseData answer = new FetchResponseData().setResponses(List.of(back));
            if (version >= 7) answer.setSessionId(66);
            show(ApiKeys.FETCH, version, fetch, answer);
        }
        show(ApiKeys.ADD_PARTITIONS_TO_TXN, 4,
            new AddPartitionsToTxnRequestData().setTransactions(
                new AddPartitionsToTxnRequestData.AddPartitionsToTxnTransactionCollection(List.of(
                    new AddPartitionsToTxnRequestData.AddPartitionsToTxnTransaction().setTransactionalId("x")
                        .setProducerId(4000).setProducerEpoch((short) 2).setVerifyOnly(true).setTopics(topics()),
                    new AddPartitionsToTxnRequestData.AddPartitionsToTxnTransaction().setTransactionalId("y")
                        .setProducerId(4001).setProducerEpoch((short) 0).setVerifyOnly(true).setTopics(topics()))
                    .iterator())),
            new AddPartitionsToTxnResponseData().setResultsByTransaction(
                new AddPartitionsToTxnResponseData.AddPartitionsToTxnResultCollection(List.of(
                    new AddPartitionsToTxnResponseData.AddPartitionsToTxnResult().setTransactionalId("x")
                        .setTopicResults(new AddPartitionsToTxnResponseData.AddPartitionsToTxnTopicResultCollection(
                            List.of(new AddPartitionsToTxnResponseData.AddPartitionsToTxnTopicResult().setName("t")
                                .setResultsByPartition(new AddPartitionsToTxnResponseData
                                    .AddPartitionsToTxnPartitionResultCollection(List.of(
                                        new AddPartitionsToTxnResponseData.AddPartitionsToTxnPartitionResult()
                                            .setPartitionIndex(3).setPartitionErrorCode((short) 48)).iterator())))
                            .iterator()))).iterator())));
    }

    static AddPartitionsToTxnRequestData.AddPartitionsToTxnTopicCollection topics() {
        return new AddPartitionsToTxnRequestData.AddPartitionsToTxnTopicCollection(List.of(
            new AddPartitionsToTxnRequestData.AddPartitionsToTxnTopic().setName("t").setPartitions(List.of(3)))
            .iterator());
    }

    static ApiMessage response() {
        return new LeaderAndIsrResponseData().setErrorCode((short) 0).setTopics(
            new LeaderAndIsrResponseData.LeaderAndIsrTopicErrorCollection(List.of(
                new LeaderAndIsrResponseData.LeaderAndIsrTopicError().setTopicId(ID).setPartitionErrors(List.of(
                    new LeaderAndIsrResponseData.LeaderAndIsrPartitionError().setPartitionIndex(5),
                    new LeaderAndIsrResponseData.LeaderAndIsrPartitionError().setPartitionIndex(6)
                        .setErrorCode((short) 56)))).iterator()));
    }
}
