import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Apache Kafka's own cleaner over a log folder: FOLDER OUT SEGMENT_BYTES DELETE_RETENTION_MS MAP_BYTES, then for each
 * round FIRST_DIRTY END NOW; FIRST_DIRTY -1 is where the round before came to. After each round the files are copied to
 * OUT/ROUND, and the offset that was reached is printed.
 */
public class JudgeCleaner {
    public static void main(String[] args) throws Exception {
        File folder = new File(args[0]);
        Path out = Path.of(args[1]);
        Map<String, Object> settings = new HashMap<>();
        settings.put("cleanup.policy", "compact");
        settings.put("internal.segment.bytes", Integer.parseInt(args[2]));
        settings.put("delete.retention.ms", Long.parseLong(args[3]));
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        Time time = Time.SYSTEM;
        ProducerStateManagerConfig producers = new ProducerStateManagerConfig(Integer.MAX_VALUE, false);
        UnifiedLog log = UnifiedLog.create(folder, new LogConfig(settings), 0L, 0L, scheduler, new BrokerTopicStats(false),
            time, 900_000, producers, Integer.MAX_VALUE, new LogDirFailureChannel(4), true, Optional.empty());
        log.updateHighWatermark(log.logEndOffset());
        SkimpyOffsetMap map = new SkimpyOffsetMap(Integer.parseInt(args[4]));
        Throttler throttler = new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", time);
        Cleaner cleaner = new Cleaner(0, map, 65536, 1 << 21, 0.9, throttler, time, partition -> { });
        long reached = 0;
        for (int round = 0; 5 + 3 * round < args.length; round++) {
            long dirty = Long.parseLong(args[5 + 3 * round]);
            long end = Long.parseLong(args[6 + 3 * round]);
            LogToClean what = new LogToClean(log, dirty < 0 ? reached : dirty, end, true);
            reached = cleaner.doClean(what, Long.parseLong(args[7 + 3 * round])).getKey();
            Path copy = Files.createDirectories(out.resolve(Integer.toString(round)));
            for (File file : folder.listFiles()) {
                if (file.getName().endsWith(".log") || file.getName().endsWith(".txnindex")) {
                    Files.copy(file.toPath(), copy.resolve(file.getName()));
                }
            }
            System.out.println("reached " + reached);
        }
        log.close();
        scheduler.shutdown();
    }
}
