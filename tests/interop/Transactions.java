// Transactional producers and consumers of the Java client with default settings; one line of JSON a result.

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Transactions {
    private static final Duration POLL = Duration.ofMillis(500);
    private static final long LIMIT_NANOS = 180_000_000_000L;

    public static void main(String[] args) {
        switch (args[0]) {
            case "write" -> write(args[1], args[2]);
            case "read" -> read(args[1], args[2]);
            case "move" -> move(args[1], args[2], args[3], Integer.parseInt(args[4]));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String id) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", id);
        var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        return producer;
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap, String group) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("group.id", group);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private static void write(String bootstrap, String topic) {
        try (var producer = producer(bootstrap, topic)) {
            for (int number = 0; number < 6; number++) {
                producer.beginTransaction();
                for (int part = 0; part < 5; part++) {
                    producer.send(new ProducerRecord<>(topic, 0, null, number + "." + part));
                }
                if (number % 3 == 1) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        System.out.println("\"done\"");
    }

    private static void read(String bootstrap, String topic) {
        try (var consumer = consumer(bootstrap, topic + "-reader")) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            long deadline = System.nanoTime() + LIMIT_NANOS;
            while (consumer.position(partition) < end && System.nanoTime() < deadline) {
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    System.out.println('"' + record.value() + '"');
                }
            }
        }
    }

    private static void move(String bootstrap, String source, String target, int count) {
        String group = source + "-mover";
        try (var consumer = consumer(bootstrap, group); var producer = producer(bootstrap, group)) {
            consumer.subscribe(List.of(source));
            long deadline = System.nanoTime() + LIMIT_NANOS;
            for (int moved = 0; moved < count && System.nanoTime() < deadline; ) {
                ConsumerRecords<String, String> records = consumer.poll(POLL);
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<String, String> record : records) {
                    producer.send(new ProducerRecord<>(target, 0, null, record.value() + "!"));
                    var partition = new TopicPartition(record.topic(), record.partition());
                    offsets.put(partition, new OffsetAndMetadata(record.offset() + 1));
                    moved++;
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
            }
        }
        System.out.println("\"done\"");
    }
}
