// KafkaShareConsumer and the admin calls of share groups, driven by test_share_java.py; one line of JSON a result.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Share {
    private static final Duration POLL = Duration.ofMillis(300);
    private static final long LIMIT_NANOS = 180_000_000_000L;

    public static void main(String[] args) throws Exception {
        String bootstrap = args[1];
        String topic = args[2];
        switch (args[0]) {
            case "implicit" -> implicit(bootstrap, topic);
            case "explicit" -> explicit(bootstrap, topic);
            case "expiry" -> expiry(bootstrap, topic);
            case "renew" -> renew(bootstrap, topic);
            case "pair" -> pair(bootstrap, topic);
            case "admin" -> admin(bootstrap, topic);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static Properties settings(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }

    private static void configure(String bootstrap, String group, String... pairs) throws Exception {
        List<AlterConfigOp> change = new ArrayList<>();
        for (String pair : pairs) {
            String[] parts = pair.split("=", 2);
            change.add(new AlterConfigOp(new ConfigEntry(parts[0], parts[1]), AlterConfigOp.OpType.SET));
        }
        try (Admin admin = Admin.create(settings(bootstrap))) {
            admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, group), change)).all().get();
        }
    }

    private static void produce(String bootstrap, String topic, int first, int count) throws Exception {
        try (var producer = new KafkaProducer<>(settings(bootstrap), new StringSerializer(), new StringSerializer())) {
            for (int number = first; number < first + count; number++) {
                producer.send(new ProducerRecord<>(topic, 0, null, "v" + number)).get();
            }
        }
    }

    private static KafkaShareConsumer<String, String> consumer(String bootstrap, String group, String mode) {
        Properties settings = settings(bootstrap);
        settings.put("group.id", group);
        settings.put("share.acknowledgement.mode", mode);
        var made = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        made.subscribe(List.of(group));
        return made;
    }

    private static void print(String name, Object value) {
        System.out.println("[\"" + name + "\",\"" + value + "\"]");
    }

    // Reads until `count` records came, and prints their offsets with their delivery counts.
    private static int drain(KafkaShareConsumer<String, String> reader, String name, int count) {
        long end = System.nanoTime() + LIMIT_NANOS;
        List<String> seen = new ArrayList<>();
        while (seen.size() < count && System.nanoTime() < end) {
            for (ConsumerRecord<String, String> record : reader.poll(POLL)) {
                seen.add(record.offset() + ":" + record.deliveryCount().get());
            }
        }
        print(name, String.join(" ", seen));
        return seen.size();
    }

    private static void implicit(String bootstrap, String topic) throws Exception {
        configure(bootstrap, topic, "share.auto.offset.reset=earliest");
        produce(bootstrap, topic, 0, 5);
        try (var reader = consumer(bootstrap, topic, "implicit")) {
            drain(reader, "first", 5);
            produce(bootstrap, topic, 5, 3);
            drain(reader, "second", 3);
            reader.commitSync(Duration.ofSeconds(180)).forEach((place, error) -> print("commit", error.isPresent() ? error.get() : "ok"));
        }
        produce(bootstrap, topic, 8, 2);
        try (var reader = consumer(bootstrap, topic, "implicit")) {
            drain(reader, "third", 2);
        }
    }

    private static void explicit(String bootstrap, String topic) throws Exception {
        configure(bootstrap, topic, "share.auto.offset.reset=earliest", "share.delivery.count.limit=3");
        produce(bootstrap, topic, 0, 4);
        Map<Long, Integer> seen = new TreeMap<>();
        try (var reader = consumer(bootstrap, topic, "explicit")) {
            long end = System.nanoTime() + LIMIT_NANOS;
            long quiet = 0;
            while (System.nanoTime() < end && quiet < 4) {
                var records = reader.poll(POLL);
                boolean settled = seen.size() == 4 && seen.get(2L) >= 2 && seen.get(3L) >= 3;
                quiet = records.isEmpty() && settled ? quiet + 1 : 0;
                for (ConsumerRecord<String, String> record : records) {
                    int times = seen.merge(record.offset(), 1, Integer::sum);
                    if (times != record.deliveryCount().get()) {
                        print("miscounted", record.offset());
                    }
                    // 0 is accepted, 1 rejected, 2 released once, 3 released until it is archived
                    reader.acknowledge(record, switch ((int) record.offset()) {
                        case 0 -> AcknowledgeType.ACCEPT;
                        case 1 -> AcknowledgeType.REJECT;
                        case 2 -> times == 1 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
                        default -> AcknowledgeType.RELEASE;
                    });
                }
                reader.commitSync(Duration.ofSeconds(180)).forEach((place, error) -> error.ifPresent(e -> print("error", e)));
            }
        }
        print("seen", seen);
    }

    // One consumer takes records and says nothing; after the lock they come to the other.
    private static void expiry(String bootstrap, String topic) throws Exception {
        configure(bootstrap, topic, "share.auto.offset.reset=earliest", "share.record.lock.duration.ms=1000");
        produce(bootstrap, topic, 0, 3);
        var silent = consumer(bootstrap, topic, "explicit");
        drain(silent, "silent", 3);
        try (var reader = consumer(bootstrap, topic, "implicit")) {
            drain(reader, "other", 3);
        }
        print("lock", silent.acquisitionLockTimeoutMs().orElse(-1));
        silent.close(Duration.ofSeconds(1));
    }

    private static ConsumerRecord<String, String> one(KafkaShareConsumer<String, String> reader) {
        long end = System.nanoTime() + LIMIT_NANOS;
        while (System.nanoTime() < end) {
            for (ConsumerRecord<String, String> record : reader.poll(POLL)) {
                return record;
            }
        }
        throw new IllegalStateException("no record came");
    }

    // The record is held for longer than its lock; a renewed record is polled again.
    private static void renew(String bootstrap, String topic) throws Exception {
        configure(bootstrap, topic, "share.auto.offset.reset=earliest", "share.record.lock.duration.ms=15000");
        produce(bootstrap, topic, 0, 1);
        try (var reader = consumer(bootstrap, topic, "explicit"); var other = consumer(bootstrap, topic, "implicit")) {
            ConsumerRecord<String, String> held = one(reader);
            for (int round = 0; round < 4; round++) {
                Thread.sleep(4500);
                reader.acknowledge(held, AcknowledgeType.RENEW);
                reader.commitSync(Duration.ofSeconds(180)).forEach((place, error) -> error.ifPresent(e -> print("error", e)));
                held = one(reader);
                print("other", other.poll(Duration.ofMillis(100)).count());
            }
            print("deliveries", held.deliveryCount().get());
            reader.acknowledge(held, AcknowledgeType.ACCEPT);
            reader.commitSync(Duration.ofSeconds(180)).forEach((place, error) -> print("commit", error.isPresent() ? error.get() : "ok"));
        }
    }

    private static void pair(String bootstrap, String topic) throws Exception {
        configure(bootstrap, topic, "share.auto.offset.reset=earliest", "share.assignment.interval.ms=0");
        Set<Long> seen = new TreeSet<>();
        int[] each = new int[2];
        int sent = 0;
        int twice = 0;
        try (var one = consumer(bootstrap, topic, "implicit"); var two = consumer(bootstrap, topic, "implicit")) {
            var readers = List.of(one, two);
            long end = System.nanoTime() + LIMIT_NANOS;
            // Whoever joins later is sent more, until it was given some.
            while ((sent < 300 || seen.size() < sent || each[0] == 0 || each[1] == 0) && System.nanoTime() < end) {
                if (sent < 300 || seen.size() == sent) {
                    produce(bootstrap, topic, sent, 30);
                    sent += 30;
                }
                for (int index = 0; index < 2; index++) {
                    for (ConsumerRecord<String, String> record : readers.get(index).poll(Duration.ofMillis(200))) {
                        each[index]++;
                        twice += seen.add(record.offset()) ? 0 : 1;
                    }
                }
            }
        }
        print("missing", sent - seen.size());
        print("twice", twice);
        print("both", each[0] > 0 && each[1] > 0);
    }

    private static void admin(String bootstrap, String topic) throws Exception {
        configure(bootstrap, topic, "share.auto.offset.reset=earliest");
        produce(bootstrap, topic, 0, 10);
        TopicPartition place = new TopicPartition(topic, 0);
        try (Admin admin = Admin.create(settings(bootstrap))) {
            try (var reader = consumer(bootstrap, topic, "implicit")) {
                drain(reader, "first", 10);
                reader.commitSync(Duration.ofSeconds(180));
                var described = admin.describeShareGroups(List.of(topic)).all().get().get(topic);
                print("state", described.groupState());
                print("members", described.members().size());
                print("assigned", described.members().iterator().next().assignment().topicPartitions().contains(place));
                try {
                    admin.alterShareGroupOffsets(topic, Map.of(place, 0L)).all().get();
                    print("alter", "allowed");
                } catch (Exception error) {
                    print("alter", error.getCause().getClass().getSimpleName());
                }
                print("listed", admin.listGroups(new ListGroupsOptions().withTypes(Set.of(GroupType.SHARE))).all().get().stream()
                    .filter(group -> group.groupId().equals(topic)).map(group -> group.type() + "/" + group.groupState().get() + "/" + group.protocol()).toList());
            }
            print("empty", admin.describeShareGroups(List.of(topic)).all().get().get(topic).groupState());
            offsets(admin, topic, place, "offsets");
            admin.alterShareGroupOffsets(topic, Map.of(place, 4L)).all().get();
            offsets(admin, topic, place, "altered");
            try (var reader = consumer(bootstrap, topic, "implicit")) {
                drain(reader, "again", 6);
            }
            admin.deleteShareGroupOffsets(topic, Set.of(topic)).all().get();
            offsets(admin, topic, place, "deleted");
            try (var reader = consumer(bootstrap, topic, "implicit")) {
                drain(reader, "afresh", 10);
            }
            admin.deleteShareGroups(List.of(topic)).all().get();
            print("gone", admin.listGroups().all().get().stream().noneMatch(group -> group.groupId().equals(topic)));
            try {
                admin.describeShareGroups(List.of(topic)).all().get();
            } catch (Exception error) {
                print("unknown", error.getCause().getClass().getSimpleName());
            }
        }
    }

    private static void offsets(Admin admin, String group, TopicPartition place, String name) throws Exception {
        var found = admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(group).get();
        var info = found.get(place);
        print(name, info == null ? "none" : info.startOffset() + " lag " + info.lag().map(String::valueOf).orElse("-"));
    }
}
