// Transactions as Java's clients do them, driven by test_transactions_coordinator.py: java Coordinator BOOTSTRAP TOPIC
// Prints a line of JSON for each finding.

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Coordinator {
    static final int PARTITIONS = 3;
    static String bootstrap, topic;

    static KafkaProducer<String, String> producer(String id) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("transactional.id", id);
        return new KafkaProducer<>(p, new StringSerializer(), new StringSerializer());
    }

    static void say(String what, Object value) {
        System.out.println("{\"what\": \"" + what + "\", \"value\": \"" + value + "\"}");
    }

    static ProducerRecord<String, String> record(int partition, String value) {
        return new ProducerRecord<>(topic, partition, "k", value);
    }

    static void count(String isolation) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("isolation.level", isolation);
        List<TopicPartition> all = java.util.stream.IntStream.range(0, PARTITIONS)
            .mapToObj(n -> new TopicPartition(topic, n)).toList();
        int committed = 0, aborted = 0;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            long deadline = System.currentTimeMillis() + 180_000;
            while (all.stream().anyMatch(one -> consumer.position(one) < ends.get(one))) {
                if (System.currentTimeMillis() > deadline) throw new IllegalStateException("the end is not reached");
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(200))) {
                    if (one.value().startsWith("commit")) committed++; else aborted++;
                }
            }
        }
        say(isolation, committed + " " + aborted);
    }

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        topic = args[1];
        Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        say("feature", admin.describeFeatures().featureMetadata().get().finalizedFeatures().get("transaction.version").maxVersionLevel());
        KafkaProducer<String, String> first = producer(topic);
        first.initTransactions();
        for (int n = 0; n < 40; n++) {
            first.beginTransaction();
            for (int partition = 0; partition < PARTITIONS; partition++)
                first.send(record(partition, (n % 2 == 0 ? "commit" : "abort") + n));
            if (n % 4 == 0)
                first.sendOffsetsToTransaction(
                    Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(n)), new ConsumerGroupMetadata(topic + "-group"));
            if (n % 2 == 0) first.commitTransaction();
            else { first.flush(); first.abortTransaction(); }
        }
        first.beginTransaction();
        first.abortTransaction();
        say("offset", admin.listConsumerGroupOffsets(topic + "-group").partitionsToOffsetAndMetadata().get()
            .get(new TopicPartition(topic, 0)).offset());
        first.beginTransaction();
        first.send(record(0, "abort-late")).get();
        TransactionDescription open = admin.describeTransactions(List.of(topic)).description(topic).get();
        say("open", open.state() + " " + open.topicPartitions());
        say("listed", admin.listTransactions(new ListTransactionsOptions().filterOnTransactionalIdPattern(topic + ".?")).all().get().size());
        KafkaProducer<String, String> second = producer(topic);
        second.initTransactions();
        try { first.commitTransaction(); say("first", "not fenced"); }
        catch (Exception error) { say("first", error.getClass().getSimpleName()); }
        second.beginTransaction();
        second.send(record(0, "commit-second"));
        second.commitTransaction();
        admin.fenceProducers(List.of(topic)).all().get();
        second.beginTransaction();
        try { second.send(record(0, "abort-fenced")).get(); say("second", "not fenced"); }
        catch (ExecutionException error) { say("second", error.getCause().getClass().getSimpleName()); }
        count("read_committed");
        count("read_uncommitted");
        System.exit(0);
    }
}
