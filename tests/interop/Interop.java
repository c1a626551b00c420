// The Java client with its default settings, driven by the interop tests; one line of JSON a result.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public final class Interop {
    private static final Duration POLL = Duration.ofMillis(500);
    private static final long LIMIT_NANOS = 180_000_000_000L;

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "produce" -> produce(args[1], args[2], args[3]);
            case "consume" -> consume(args[1], args[2], Integer.parseInt(args[3]), Long.parseLong(args[4]));
            case "group" -> group(args[1], args[2], args[3], Integer.parseInt(args[4]));
            case "members" -> members(args[1], args[2], args[3], args[4]);
            case "admin" -> admin(args[1], args[2]);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static Properties settings(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }

    private static byte[] decode(String text) {
        if (text.equals("-")) {
            return null;
        }
        return text.equals("!") ? new byte[0] : Base64.getDecoder().decode(text);
    }

    private static String json(byte[] bytes) {
        return bytes == null ? "null" : '"' + Base64.getEncoder().encodeToString(bytes) + '"';
    }

    private static String json(String text) {
        return text == null ? "null" : '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    private static void produce(String bootstrap, String topic, String options) throws Exception {
        Properties settings = settings(bootstrap);
        for (String option : options.split(",")) {
            String[] pair = option.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                sent.add(producer.send(record(topic, line)));
            }
            producer.flush();
        }
        for (Future<RecordMetadata> future : sent) {
            RecordMetadata place = future.get();
            long offset = place.hasOffset() ? place.offset() : -1;
            System.out.println("{\"partition\":" + place.partition() + ",\"offset\":" + offset + "}");
        }
    }

    // key value timestamp [name:value ...], all but the timestamp in base64
    private static ProducerRecord<byte[], byte[]> record(String topic, String line) {
        String[] parts = line.split(" ");
        long timestamp = Long.parseLong(parts[2]);
        List<Header> headers = new ArrayList<>();
        for (int index = 3; index < parts.length; index++) {
            String[] pair = parts[index].split(":");
            headers.add(new RecordHeader(new String(decode(pair[0]), StandardCharsets.UTF_8), decode(pair[1])));
        }
        return new ProducerRecord<>(topic, 0, timestamp < 0 ? null : timestamp, decode(parts[0]), decode(parts[1]), headers);
    }

    private static void print(ConsumerRecord<byte[], byte[]> record) {
        StringBuilder headers = new StringBuilder();
        for (Header header : record.headers()) {
            headers.append(headers.isEmpty() ? "" : ",");
            headers.append('[').append(json(header.key().getBytes(StandardCharsets.UTF_8))).append(',').append(json(header.value())).append(']');
        }
        System.out.println(
            "{\"partition\":" + record.partition() + ",\"offset\":" + record.offset() + ",\"timestamp\":" + record.timestamp()
                + ",\"key\":" + json(record.key()) + ",\"value\":" + json(record.value()) + ",\"headers\":[" + headers + "]}");
    }

    private static KafkaConsumer<byte[], byte[]> consumer(Properties settings) {
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static void drain(KafkaConsumer<byte[], byte[]> consumer, int count) {
        long end = System.nanoTime() + LIMIT_NANOS;
        int seen = 0;
        while (seen < count && System.nanoTime() < end) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                if (seen++ < count) {
                    print(record);
                }
            }
        }
    }

    private static void consume(String bootstrap, String topic, int count, long offset) {
        TopicPartition partition = new TopicPartition(topic, 0);
        try (var consumer = consumer(settings(bootstrap))) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, offset);
            drain(consumer, count);
        }
    }

    private static void group(String bootstrap, String topic, String name, int count) {
        Properties settings = settings(bootstrap);
        settings.put("group.id", name);
        settings.put("auto.offset.reset", "earliest");
        try (var consumer = consumer(settings)) {
            consumer.subscribe(List.of(topic));
            drain(consumer, count);
            consumer.commitSync();
        }
    }

    /** Two members of a group: what each has when alone, together, and when the first is gone; `pattern` is RE2's. */
    private static void members(String bootstrap, String topic, String name, String pattern) throws Exception {
        Properties settings = settings(bootstrap);
        settings.put("group.id", name);
        settings.put("group.protocol", "consumer");
        settings.put("auto.offset.reset", "earliest");
        settings.put("client.rack", "r1");
        List<KafkaConsumer<byte[], byte[]>> open = new ArrayList<>();
        for (int number = 0; number < 2; number++) {
            settings.put("group.instance.id", "i" + number);
            KafkaConsumer<byte[], byte[]> consumer = consumer(settings);
            if (pattern.isEmpty()) {
                consumer.subscribe(List.of(topic));
            } else {
                consumer.subscribe(new SubscriptionPattern(pattern));
            }
            open.add(consumer);
            pollUntilShared(open);
        }
        try (Admin admin = Admin.create(settings(bootstrap))) {
            var group = admin.describeConsumerGroups(List.of(name)).all().get().get(name);
            System.out.println("[\"described\", \"" + group.type() + " " + group.groupState() + " " + group.partitionAssignor()
                + " " + group.members().size() + "\"]");
            for (var consumer : open) {
                consumer.commitSync();
            }
        }
        open.remove(0).close();
        pollUntilShared(open);
        open.remove(0).close();
    }

    private static void pollUntilShared(List<KafkaConsumer<byte[], byte[]>> open) {
        long end = System.nanoTime() + LIMIT_NANOS;
        List<Integer> shares = List.of();
        int steady = 0;
        while (System.nanoTime() < end && steady < 3) {
            shares = new ArrayList<>();
            for (var consumer : open) {
                consumer.poll(Duration.ofMillis(100));
                shares.add(consumer.assignment().size());
            }
            Collections.sort(shares);
            steady = shares.get(0) > 0 && shares.stream().mapToInt(share -> share).sum() == 4 ? steady + 1 : 0;
        }
        System.out.println("[\"shares\", \"" + shares + "\"]");
    }

    private static void admin(String bootstrap, String topic) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Map<String, Object> seen = new HashMap<>();
        try (Admin admin = Admin.create(settings(bootstrap))) {
            admin.createTopics(List.of(new NewTopic(topic, 2, (short) 1).configs(Map.of("retention.ms", "1234567")))).all().get();
            seen.put("listed", admin.listTopics().names().get().contains(topic));
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
            seen.put("partitions", admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size());
            seen.put("retention.ms", config(admin, resource, "retention.ms"));
            Collection<AlterConfigOp> change =
                List.of(new AlterConfigOp(new ConfigEntry("max.message.bytes", "2000"), AlterConfigOp.OpType.SET));
            admin.incrementalAlterConfigs(Map.of(resource, change)).all().get();
            seen.put("max.message.bytes", config(admin, resource, "max.message.bytes"));
            TopicPartition first = new TopicPartition(topic, 0);
            seen.put("latest", admin.listOffsets(Map.of(first, OffsetSpec.latest())).all().get().get(first).offset());
            seen.put("nodes", admin.describeCluster().nodes().get().size());
            admin.deleteTopics(List.of(topic)).all().get();
            seen.put("deleted", !admin.listTopics().names().get().contains(topic));
        }
        seen.forEach((name, value) -> System.out.println("[" + json(name) + "," + json(String.valueOf(value)) + "]"));
    }

    private static String config(Admin admin, ConfigResource resource, String name) throws Exception {
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).get(name).value();
    }
}
