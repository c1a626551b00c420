// Every call of the Java Admin that makes sense on one broker, one after another against a fresh one; a line a step:
// its name, a tab, and what came back or "! " with the exception's class. Nothing that differs by run is printed.

import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public final class AdminSteps {
    private static Admin admin;
    private static boolean messages;
    private static long pause;

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        String other = args[1];
        messages = args.length > 2 && args[2].contains("messages");
        pause = args.length > 2 && args[2].contains("slow") ? 300 : 0; // what one step changed, Kafka's next may not see yet
        try (Admin made = Admin.create(settings)) {
            admin = made;
            topics(settings);
            cluster();
            configs();
            groupConfigs();
            loggers();
            directories(other);
            leaders();
            acls();
            scram();
            quotas();
            features();
            tokens();
            others();
        }
    }

    // ------------------------------------------------------------ saying

    private static void step(String name, Callable<?> call) {
        String said;
        try {
            Thread.sleep(pause);
            Object found = call.call();
            said = found == null ? "ok" : String.valueOf(found);
        } catch (Throwable error) {
            said = failure(error);
        }
        System.out.println(name + "\t" + said.replace("\n", " "));
        System.out.flush();
    }

    private static String failure(Throwable error) {
        if (error instanceof ExecutionException && error.getCause() != null) {
            error = error.getCause();
        }
        return "! " + error.getClass().getSimpleName() + (messages ? " | " + error.getMessage() : "");
    }

    private static <K, V> String each(Map<K, KafkaFuture<V>> futures, Function<V, Object> say) {
        Map<String, String> found = new TreeMap<>();
        futures.forEach((key, future) -> {
            String said;
            try {
                V value = future.get();
                said = value == null ? "ok" : String.valueOf(say.apply(value));
            } catch (Throwable error) {
                said = failure(error);
            }
            found.put(String.valueOf(key), said);
        });
        return found.toString();
    }

    private static <K, V> String each(Map<K, KafkaFuture<V>> futures) {
        return each(futures, value -> value);
    }

    private static <T> String sorted(Collection<T> all) {
        return all.stream().map(String::valueOf).sorted().toList().toString();
    }

    // ------------------------------------------------------------ topics

    private static void topics(Properties settings) throws Exception {
        Map<String, String> own = Map.of("retention.ms", "1000000", "cleanup.policy", "compact,delete");
        step("create", () -> each(admin.createTopics(List.of(new NewTopic("a", 3, (short) 1).configs(own),
            new NewTopic("b", Optional.empty(), Optional.empty()))).values()));
        step("create told", () -> {
            CreateTopicsResult made = admin.createTopics(List.of(new NewTopic("c", Map.of(0, List.of(1), 1, List.of(1)))));
            return made.numPartitions("c").get() + " " + made.replicationFactor("c").get() + " "
                + made.config("c").get().get("retention.ms").value();
        });
        step("create refused", () -> each(admin.createTopics(List.of(
            new NewTopic("a", 1, (short) 1), new NewTopic("a b", 1, (short) 1), new NewTopic("p0", 0, (short) 1),
            new NewTopic("r2", 1, (short) 2), new NewTopic("u", Map.of(0, List.of(7))),
            new NewTopic("k", 1, (short) 1).configs(Map.of("no.such", "1")))).values()));
        step("create dry", () -> each(admin.createTopics(List.of(new NewTopic("dry", 1, (short) 1)),
            new CreateTopicsOptions().validateOnly(true)).values()));
        step("list", () -> sorted(admin.listTopics().names().get()));
        step("describe", () -> each(admin.describeTopics(List.of("a", "none"),
            new DescribeTopicsOptions().includeAuthorizedOperations(true)).topicNameValues(),
            found -> found.partitions().size() + " " + found.isInternal() + " " + sorted(found.authorizedOperations())
                + " " + found.partitions().get(0).leader().id() + " " + found.partitions().get(0).isr().size()));
        step("describe plain", () -> each(admin.describeTopics(List.of("a")).topicNameValues(),
            found -> found.authorizedOperations()));
        step("grow", () -> each(admin.createPartitions(Map.of("b", NewPartitions.increaseTo(2),
            "a", NewPartitions.increaseTo(3), "none", NewPartitions.increaseTo(3),
            "c", NewPartitions.increaseTo(3, List.of(List.of(9))))).values()));
        settings.put("linger.ms", "0");
        long now = System.currentTimeMillis();
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < 10; number++) {
                producer.send(new ProducerRecord<>("a", 0, now + number, new byte[] {(byte) number}, new byte[100])).get();
            }
        }
        TopicPartition a0 = new TopicPartition("a", 0);
        for (OffsetSpec spec : List.of(OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.maxTimestamp(),
            OffsetSpec.forTimestamp(now + 4), OffsetSpec.forTimestamp(now + 4000), OffsetSpec.earliestLocal(), OffsetSpec.latestTiered())) {
            step("offsets " + spec.getClass().getSimpleName(), () -> {
                var found = admin.listOffsets(Map.of(a0, spec)).partitionResult(a0).get();
                return found.offset() + " " + (found.timestamp() < 0 ? -1 : found.timestamp() - now) + " " + found.leaderEpoch();
            });
        }
        step("delete records", () -> each(admin.deleteRecords(Map.of(a0, RecordsToDelete.beforeOffset(3),
            new TopicPartition("a", 1), RecordsToDelete.beforeOffset(3))).lowWatermarks(), found -> found.lowWatermark()));
        step("offsets after", () -> admin.listOffsets(Map.of(a0, OffsetSpec.earliest())).partitionResult(a0).get().offset());
        step("delete", () -> each(admin.deleteTopics(List.of("c", "none")).topicNameValues()));
        step("list after", () -> sorted(admin.listTopics().names().get()));
    }

    private static void cluster() {
        step("cluster", () -> {
            DescribeClusterResult found = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
            return found.nodes().get().size() + " " + found.controller().get().id() + " "
                + sorted(found.authorizedOperations().get()) + " " + found.clusterId().get().length();
        });
        step("cluster fenced", () -> admin.describeCluster(new DescribeClusterOptions().includeFencedBrokers(true)).nodes()
            .get().stream().map(node -> node.id() + " " + node.isFenced()).toList());
        step("quorum", () -> admin.describeMetadataQuorum().quorumInfo().get().leaderId());
        step("unregister none", () -> admin.unregisterBroker(77).all().get());
    }

    // ------------------------------------------------------------ configs

    private static ConfigResource resource(ConfigResource.Type type, String name) {
        return new ConfigResource(type, name);
    }

    private static AlterConfigOp op(OpType type, String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), type);
    }

    private static String alter(ConfigResource resource, boolean dry, AlterConfigOp... ops) {
        return each(admin.incrementalAlterConfigs(Map.of(resource, Arrays.asList(ops)),
            new AlterConfigsOptions().validateOnly(dry)).values());
    }

    private static String tell(ConfigEntry entry) {
        return entry.name() + "=" + entry.value() + " " + entry.source() + " " + entry.type() + " " + entry.isReadOnly() + " "
            + entry.isSensitive() + " " + entry.synonyms().stream().map(one -> one.name() + ":" + one.value() + ":" + one.source())
            .toList() + " " + (entry.documentation() != null);
    }

    private static String describe(ConfigResource resource, String... names) throws Exception {
        Config found = admin.describeConfigs(List.of(resource),
            new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true)).all().get().get(resource);
        if (names.length == 0) {
            return sorted(found.entries().stream().map(AdminSteps::tell).toList());
        }
        return Arrays.stream(names).map(name -> found.get(name) == null ? name + " none" : tell(found.get(name))).toList().toString();
    }

    private static void configs() {
        ConfigResource a = resource(ConfigResource.Type.TOPIC, "a");
        ConfigResource broker = resource(ConfigResource.Type.BROKER, "1");
        ConfigResource all = resource(ConfigResource.Type.BROKER, "");
        step("topic config", () -> describe(a, "retention.ms", "cleanup.policy", "max.message.bytes", "segment.bytes",
            "compression.type", "follower.replication.throttled.replicas"));
        step("topic set", () -> alter(a, false, op(OpType.SET, "max.message.bytes", "2000"), op(OpType.DELETE, "retention.ms", "")));
        step("topic subtract", () -> alter(a, false, op(OpType.SUBTRACT, "cleanup.policy", "compact")));
        step("topic append twice", () -> alter(a, false, op(OpType.APPEND, "cleanup.policy", "compact,delete")));
        step("topic append none", () -> alter(a, false, op(OpType.APPEND, "retention.ms", "1")));
        step("topic throttle", () -> alter(a, false, op(OpType.APPEND, "leader.replication.throttled.replicas", "0:1")));
        step("topic now", () -> describe(a, "retention.ms", "cleanup.policy", "max.message.bytes",
            "leader.replication.throttled.replicas"));
        step("topic bad value", () -> alter(a, false, op(OpType.SET, "max.message.bytes", "many")));
        step("topic bad name", () -> alter(a, false, op(OpType.SET, "no.such", "1")));
        step("topic bad throttle", () -> alter(a, false, op(OpType.SET, "leader.replication.throttled.replicas", "x")));
        step("topic twice", () -> alter(a, false, op(OpType.SET, "flush.ms", "1"), op(OpType.DELETE, "flush.ms", "")));
        step("topic dry", () -> alter(a, true, op(OpType.SET, "flush.ms", "77")));
        step("topic not changed", () -> describe(a, "flush.ms"));
        step("topic none", () -> describe(resource(ConfigResource.Type.TOPIC, "none")));
        step("topic alter none", () -> alter(resource(ConfigResource.Type.TOPIC, "none"), false, op(OpType.SET, "flush.ms", "1")));
        step("topic empty name", () -> alter(resource(ConfigResource.Type.TOPIC, ""), false, op(OpType.SET, "flush.ms", "1")));
        step("broker config", () -> describe(broker, "log.retention.ms", "log.cleaner.threads", "node.id", "message.max.bytes"));
        step("broker set", () -> alter(broker, false, op(OpType.SET, "message.max.bytes", "1234567")));
        step("default set", () -> alter(all, false, op(OpType.SET, "message.max.bytes", "2345678")));
        step("broker now", () -> describe(broker, "message.max.bytes"));
        step("default now", () -> describe(all));
        step("topic follows", () -> describe(resource(ConfigResource.Type.TOPIC, "b"), "max.message.bytes"));
        step("broker read only", () -> alter(broker, false, op(OpType.SET, "node.id", "3")));
        step("broker bad value", () -> alter(broker, false, op(OpType.SET, "message.max.bytes", "x")));
        step("broker no number", () -> describe(resource(ConfigResource.Type.BROKER, "x")));
        step("broker unset", () -> alter(broker, false, op(OpType.DELETE, "message.max.bytes", "")));
        step("default unset", () -> alter(all, false, op(OpType.DELETE, "message.max.bytes", "")));
        step("default after", () -> describe(all));
        step("list resources", () -> sorted(admin.listConfigResources(Set.of(ConfigResource.Type.TOPIC,
            ConfigResource.Type.BROKER, ConfigResource.Type.BROKER_LOGGER), new ListConfigResourcesOptions()).all().get()));
    }

    private static void groupConfigs() {
        ConfigResource group = resource(ConfigResource.Type.GROUP, "g");
        ConfigResource metrics = resource(ConfigResource.Type.CLIENT_METRICS, "m");
        step("group config", () -> describe(group));
        step("group set", () -> alter(group, false, op(OpType.SET, "consumer.session.timeout.ms", "50000"),
            op(OpType.SET, "share.record.lock.duration.ms", "20000")));
        step("group now", () -> describe(group, "consumer.session.timeout.ms", "share.record.lock.duration.ms"));
        step("group bad name", () -> alter(group, false, op(OpType.SET, "no.such", "1")));
        step("group bad value", () -> alter(group, false, op(OpType.SET, "consumer.session.timeout.ms", "x")));
        step("group below", () -> alter(group, false, op(OpType.SET, "consumer.session.timeout.ms", "1")));
        step("group above", () -> alter(group, false, op(OpType.SET, "consumer.session.timeout.ms", "999999999")));
        step("group no choice", () -> alter(group, false, op(OpType.SET, "share.auto.offset.reset", "none")));
        step("group by duration", () -> alter(group, false, op(OpType.SET, "share.auto.offset.reset", "by_duration:PT1H")));
        step("group dry", () -> alter(group, true, op(OpType.SET, "consumer.heartbeat.interval.ms", "6000")));
        step("group empty name", () -> alter(resource(ConfigResource.Type.GROUP, ""), false,
            op(OpType.SET, "consumer.heartbeat.interval.ms", "6000")));
        step("group session under heartbeat", () -> alter(group, false, op(OpType.SET, "consumer.heartbeat.interval.ms", "60000")));
        step("metrics config", () -> describe(metrics));
        step("metrics set", () -> alter(metrics, false, op(OpType.SET, "interval.ms", "5000"),
            op(OpType.SET, "metrics", "org.apache.kafka.producer."), op(OpType.SET, "match", "client_software_name=.*")));
        step("metrics now", () -> describe(metrics));
        step("metrics bad interval", () -> alter(metrics, false, op(OpType.SET, "interval.ms", "1")));
        step("metrics bad match", () -> alter(metrics, false, op(OpType.SET, "match", "color=red")));
        step("metrics bad pattern", () -> alter(metrics, false, op(OpType.SET, "match", "client_id=[")));
        step("metrics bad name", () -> alter(metrics, false, op(OpType.SET, "no.such", "1")));
        step("metrics append", () -> alter(metrics, false, op(OpType.APPEND, "metrics", "org.apache.kafka.consumer.")));
        step("metrics after", () -> describe(metrics, "metrics"));
        step("metrics empty name", () -> alter(resource(ConfigResource.Type.CLIENT_METRICS, ""), false, op(OpType.SET, "interval.ms", "5000")));
        step("list groups and metrics", () -> sorted(admin.listConfigResources(Set.of(ConfigResource.Type.GROUP,
            ConfigResource.Type.CLIENT_METRICS), new ListConfigResourcesOptions()).all().get()));
        step("list metrics", () -> sorted(admin.listClientMetricsResources().all().get()));
        step("list everything", () -> sorted(admin.listConfigResources().all().get().stream().map(one -> one.type()).collect(Collectors.toSet())));
        step("group unset", () -> alter(group, false, op(OpType.DELETE, "consumer.session.timeout.ms", ""),
            op(OpType.DELETE, "share.record.lock.duration.ms", ""), op(OpType.DELETE, "share.auto.offset.reset", "")));
        step("metrics unset", () -> alter(metrics, false, op(OpType.DELETE, "interval.ms", ""), op(OpType.DELETE, "metrics", ""),
            op(OpType.DELETE, "match", "")));
        step("list after unset", () -> sorted(admin.listConfigResources(Set.of(ConfigResource.Type.GROUP,
            ConfigResource.Type.CLIENT_METRICS), new ListConfigResourcesOptions()).all().get()));
    }

    private static void loggers() {
        ConfigResource logger = resource(ConfigResource.Type.BROKER_LOGGER, "1");
        step("logger root", () -> describe(logger, "root"));
        step("logger set root", () -> alter(logger, false, op(OpType.SET, "root", "ERROR")));
        step("logger root now", () -> describe(logger, "root"));
        step("logger back", () -> alter(logger, false, op(OpType.SET, "root", "INFO")));
        step("logger none", () -> alter(logger, false, op(OpType.SET, "no.such.logger", "INFO")));
        step("logger bad level", () -> alter(logger, false, op(OpType.SET, "root", "LOUD")));
        step("logger lower case", () -> alter(logger, false, op(OpType.SET, "root", "info")));
        step("logger unset root", () -> alter(logger, false, op(OpType.DELETE, "root", "")));
        step("logger append", () -> alter(logger, false, op(OpType.APPEND, "root", "INFO")));
        step("logger dry", () -> alter(logger, true, op(OpType.SET, "root", "FATAL")));
        step("logger empty", () -> describe(resource(ConfigResource.Type.BROKER_LOGGER, "")));
    }

    // ------------------------------------------------------------ directories

    private static String where(TopicPartition partition) throws Exception {
        var found = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1);
        return found.values().stream().map(one -> one.replicaInfos().get(partition)).filter(one -> one != null)
            .map(one -> (one.size() > 0) + " " + one.offsetLag() + " " + one.isFuture()).sorted().toList().toString();
    }

    private static void directories(String other) throws Exception {
        TopicPartition a0 = new TopicPartition("a", 0);
        TopicPartitionReplica replica = new TopicPartitionReplica("a", 0, 1);
        step("dirs", () -> {
            var found = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1);
            return found.size() + " " + found.values().stream().map(one -> String.valueOf(one.error() == null) + " "
                + one.totalBytes().isPresent() + " " + one.usableBytes().isPresent()).sorted().toList();
        });
        step("dir of a-0", () -> where(a0));
        step("move nowhere", () -> each(admin.alterReplicaLogDirs(Map.of(replica, "/no/such/folder")).values()));
        step("move none", () -> each(admin.alterReplicaLogDirs(Map.of(new TopicPartitionReplica("none", 0, 1), other)).values()));
        step("move", () -> each(admin.alterReplicaLogDirs(Map.of(replica, other)).values()));
        step("moved", () -> {
            for (int attempt = 0; attempt < 200; attempt++) {
                var found = admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica);
                if (other.equals(found.getCurrentReplicaLogDir()) && found.getFutureReplicaLogDir() == null) {
                    return "there";
                }
                Thread.sleep(50);
            }
            return "not moved";
        });
        step("move again", () -> each(admin.alterReplicaLogDirs(Map.of(replica, other)).values()));
        step("dir after", () -> where(a0));
        step("offsets moved", () -> admin.listOffsets(Map.of(a0, OffsetSpec.latest())).partitionResult(a0).get().offset() + " "
            + admin.listOffsets(Map.of(a0, OffsetSpec.earliest())).partitionResult(a0).get().offset());
    }

    private static void leaders() {
        TopicPartition a0 = new TopicPartition("a", 0);
        TopicPartition none = new TopicPartition("none", 0);
        TopicPartition a9 = new TopicPartition("a", 9);
        for (ElectionType type : ElectionType.values()) {
            step("elect " + type, () -> {
                Map<String, String> said = new TreeMap<>();
                admin.electLeaders(type, Set.of(a0, none, a9)).partitions().get().forEach((partition, error) ->
                    said.put(partition.toString(), error.map(AdminSteps::failure).orElse("ok")));
                return said;
            });
            step("elect all " + type, () -> admin.electLeaders(type, null).partitions().get());
        }
        step("reassign", () -> each(admin.alterPartitionReassignments(Map.of(
            a0, Optional.of(new NewPartitionReassignment(List.of(1))),
            none, Optional.of(new NewPartitionReassignment(List.of(1))),
            a9, Optional.of(new NewPartitionReassignment(List.of(1))),
            new TopicPartition("a", 1), Optional.of(new NewPartitionReassignment(List.of(1, 2))),
            new TopicPartition("a", 2), Optional.empty())).values()));
        step("reassign twice named", () -> each(admin.alterPartitionReassignments(Map.of(
            a0, Optional.of(new NewPartitionReassignment(List.of(1, 1))),
            new TopicPartition("a", 1), Optional.of(new NewPartitionReassignment(List.of(-1))))).values()));
        step("reassignments", () -> admin.listPartitionReassignments().reassignments().get());
        step("reassignments of", () -> admin.listPartitionReassignments(Set.of(a0, none)).reassignments().get());
    }

    // ------------------------------------------------------------ access

    private static AclBinding acl(ResourceType type, String name, PatternType pattern, String principal, AclOperation operation,
        AclPermissionType permission) {
        return new AclBinding(new ResourcePattern(type, name, pattern), new AccessControlEntry(principal, "*", operation, permission));
    }

    private static AclBindingFilter filter(ResourceType type, String name, PatternType pattern) {
        return new AclBindingFilter(new ResourcePatternFilter(type, name, pattern), AccessControlEntryFilter.ANY);
    }

    private static String binding(AclBinding one) {
        return one.pattern().resourceType() + ":" + one.pattern().patternType() + ":" + one.pattern().name() + " "
            + one.entry().principal() + " " + one.entry().host() + " " + one.entry().operation() + " " + one.entry().permissionType();
    }

    private static String found(AclBindingFilter filter) throws Exception {
        return sorted(admin.describeAcls(filter).values().get().stream().map(AdminSteps::binding).toList());
    }

    private static void acls() {
        AclPermissionType allow = AclPermissionType.ALLOW;
        step("acl create", () -> each(admin.createAcls(List.of(
            acl(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:ann", AclOperation.READ, allow),
            acl(ResourceType.TOPIC, "ord", PatternType.PREFIXED, "User:ann", AclOperation.ALL, allow),
            acl(ResourceType.TOPIC, "*", PatternType.LITERAL, "User:*", AclOperation.DESCRIBE, allow),
            acl(ResourceType.TOPIC, "other", PatternType.LITERAL, "User:bob", AclOperation.WRITE, AclPermissionType.DENY),
            acl(ResourceType.GROUP, "orders", PatternType.LITERAL, "User:bob", AclOperation.READ, allow),
            acl(ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL, "User:bob", AclOperation.ALTER, allow),
            acl(ResourceType.TRANSACTIONAL_ID, "t", PatternType.PREFIXED, "User:bob", AclOperation.WRITE, allow),
            acl(ResourceType.USER, "User:x", PatternType.LITERAL, "User:bob", AclOperation.CREATE_TOKENS, allow)))
            .values().entrySet().stream().collect(Collectors.toMap(one -> binding(one.getKey()), Map.Entry::getValue))));
        step("acl again", () -> each(admin.createAcls(List.of(
            acl(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:ann", AclOperation.READ, allow))).values()
            .entrySet().stream().collect(Collectors.toMap(one -> binding(one.getKey()), Map.Entry::getValue))));
        step("acl refused", () -> each(admin.createAcls(List.of(
            acl(ResourceType.CLUSTER, "mine", PatternType.LITERAL, "User:ann", AclOperation.ALTER, allow),
            acl(ResourceType.TOPIC, "x", PatternType.LITERAL, "ann", AclOperation.READ, allow),
            acl(ResourceType.TOPIC, "x", PatternType.LITERAL, "User:ann", AclOperation.CREATE_TOKENS, allow),
            acl(ResourceType.GROUP, "x", PatternType.LITERAL, "User:ann", AclOperation.WRITE, allow),
            acl(ResourceType.TOPIC, "", PatternType.LITERAL, "User:ann", AclOperation.READ, allow),
            acl(ResourceType.TOPIC, "x", PatternType.LITERAL, "", AclOperation.READ, allow)))
            .values().entrySet().stream().collect(Collectors.toMap(one -> binding(one.getKey()), Map.Entry::getValue))));
        step("acl any operation", () -> each(admin.createAcls(List.of(
            acl(ResourceType.TOPIC, "x", PatternType.MATCH, "User:ann", AclOperation.READ, allow))).values()));
        step("acl all", () -> found(AclBindingFilter.ANY));
        for (PatternType pattern : List.of(PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED)) {
            step("acl orders " + pattern, () -> found(filter(ResourceType.TOPIC, "orders", pattern)));
            step("acl no name " + pattern, () -> found(filter(ResourceType.TOPIC, null, pattern)));
            step("acl star " + pattern, () -> found(filter(ResourceType.TOPIC, "*", pattern)));
        }
        step("acl of bob", () -> found(new AclBindingFilter(ResourcePatternFilter.ANY,
            new AccessControlEntryFilter("User:bob", null, AclOperation.ANY, AclPermissionType.ANY))));
        step("acl read", () -> found(new AclBindingFilter(ResourcePatternFilter.ANY,
            new AccessControlEntryFilter(null, null, AclOperation.READ, AclPermissionType.ALLOW))));
        step("acl host", () -> found(new AclBindingFilter(ResourcePatternFilter.ANY,
            new AccessControlEntryFilter(null, "10.0.0.1", AclOperation.ANY, AclPermissionType.ANY))));
        step("acl unknown", () -> found(filter(ResourceType.UNKNOWN, null, PatternType.ANY)));
        step("acl delete", () -> sorted(admin.deleteAcls(List.of(filter(ResourceType.TOPIC, "orders", PatternType.MATCH),
            filter(ResourceType.TOPIC, "nothing", PatternType.LITERAL), filter(ResourceType.TOPIC, "ord", PatternType.PREFIXED)))
            .values().entrySet().stream().map(one -> {
                try {
                    return one.getKey().patternFilter().name() + sorted(one.getValue().get().values().stream()
                        .map(row -> row.exception() == null ? binding(row.binding()) : failure(row.exception())).toList());
                } catch (Exception error) {
                    return failure(error);
                }
            }).toList()));
        step("acl left", () -> found(AclBindingFilter.ANY));
        step("acl delete all", () -> admin.deleteAcls(List.of(AclBindingFilter.ANY)).all().get().size());
        step("acl none", () -> found(AclBindingFilter.ANY));
    }

    private static void scram() {
        ScramMechanism small = ScramMechanism.SCRAM_SHA_256;
        ScramMechanism large = ScramMechanism.SCRAM_SHA_512;
        step("scram none", () -> admin.describeUserScramCredentials().all().get());
        step("scram set", () -> each(admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion("ann", new ScramCredentialInfo(small, 8192), "secret"),
            new UserScramCredentialUpsertion("bob", new ScramCredentialInfo(small, 16384), "secret"))).values()));
        step("scram second", () -> each(admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion("ann", new ScramCredentialInfo(large, 4096), "secret"))).values()));
        step("scram refused", () -> each(admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion("few", new ScramCredentialInfo(small, 4095), "secret"),
            new UserScramCredentialUpsertion("many", new ScramCredentialInfo(small, 16385), "secret"),
            new UserScramCredentialUpsertion("", new ScramCredentialInfo(small, 8192), "secret"),
            new UserScramCredentialUpsertion("what", new ScramCredentialInfo(ScramMechanism.UNKNOWN, 8192), "secret"),
            new UserScramCredentialUpsertion("twice", new ScramCredentialInfo(small, 8192), "secret"),
            new UserScramCredentialDeletion("twice", small),
            new UserScramCredentialDeletion("none", small),
            new UserScramCredentialDeletion("bob", large),
            new UserScramCredentialDeletion("unknown", ScramMechanism.UNKNOWN))).values()));
        step("scram half", () -> each(admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion("half", new ScramCredentialInfo(small, 8192), "secret"),
            new UserScramCredentialUpsertion("half", new ScramCredentialInfo(large, 4096), "secret"))).values()));
        step("scram all", () -> new TreeMap<>(admin.describeUserScramCredentials().all().get()));
        step("scram some", () -> {
            DescribeUserScramCredentialsResult found = admin.describeUserScramCredentials(List.of("ann", "none"));
            return sorted(found.users().get()) + " " + found.description("ann").get();
        });
        step("scram one none", () -> admin.describeUserScramCredentials(List.of("none")).description("none").get());
        step("scram asked twice", () -> admin.describeUserScramCredentials(List.of("ann", "ann")).description("ann").get());
        step("scram delete", () -> each(admin.alterUserScramCredentials(List.of(
            new UserScramCredentialDeletion("ann", small))).values()));
        step("scram after", () -> new TreeMap<>(admin.describeUserScramCredentials().all().get()));
    }

    private static String quota(Map<String, String> entity, boolean dry, ClientQuotaAlteration.Op... ops) {
        return each(admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(entity), Arrays.asList(ops))),
            new AlterClientQuotasOptions().validateOnly(dry)).values().entrySet().stream()
            .collect(Collectors.toMap(one -> "it", Map.Entry::getValue)));
    }

    private static String quotas(ClientQuotaFilter filter) throws Exception {
        return sorted(admin.describeClientQuotas(filter).entities().get().entrySet().stream()
            .map(one -> new TreeMap<>(one.getKey().entries()) + "=" + new TreeMap<>(one.getValue())).toList());
    }

    private static void quotas() {
        Map<String, String> defaultUser = new TreeMap<>();
        defaultUser.put("user", null);
        Map<String, String> userAndDefault = new TreeMap<>();
        userAndDefault.put("user", "ann");
        userAndDefault.put("client-id", null);
        var produce = new ClientQuotaAlteration.Op("producer_byte_rate", 1000.0);
        step("quota set", () -> quota(Map.of("user", "ann"), false, produce, new ClientQuotaAlteration.Op("request_percentage", 12.5)));
        step("quota default", () -> quota(defaultUser, false, produce));
        step("quota both", () -> quota(Map.of("user", "ann", "client-id", "c"), false, produce));
        step("quota user and default", () -> quota(userAndDefault, false, produce));
        step("quota client", () -> quota(Map.of("client-id", "c"), false, new ClientQuotaAlteration.Op("controller_mutation_rate", 2.0)));
        step("quota ip", () -> quota(Map.of("ip", "127.0.0.1"), false, new ClientQuotaAlteration.Op("connection_creation_rate", 5.0)));
        step("quota ip bad", () -> quota(Map.of("ip", "no such host!"), false, new ClientQuotaAlteration.Op("connection_creation_rate", 5.0)));
        step("quota ip wrong key", () -> quota(Map.of("ip", "127.0.0.1"), false, produce));
        step("quota ip and user", () -> quota(Map.of("ip", "127.0.0.1", "user", "ann"), false, produce));
        step("quota bad key", () -> quota(Map.of("user", "ann"), false, new ClientQuotaAlteration.Op("speed", 5.0)));
        step("quota bad entity", () -> quota(Map.of("planet", "mars"), false, produce));
        step("quota empty entity", () -> quota(Map.of(), false, produce));
        step("quota empty name", () -> quota(Map.of("user", ""), false, produce));
        step("quota negative", () -> quota(Map.of("user", "ann"), false, new ClientQuotaAlteration.Op("producer_byte_rate", -1.0)));
        step("quota zero", () -> quota(Map.of("user", "ann"), false, new ClientQuotaAlteration.Op("producer_byte_rate", 0.0)));
        step("quota fraction", () -> quota(Map.of("user", "ann"), false, new ClientQuotaAlteration.Op("producer_byte_rate", 1.5)));
        step("quota twice", () -> quota(Map.of("user", "ann"), false, produce, new ClientQuotaAlteration.Op("producer_byte_rate", 7.0)));
        step("quota dry", () -> quota(Map.of("user", "dry"), true, produce));
        step("quota remove none", () -> quota(Map.of("user", "zed"), false, new ClientQuotaAlteration.Op("producer_byte_rate", null)));
        step("quota remove bad", () -> quota(Map.of("user", "zed"), false, new ClientQuotaAlteration.Op("speed", null)));
        step("quota all", () -> quotas(ClientQuotaFilter.all()));
        step("quota of users", () -> quotas(ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofEntityType("user")))));
        step("quota of only users", () -> quotas(ClientQuotaFilter.containsOnly(List.of(ClientQuotaFilterComponent.ofEntityType("user")))));
        step("quota of ann", () -> quotas(ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofEntity("user", "ann")))));
        step("quota of only ann", () -> quotas(ClientQuotaFilter.containsOnly(List.of(ClientQuotaFilterComponent.ofEntity("user", "ann")))));
        step("quota of default", () -> quotas(ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofDefaultEntity("user")))));
        step("quota of ann and any", () -> quotas(ClientQuotaFilter.containsOnly(List.of(
            ClientQuotaFilterComponent.ofEntity("user", "ann"), ClientQuotaFilterComponent.ofEntityType("client-id")))));
        step("quota of nothing", () -> quotas(ClientQuotaFilter.containsOnly(List.of())));
        step("quota of ip", () -> quotas(ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofEntityType("ip")))));
        step("quota of ip and user", () -> quotas(ClientQuotaFilter.contains(List.of(
            ClientQuotaFilterComponent.ofEntityType("ip"), ClientQuotaFilterComponent.ofEntityType("user")))));
        step("quota of planet", () -> quotas(ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofEntityType("planet")))));
        step("quota of no type", () -> quotas(ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofEntityType("")))));
        step("quota of user twice", () -> quotas(ClientQuotaFilter.contains(List.of(
            ClientQuotaFilterComponent.ofEntity("user", "ann"), ClientQuotaFilterComponent.ofEntityType("user")))));
        step("quota remove", () -> quota(Map.of("user", "ann"), false, new ClientQuotaAlteration.Op("producer_byte_rate", null),
            new ClientQuotaAlteration.Op("request_percentage", null)));
        step("quota after", () -> quotas(ClientQuotaFilter.all()));
    }

    // ------------------------------------------------------------ features, tokens, others

    private static void features() {
        step("features", () -> {
            FeatureMetadata found = admin.describeFeatures().featureMetadata().get();
            Set<String> known = Set.of("group.version", "transaction.version", "share.version");
            return found.finalizedFeatures().entrySet().stream().filter(one -> known.contains(one.getKey()))
                .map(String::valueOf).sorted().toList();
        });
        step("feature none", () -> each(admin.updateFeatures(Map.of("no.such", new FeatureUpdate((short) 1,
            FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions()).values()));
        step("feature too high", () -> each(admin.updateFeatures(Map.of("group.version", new FeatureUpdate((short) 99,
            FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions()).values()));
        step("feature same", () -> each(admin.updateFeatures(Map.of("group.version", new FeatureUpdate((short) 1,
            FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions()).values()));
        step("feature down as up", () -> each(admin.updateFeatures(Map.of("transaction.version", new FeatureUpdate((short) 1,
            FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions()).values()));
        step("feature down dry", () -> each(admin.updateFeatures(Map.of("transaction.version", new FeatureUpdate((short) 1,
            FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)), new UpdateFeaturesOptions().validateOnly(true)).values()));
        step("feature down", () -> each(admin.updateFeatures(Map.of("transaction.version", new FeatureUpdate((short) 1,
            FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)), new UpdateFeaturesOptions()).values()));
        step("feature now", () -> admin.describeFeatures().featureMetadata().get().finalizedFeatures().get("transaction.version"));
        step("feature up", () -> each(admin.updateFeatures(Map.of("transaction.version", new FeatureUpdate((short) 2,
            FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions()).values()));
        step("feature up as down", () -> each(admin.updateFeatures(Map.of("transaction.version", new FeatureUpdate((short) 2,
            FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)), new UpdateFeaturesOptions()).values()));
        step("feature one of two", () -> each(admin.updateFeatures(new TreeMap<>(Map.of(
            "transaction.version", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE),
            "no.such", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE))), new UpdateFeaturesOptions()).values()));
        step("feature after all", () -> admin.describeFeatures().featureMetadata().get().finalizedFeatures().get("transaction.version"));
    }

    private static void tokens() {
        step("token create", () -> admin.createDelegationToken().delegationToken().get());
        step("token renew", () -> admin.renewDelegationToken(new byte[] {1}).expiryTimestamp().get());
        step("token expire", () -> admin.expireDelegationToken(new byte[] {1}).expiryTimestamp().get());
        step("token describe", () -> admin.describeDelegationToken().delegationTokens().get());
    }

    private static void others() {
        step("groups", () -> sorted(admin.listGroups().all().get()));
        step("consumer groups", () -> sorted(admin.listConsumerGroups().all().get()));
        step("group none", () -> each(admin.describeConsumerGroups(List.of("none")).describedGroups()));
        step("group offsets", () -> each(admin.alterConsumerGroupOffsets("made", Map.of(new TopicPartition("a", 0),
            new OffsetAndMetadata(5))).all().get() == null ? Map.<String, KafkaFuture<String>>of() : Map.of()));
        step("group offsets now", () -> admin.listConsumerGroupOffsets("made").partitionsToOffsetAndMetadata().get());
        step("group offsets delete", () -> admin.deleteConsumerGroupOffsets("made", Set.of(new TopicPartition("a", 0))).all().get());
        step("group delete", () -> each(admin.deleteConsumerGroups(List.of("made", "none")).deletedGroups()));
        step("add voter", () -> admin.addRaftVoter(3, org.apache.kafka.common.Uuid.ONE_UUID,
            Set.of(new RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 1))).all().get());
        step("unregister self", () -> admin.unregisterBroker(1).all().get());
    }
}
