// Writes the goldens of this folder with Apache Kafka's own classes:
//   java -cp 'KAFKA_LIBS/*' GoldenRecords.java OUT_FOLDER
// For each batch: NAME.bin, and in batches.txt what Kafka itself reads from it:
//   batch NAME magic codec timestampType baseOffset lastOffset leaderEpoch producerId producerEpoch baseSequence txn control maxTimestamp
//   record offset timestamp xKEY|null xVALUE|null|sha256:DIGEST name=xVALUE|null ...
// And murmur2.txt: xKEY hash (signed); bytes are in hex.

import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.Utils;

public class GoldenRecords {
    static final HexFormat HEX = HexFormat.of();
    static Path out;
    static PrintWriter text;

    static String hex(ByteBuffer b) throws Exception {
        if (b == null) return "null";
        byte[] bytes = Utils.toArray(b);
        if (bytes.length > 1000) return "sha256:" + HEX.formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        return "x" + HEX.formatHex(bytes);
    }

    static void save(String name, MemoryRecords records) throws Exception {
        byte[] bytes = Utils.toArray(records.buffer().duplicate());
        Files.write(out.resolve(name + ".bin"), bytes);
        for (MutableRecordBatch b : records.batches()) {
            text.printf("batch %s %d %d %s %d %d %d %d %d %d %b %b %d%n", name, b.magic(), b.compressionType().id,
                b.timestampType(), b.baseOffset(), b.lastOffset(), b.partitionLeaderEpoch(), b.producerId(),
                b.producerEpoch(), b.baseSequence(), b.isTransactional(), b.isControlBatch(), b.maxTimestamp());
            for (org.apache.kafka.common.record.internal.Record r : b) {
                text.printf("record %d %d %s %s", r.offset(), r.timestamp(), hex(r.key()), hex(r.value()));
                for (Header h : r.headers())
                    text.printf(" %s=%s", h.key(), h.value() == null ? "null" : "x" + HEX.formatHex(h.value()));
                text.println();
            }
        }
    }

    static void fill(MemoryRecordsBuilder builder, byte magic, long base, boolean big) {
        long t = 1_700_000_000_000L;
        Header[] none = new Header[0];
        Header[] some = {new RecordHeader("a", "1".getBytes()), new RecordHeader("null", (byte[]) null),
                         new RecordHeader("", new byte[0]), new RecordHeader("\u00e9\u6f22", new byte[]{0, -1})};
        builder.append(t, "key".getBytes(), "value".getBytes(), none);
        builder.append(t - 500, null, "no key".getBytes(), none);
        builder.append(t + 70_000, "tombstone".getBytes(), null, none);
        builder.append(t + 1, new byte[0], new byte[0], magic == 2 ? some : none);
        builder.append(t + 2, null, (byte[]) null, none);
        if (big) {
            // Several blocks of every codec: 32 KB in snappy, 64 KB in lz4, 128 KB in zstd.
            byte[] mixed = new byte[300_000];
            Random random = new Random(7);
            for (int i = 0; i < mixed.length; i++) mixed[i] = (byte) (i % 8192 < 64 ? random.nextInt(256) : i / 1000);
            builder.append(t + 3, "big".getBytes(), mixed, none);
        }
    }

    static MemoryRecordsBuilder builder(byte magic, CompressionType type, TimestampType stamp, long base, long pid,
            short epoch, int sequence, boolean txn) {
        return MemoryRecords.builder(ByteBuffer.allocate(512), magic, Compression.of(type).build(), stamp, base,
            stamp == TimestampType.LOG_APPEND_TIME ? 1_700_000_123_456L : RecordBatch.NO_TIMESTAMP,
            pid, epoch, sequence, txn, 5);
    }

    public static void main(String[] args) throws Exception {
        out = Path.of(args[0]);
        text = new PrintWriter(Files.newBufferedWriter(out.resolve("batches.txt")));
        for (byte magic = 0; magic <= 2; magic++)
            for (CompressionType type : CompressionType.values()) {
                if (type == CompressionType.ZSTD && magic < 2) continue;
                TimestampType stamp = magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : TimestampType.CREATE_TIME;
                MemoryRecordsBuilder b = builder(magic, type, stamp, 1000, -1, (short) -1, -1, false);
                fill(b, magic, 1000, type != CompressionType.NONE);
                save("java-v" + magic + "-" + type.name, b.build());
            }
        for (byte magic = 1; magic <= 2; magic++) {
            MemoryRecordsBuilder b =
                builder(magic, CompressionType.GZIP, TimestampType.LOG_APPEND_TIME, 0, -1, (short) -1, -1, false);
            fill(b, magic, 0, false);
            save("java-v" + magic + "-log-append", b.build());
        }
        MemoryRecordsBuilder b =
            builder((byte) 2, CompressionType.NONE, TimestampType.CREATE_TIME, 1L << 40, 4242, (short) 3, 2147483646, true);
        fill(b, (byte) 2, 1L << 40, false);
        save("java-v2-transactional", b.build());
        save("java-v2-commit", MemoryRecords.withEndTransactionMarker(
            77, 1_700_000_000_000L, 5, 4242, (short) 3, new EndTransactionMarker(ControlRecordType.COMMIT, 9)));
        save("java-v2-abort", MemoryRecords.withEndTransactionMarker(
            78, 1_700_000_000_000L, 5, 4242, (short) 3, new EndTransactionMarker(ControlRecordType.ABORT, 10)));
        text.close();
        try (PrintWriter table = new PrintWriter(Files.newBufferedWriter(out.resolve("murmur2.txt")))) {
            Random random = new Random(42);
            for (int i = 0; i < 300; i++) {
                byte[] key = new byte[i < 40 ? i : random.nextInt(80)];
                random.nextBytes(key);
                table.printf("x%s %d%n", HEX.formatHex(key), Utils.murmur2(key));
            }
        }
    }
}
