// Writes what test_streams_records.py compares with, by Apache Kafka's own classes, one "name TAB hex" a line:
//   java -cp 'KAFKA_LIBS/*' StreamsGolden.java > kafka-4.3.1-streams.tsv

import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.coordinator.group.generated.*;

public class StreamsGolden {
    static void print(String name, int version, Message message) {
        ByteBuffer data = MessageUtil.toVersionPrefixedByteBuffer((short) version, message);
        StringBuilder text = new StringBuilder();
        while (data.hasRemaining()) text.append(String.format("%02x", data.get()));
        System.out.println(name + "\t" + text);
    }
    static StreamsGroupCurrentMemberAssignmentValue.TaskIds held(String id, Integer... tasks) {
        return new StreamsGroupCurrentMemberAssignmentValue.TaskIds().setSubtopologyId(id).setPartitions(List.of(tasks));
    }
    static StreamsGroupCurrentMemberAssignmentValue.TaskIds since(String id, List<Integer> epochs, Integer... tasks) {
        return new StreamsGroupCurrentMemberAssignmentValue.TaskIds().setSubtopologyId(id).setPartitions(List.of(tasks)).setAssignmentEpochs(epochs);
    }
    static StreamsGroupTargetAssignmentMemberValue.TaskIds target(String id, Integer... tasks) {
        return new StreamsGroupTargetAssignmentMemberValue.TaskIds().setSubtopologyId(id).setPartitions(List.of(tasks));
    }
    static StreamsGroupTopologyValue.TopicInfo topic(String name, int partitions, int replicas, StreamsGroupTopologyValue.TopicConfig... configs) {
        return new StreamsGroupTopologyValue.TopicInfo().setName(name).setPartitions(partitions).setReplicationFactor((short) replicas).setTopicConfigs(List.of(configs));
    }
    public static void main(String[] args) {
        String g = "gé";
        print("group key", 17, new StreamsGroupMetadataKey().setGroupId(g));
        print("member key", 19, new StreamsGroupMemberMetadataKey().setGroupId(g).setMemberId("m1"));
        print("target epoch key", 20, new StreamsGroupTargetAssignmentMetadataKey().setGroupId(g));
        print("target key", 21, new StreamsGroupTargetAssignmentMemberKey().setGroupId(g).setMemberId("m1"));
        print("current key", 22, new StreamsGroupCurrentMemberAssignmentKey().setGroupId(g).setMemberId("m1"));
        print("topology key", 23, new StreamsGroupTopologyKey().setGroupId(g));
        print("group", 0, new StreamsGroupMetadataValue().setEpoch(7).setMetadataHash(0x1122334455667788L).setValidatedTopologyEpoch(3)
            .setLastAssignmentConfigs(List.of(new StreamsGroupMetadataValue.LastAssignmentConfig().setKey("num.standby.replicas").setValue("1"))));
        print("group not ready", 0, new StreamsGroupMetadataValue().setEpoch(7).setValidatedTopologyEpoch(-1).setLastAssignmentConfigs(List.of()));
        print("group of 4.2", 0, new StreamsGroupMetadataValue().setEpoch(7).setMetadataHash(5).setValidatedTopologyEpoch(0));
        print("member", 0, new StreamsGroupMemberMetadataValue().setInstanceId("i1").setRackId("r1").setClientId("c1").setClientHost("/127.0.0.1")
            .setRebalanceTimeoutMs(300000).setTopologyEpoch(3).setProcessId("p1")
            .setUserEndpoint(new StreamsGroupMemberMetadataValue.Endpoint().setHost("h").setPort(65000))
            .setClientTags(List.of(new StreamsGroupMemberMetadataValue.KeyValue().setKey("zone").setValue("z1"))));
        print("member bare", 0, new StreamsGroupMemberMetadataValue().setInstanceId(null).setRackId(null).setClientId("").setClientHost("")
            .setRebalanceTimeoutMs(-1).setTopologyEpoch(-1).setProcessId("").setUserEndpoint(null).setClientTags(List.of()));
        print("target epoch", 0, new StreamsGroupTargetAssignmentMetadataValue().setAssignmentEpoch(9).setAssignmentTimestamp(1700000000000L));
        print("target epoch plain", 0, new StreamsGroupTargetAssignmentMetadataValue().setAssignmentEpoch(9));
        print("target", 0, new StreamsGroupTargetAssignmentMemberValue().setActiveTasks(List.of(target("0", 0, 2), target("1", 1)))
            .setStandbyTasks(List.of(target("1", 0))).setWarmupTasks(List.of(target("1", 2))));
        print("target empty", 0, new StreamsGroupTargetAssignmentMemberValue().setActiveTasks(List.of()).setStandbyTasks(List.of()).setWarmupTasks(List.of()));
        print("current", 0, new StreamsGroupCurrentMemberAssignmentValue().setMemberEpoch(9).setPreviousMemberEpoch(8).setState((byte) 2)
            .setActiveTasks(List.of(since("0", List.of(7, 9), 0, 2))).setStandbyTasks(List.of(held("1", 0))).setWarmupTasks(List.of())
            .setActiveTasksPendingRevocation(List.of(since("1", List.of(8), 1))).setStandbyTasksPendingRevocation(List.of())
            .setWarmupTasksPendingRevocation(List.of(held("1", 2))));
        print("current no epochs", 0, new StreamsGroupCurrentMemberAssignmentValue().setMemberEpoch(9).setPreviousMemberEpoch(8).setState((byte) 1)
            .setActiveTasks(List.of(held("0", 0), since("1", null, 2))).setStandbyTasks(List.of()).setWarmupTasks(List.of())
            .setActiveTasksPendingRevocation(List.of()).setStandbyTasksPendingRevocation(List.of()).setWarmupTasksPendingRevocation(List.of()));
        print("topology", 0, new StreamsGroupTopologyValue().setEpoch(3).setSubtopologies(List.of(
            new StreamsGroupTopologyValue.Subtopology().setSubtopologyId("0").setSourceTopics(List.of("in", "more")).setSourceTopicRegex(List.of("x.*"))
                .setStateChangelogTopics(List.of()).setRepartitionSinkTopics(List.of("app-by-word-repartition")).setRepartitionSourceTopics(List.of())
                .setCopartitionGroups(List.of(new StreamsGroupTopologyValue.CopartitionGroup().setSourceTopics(List.of((short) 0, (short) 1))
                    .setSourceTopicRegex(List.of((short) 0)).setRepartitionSourceTopics(List.of()))),
            new StreamsGroupTopologyValue.Subtopology().setSubtopologyId("1").setSourceTopics(List.of()).setSourceTopicRegex(List.of())
                .setStateChangelogTopics(List.of(topic("app-store-changelog", 0, 1, new StreamsGroupTopologyValue.TopicConfig().setKey("cleanup.policy").setValue("compact"))))
                .setRepartitionSinkTopics(List.of()).setRepartitionSourceTopics(List.of(topic("app-by-word-repartition", 4, 0)))
                .setCopartitionGroups(List.of()))))
        ;
    }
}
