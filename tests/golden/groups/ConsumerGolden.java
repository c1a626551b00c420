// Writes what test_consumer_records.py compares with, by Apache Kafka's own classes, one "name TAB hex" a line:
//   java -cp 'KAFKA_LIBS/*' ConsumerGolden.java > kafka-4.3.1.tsv

import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.coordinator.group.generated.*;

public class ConsumerGolden {
    static void print(String name, int version, Message message) {
        print(name, MessageUtil.toVersionPrefixedByteBuffer((short) version, message));
    }
    static void print(String name, ByteBuffer data) {
        StringBuilder text = new StringBuilder();
        while (data.hasRemaining()) text.append(String.format("%02x", data.get()));
        System.out.println(name + "\t" + text);
    }
    static final Uuid T = new Uuid(1, 2), U = new Uuid(3, 4);
    static ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions owned(Uuid id, Integer... parts) {
        return new ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions().setTopicId(id).setPartitions(Arrays.asList(parts));
    }
    public static void main(String[] args) {
        String g = "gé";
        print("metadata key", 3, new ConsumerGroupMetadataKey().setGroupId(g));
        print("partition metadata key", 4, new ConsumerGroupPartitionMetadataKey().setGroupId(g));
        print("member key", 5, new ConsumerGroupMemberMetadataKey().setGroupId(g).setMemberId("m1"));
        print("target metadata key", 6, new ConsumerGroupTargetAssignmentMetadataKey().setGroupId(g));
        print("target member key", 7, new ConsumerGroupTargetAssignmentMemberKey().setGroupId(g).setMemberId("m1"));
        print("current key", 8, new ConsumerGroupCurrentMemberAssignmentKey().setGroupId(g).setMemberId("m1"));
        print("regex key", 16, new ConsumerGroupRegularExpressionKey().setGroupId(g).setRegularExpression("orders.*"));
        print("metadata", 0, new ConsumerGroupMetadataValue().setEpoch(7).setMetadataHash(0x1122334455667788L));
        print("metadata plain", 0, new ConsumerGroupMetadataValue().setEpoch(7));
        print("member", 0, new ConsumerGroupMemberMetadataValue().setInstanceId("i1").setRackId("r1").setClientId("c1")
            .setClientHost("/127.0.0.1").setSubscribedTopicNames(List.of("a", "orders")).setSubscribedTopicRegex("x.*")
            .setRebalanceTimeoutMs(300000).setServerAssignor("range").setClassicMemberMetadata(null));
        print("member bare", 0, new ConsumerGroupMemberMetadataValue().setInstanceId(null).setRackId(null).setClientId("")
            .setClientHost("").setSubscribedTopicNames(List.of()).setSubscribedTopicRegex(null)
            .setRebalanceTimeoutMs(-1).setServerAssignor(null).setClassicMemberMetadata(null));
        print("member untagged", 0, new ConsumerGroupMemberMetadataValue().setInstanceId(null).setRackId(null).setClientId("c1")
            .setClientHost("/h").setSubscribedTopicNames(List.of("a")).setSubscribedTopicRegex(null).setRebalanceTimeoutMs(300000)
            .setServerAssignor(null));
        print("member classic", 0, new ConsumerGroupMemberMetadataValue().setInstanceId(null).setRackId(null).setClientId("c1")
            .setClientHost("/h").setSubscribedTopicNames(List.of("a")).setSubscribedTopicRegex(null)
            .setRebalanceTimeoutMs(60000).setServerAssignor(null)
            .setClassicMemberMetadata(new ConsumerGroupMemberMetadataValue.ClassicMemberMetadata().setSessionTimeoutMs(45000)
                .setSupportedProtocols(List.of(new ConsumerGroupMemberMetadataValue.ClassicProtocol().setName("range").setMetadata(new byte[] {0, 1, 2})))));
        print("member of the coordinator", 0, new ConsumerGroupMemberMetadataValue().setInstanceId(null).setRackId(null).setClientId("c1").setClientHost("/h")
            .setSubscribedTopicNames(List.of("a")).setSubscribedTopicRegex("").setRebalanceTimeoutMs(300000).setServerAssignor(null)
            .setClassicMemberMetadata(null));
        print("target metadata", 0, new ConsumerGroupTargetAssignmentMetadataValue().setAssignmentEpoch(9).setAssignmentTimestamp(1700000000000L));
        print("target metadata plain", 0, new ConsumerGroupTargetAssignmentMetadataValue().setAssignmentEpoch(9));
        print("target member", 0, new ConsumerGroupTargetAssignmentMemberValue().setTopicPartitions(List.of(
            new ConsumerGroupTargetAssignmentMemberValue.TopicPartition().setTopicId(T).setPartitions(List.of(0, 1, 5)),
            new ConsumerGroupTargetAssignmentMemberValue.TopicPartition().setTopicId(U).setPartitions(List.of(2)))));
        print("target member empty", 0, new ConsumerGroupTargetAssignmentMemberValue().setTopicPartitions(List.of()));
        print("current", 0, new ConsumerGroupCurrentMemberAssignmentValue().setMemberEpoch(9).setPreviousMemberEpoch(8).setState((byte) 1)
            .setAssignedPartitions(List.of(owned(T, 0, 1).setAssignmentEpochs(List.of(7, 9))))
            .setPartitionsPendingRevocation(List.of(owned(U, 3).setAssignmentEpochs(List.of(8)))));
        print("current no epochs", 0, new ConsumerGroupCurrentMemberAssignmentValue().setMemberEpoch(9).setPreviousMemberEpoch(8).setState((byte) 0)
            .setAssignedPartitions(List.of(owned(T, 0, 1))).setPartitionsPendingRevocation(List.of()));
        print("current left", 0, new ConsumerGroupCurrentMemberAssignmentValue().setMemberEpoch(-2).setPreviousMemberEpoch(8).setState((byte) 2)
            .setAssignedPartitions(List.of()).setPartitionsPendingRevocation(List.of()));
        print("regex", 0, new ConsumerGroupRegularExpressionValue().setTopics(List.of("orders1", "orders2")).setVersion(12).setTimestamp(1700000000000L));
        print("partition metadata", 0, new ConsumerGroupPartitionMetadataValue().setTopics(List.of()));
        List<TopicPartition> owned = List.of(new TopicPartition("a", 0), new TopicPartition("a", 2), new TopicPartition("orders", 1));
        for (int version = 0; version <= 3; version++) {
            Subscription subscription = new Subscription(List.of("a", "orders"), ByteBuffer.wrap(new byte[] {9}), owned, 5, Optional.of("r1"));
            print("subscription v" + version, ConsumerProtocol.serializeSubscription(subscription, (short) version));
            print("assignment v" + version, ConsumerProtocol.serializeAssignment(new Assignment(owned, null), (short) version));
        }
    }
}
