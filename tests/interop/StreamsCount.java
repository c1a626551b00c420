// Kafka Streams counts words by group.protocol=streams until it is killed or told to "close" on stdin. Each change of its
// state, and of the tasks of a thread, is a line on stdout. Arguments: bootstrap application source target folder key=value…

import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.Properties;
import java.util.Scanner;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

public final class StreamsCount {
    public static void main(String[] args) throws InterruptedException {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, args[4]);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "200");
        settings.put("reconnect.backoff.max.ms", "200");
        for (String more : Arrays.copyOfRange(args, 5, args.length)) {
            settings.put(more.substring(0, more.indexOf('=')), more.substring(more.indexOf('=') + 1));
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(args[2], Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split("\\W+")))
            .groupBy((key, word) -> word, Grouped.<String, String>as("by-word").withKeySerde(Serdes.String()).withValueSerde(Serdes.String()))
            .count()
            .toStream()
            .mapValues(String::valueOf)
            .to(args[3], Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.start();
        Scanner words = new Scanner(System.in);
        while (words.hasNext()) {
            String word = words.next();
            if (word.equals("close")) {
                streams.close(Duration.ofSeconds(120));
                System.out.println("closed");
                return;
            }
            if (word.equals("tasks")) {
                streams.metadataForLocalThreads().forEach(thread -> System.out.println(
                    "tasks active=" + thread.activeTasks().stream().map(task -> task.taskId().toString()).sorted().toList()
                        + " standby=" + thread.standbyTasks().stream().map(task -> task.taskId().toString()).sorted().toList()));
            }
        }
        Thread.currentThread().join();
    }
}
