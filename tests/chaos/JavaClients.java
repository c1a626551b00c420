import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Clients of Kafka's Java library that use a cluster until standard input ends, and record every call: BOOTSTRAP HISTORY.
 *
 * <p>java-once is an idempotent producer, java-mover copies `orders` to `moved` exactly once, java-group are two members
 * of a group. The lines are those of tests/chaos/recorder.py.
 */
public final class JavaClients {
    private static final Duration POLL = Duration.ofMillis(300);
    private static final int OUTSTANDING = 100;
    private static final AtomicInteger COUNT = new AtomicInteger();
    private static volatile boolean over;
    private static String bootstrap;
    private static PrintWriter sink;

    interface Life {
        void live(String client) throws Exception;
    }

    private JavaClients() {}

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        sink = new PrintWriter(args[1]);
        List<Thread> threads = new ArrayList<>();
        threads.add(begin("java-once.", JavaClients::once));
        threads.add(begin("java-mover.", JavaClients::move));
        threads.add(begin("java-group.a", JavaClients::member));
        threads.add(begin("java-group.b", JavaClients::member));
        System.in.readAllBytes();
        over = true;
        for (Thread thread : threads) {
            thread.join();
        }
        sink.close();
    }

    private static Thread begin(String name, Life life) {
        Thread thread = new Thread(() -> {
            for (int number = 1; !over; number++) {
                try {
                    life.live(name + number);
                } catch (Exception error) {
                    System.err.println(name + " begins again: " + error);
                    rest(500);
                }
            }
        });
        thread.start();
        return thread;
    }

    private static void rest(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    // ------------------------------------------------------------ lines

    private static synchronized void write(String line) {
        sink.println(line);
        sink.flush();
    }

    private static int call(String name, String client, String fields) {
        return call(System.nanoTime(), name, client, fields);
    }

    private static int call(long at, String name, String client, String fields) {
        int number = COUNT.incrementAndGet();
        String form = "{\"at\":%d,\"call\":\"%s\",\"id\":%d,\"client\":\"%s\"%s}";
        write(form.formatted(at, name, number, client, fields));
        return number;
    }

    private static void ok(int number, String result) {
        write("{\"at\":%d,\"ok\":%d%s}".formatted(System.nanoTime(), number, result));
    }

    private static void unknown(int number, Exception error) {
        String form = "{\"at\":%d,\"unknown\":%d,\"error\":\"%s\"}";
        write(form.formatted(System.nanoTime(), number, error.getClass().getSimpleName()));
    }

    private static String rows(Iterable<ConsumerRecord<String, String>> records) {
        List<String> rows = new ArrayList<>();
        for (ConsumerRecord<String, String> record : records) {
            String form = "[\"%s\",%d,%d,\"%s\"]";
            rows.add(form.formatted(record.topic(), record.partition(), record.offset(), record.value()));
        }
        return "[" + String.join(",", rows) + "]";
    }

    private static String places(Collection<TopicPartition> places) {
        return places.stream().map(place -> "[\"%s\",%d]".formatted(place.topic(), place.partition()))
                .collect(Collectors.joining(",", "[", "]"));
    }

    private static String offsets(Map<TopicPartition, OffsetAndMetadata> offsets) {
        return offsets.entrySet().stream()
                .map(row -> "[\"%s\",%d,%d]".formatted(
                        row.getKey().topic(), row.getKey().partition(), row.getValue().offset()))
                .collect(Collectors.joining(",", "[", "]"));
    }

    private static void assigned(String client, String group, Collection<TopicPartition> places) {
        ok(call("assign", client, ",\"group\":\"%s\",\"partitions\":%s".formatted(group, places(places))), "");
    }

    // ------------------------------------------------------------ clients

    private static KafkaProducer<String, String> producer(Map<String, String> given) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("linger.ms", "2");
        settings.put("max.block.ms", "30000");
        settings.put("reconnect.backoff.max.ms", "1000");
        settings.put("metadata.max.age.ms", "5000");
        settings.putAll(given);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(String group) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("group.id", group);
        settings.put("session.timeout.ms", "6000");
        settings.put("default.api.timeout.ms", "30000");
        settings.put("reconnect.backoff.max.ms", "1000");
        settings.put("metadata.max.age.ms", "5000");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private static void once(String client) throws Exception {
        Random random = new Random();
        Semaphore room = new Semaphore(OUTSTANDING);
        try (var producer = producer(Map.of())) {
            for (int number = 0; !over; number++) {
                room.acquire();
                send(producer, client, "orders", random.nextInt(4), client + ":" + number, "", room);
                rest(random.nextInt(40));
            }
        }
    }

    /**
     * A record that fails ends its producer, as KafkaProducer's documentation asks: else the client gives what is in
     * flight a new epoch, and what was written already lies twice.
     */
    private static void send(
            KafkaProducer<String, String> producer, String client, String topic, int partition, String value,
            String txn, Semaphore room) {
        String form = ",\"topic\":\"%s\",\"partition\":%d,\"value\":\"%s\"%s";
        int call = call("send", client, form.formatted(topic, partition, value, txn));
        try {
            producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, error) -> {
                room.release();
                if (error == null) {
                    ok(call, ",\"offset\":" + metadata.offset());
                } else {
                    unknown(call, error);
                    producer.close(Duration.ZERO);
                }
            });
        } catch (RuntimeException error) {
            unknown(call, error);
            throw error;
        }
    }

    /** With the epochs: else the next reader may ask a leader of yesterday, for which the offset is out of range. */
    private static Map<TopicPartition, OffsetAndMetadata> behind(ConsumerRecords<String, String> records) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<String, String> record : records) {
            var place = new TopicPartition(record.topic(), record.partition());
            offsets.put(place, new OffsetAndMetadata(record.offset() + 1, record.leaderEpoch(), ""));
        }
        return offsets;
    }

    private static ConsumerRecords<String, String> poll(
            KafkaConsumer<String, String> consumer, String client, String group) {
        long at = System.nanoTime();
        ConsumerRecords<String, String> records = consumer.poll(POLL);
        if (!records.isEmpty()) {
            String fields = ",\"group\":\"%s\",\"isolation\":\"read_committed\"".formatted(group);
            ok(call(at, "poll", client, fields), ",\"records\":" + rows(records));
        }
        return records;
    }

    private static ConsumerRebalanceListener listener(String client, String group) {
        return new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> places) {
                assigned(client, group, Set.of());
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> places) {
                assigned(client, group, places);
            }
        };
    }

    private static void member(String client) {
        String group = "java-group";
        long ends = System.nanoTime() + (10L + new Random().nextInt(50)) * 1_000_000_000L;
        try (var consumer = consumer(group)) {
            consumer.subscribe(List.of("orders"), listener(client, group));
            while (!over && System.nanoTime() < ends) {
                var offsets = behind(poll(consumer, client, group));
                if (offsets.isEmpty()) {
                    continue;
                }
                String form = ",\"group\":\"%s\",\"offsets\":%s";
                int call = call("commit", client, form.formatted(group, offsets(offsets)));
                try {
                    consumer.commitSync(offsets);
                    ok(call, "");
                } catch (KafkaException error) {
                    unknown(call, error);
                }
            }
        }
    }

    private static void move(String client) {
        String group = "java-mover";
        Map<String, String> settings = Map.of("transactional.id", group, "transaction.timeout.ms", "15000");
        try (var consumer = consumer(group); var producer = producer(settings)) {
            insist(producer::initTransactions);
            consumer.subscribe(List.of("orders"), listener(client, group));
            while (!over) {
                ConsumerRecords<String, String> records = poll(consumer, client, group);
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                int txn = call("begin", client, "");
                ok(txn, "");
                Semaphore room = new Semaphore(0);
                for (ConsumerRecord<String, String> record : records) {
                    String value = "m:" + record.value();
                    send(producer, client, "moved", record.partition() % 2, value, ",\"txn\":" + txn, room);
                }
                var offsets = behind(records);
                String form = ",\"txn\":%d,\"commit\":true,\"group\":\"%s\",\"offsets\":%s";
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                int end = call("end", client, form.formatted(txn, group, offsets(offsets)));
                try {
                    insist(producer::commitTransaction);
                } catch (RuntimeException error) {
                    unknown(end, error);
                    throw error;
                }
                ok(end, "");
            }
        }
    }

    /** Again while the answer is late; a producer that met another error is at its end. */
    private static void insist(Runnable work) {
        for (int attempt = 1; ; attempt++) {
            try {
                work.run();
                return;
            } catch (TimeoutException error) {
                if (attempt == 5) {
                    throw error;
                }
            }
        }
    }
}
