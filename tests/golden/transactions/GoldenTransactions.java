// Prints transactions.txt of this folder with Apache Kafka's own classes:
//   java -cp 'KAFKA_LIBS/*' GoldenTransactions.java > transactions.txt
// Walks `TransactionMetadata` through its transitions, writes each with `TransactionLog.valueToBytes`, a line a step:
//   STEP value-in-hex producerId producerEpoch lastProducerEpoch
import java.util.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.coordinator.transaction.*;
import org.apache.kafka.server.common.TransactionVersion;

public class GoldenTransactions {
    static TransactionVersion level;
    static TransactionMetadata m;
    static void step(String name, TxnTransitMetadata next) {
        m.completeTransitionTo(next);
        System.out.println(name + " " + HexFormat.of().formatHex(TransactionLog.valueToBytes(next, level)) + " " + m.producerId() + " " + m.producerEpoch() + " " + m.lastProducerEpoch());
    }
    static void fresh(long pid, int epoch, TransactionState state, TransactionVersion client) {
        m = new TransactionMetadata("tx", pid, -1, -1, (short) epoch, (short) -1, 60000, state, new HashSet<>(), -1, 1000L, client);
    }
    static Set<TopicPartition> one = Set.of(new TopicPartition("orders", 3));
    static Set<TopicPartition> more = Set.of(new TopicPartition("orders", 3), new TopicPartition("gr\u00fc\u00dfe", 0));
    static void fence(String name, TransactionVersion tv, long nextPid) {
        TxnTransitMetadata f = m.prepareFenceProducerEpoch();
        m.pendingState(Optional.empty());
        if (!tv.supportsEpochBump()) {  // else the end itself bumps it, as in TransactionCoordinator
            m.setProducerEpoch(f.producerEpoch());
            m.setLastProducerEpoch((short) -1);
        }
        step(name, m.prepareAbortOrCommit(TransactionState.PREPARE_ABORT, tv, nextPid, 9000L, false));
    }
    public static void main(String[] a) {
        System.out.println("key " + HexFormat.of().formatHex(TransactionLog.keyToBytes("gr\u00fc\u00dfe")) + " 0 0 0");
        for (TransactionVersion server : new TransactionVersion[]{TransactionVersion.TV_0, TransactionVersion.TV_2}) {
            level = server;
            String p = server == TransactionVersion.TV_0 ? "old-" : "v1-";
            fresh(4000, -1, TransactionState.EMPTY, TransactionVersion.TV_0);
            step(p + "init", m.prepareIncrementProducerEpoch(60000, Optional.empty(), 2000L));
            step(p + "add", m.prepareAddPartitions(one, 3000L, TransactionVersion.TV_0));
            step(p + "add-more", m.prepareAddPartitions(more, 3500L, TransactionVersion.TV_0));
            step(p + "commit", m.prepareAbortOrCommit(TransactionState.PREPARE_COMMIT, TransactionVersion.TV_0, -1, 4000L, false));
            step(p + "complete", m.prepareComplete(5000L));
            step(p + "again", m.prepareIncrementProducerEpoch(50000, Optional.of((short) 0), 6000L));
            step(p + "retry", m.prepareIncrementProducerEpoch(50000, Optional.of((short) 0), 6500L));
            step(p + "add2", m.prepareAddPartitions(one, 7000L, TransactionVersion.TV_0));
            fence(p + "fence", TransactionVersion.TV_0, -1);
            step(p + "fenced", m.prepareComplete(9500L));
        }
        level = TransactionVersion.TV_2;
        fresh(4001, -1, TransactionState.EMPTY, TransactionVersion.TV_0);
        step("v2-init", m.prepareIncrementProducerEpoch(60000, Optional.empty(), 2000L));
        step("v2-add", m.prepareAddPartitions(one, 3000L, TransactionVersion.TV_2));
        step("v2-commit", m.prepareAbortOrCommit(TransactionState.PREPARE_COMMIT, TransactionVersion.TV_2, -1, 4000L, false));
        step("v2-complete", m.prepareComplete(5000L));
        step("v2-abort-nothing", m.prepareAbortOrCommit(TransactionState.PREPARE_ABORT, TransactionVersion.TV_2, -1, 6000L, true));
        step("v2-aborted", m.prepareComplete(6500L));
        step("v2-add2", m.prepareAddPartitions(one, 7000L, TransactionVersion.TV_2));
        fence("v2-fence", TransactionVersion.TV_2, -1);
        step("v2-fenced", m.prepareComplete(9500L));
        fresh(4002, 32766, TransactionState.EMPTY, TransactionVersion.TV_2);
        step("full-add", m.prepareAddPartitions(one, 3000L, TransactionVersion.TV_2));
        step("full-commit", m.prepareAbortOrCommit(TransactionState.PREPARE_COMMIT, TransactionVersion.TV_2, 5000L, 4000L, false));
        step("full-complete", m.prepareComplete(5000L));
        fresh(4003, 32766, TransactionState.EMPTY, TransactionVersion.TV_2);
        step("last-add", m.prepareAddPartitions(one, 3000L, TransactionVersion.TV_2));
        fence("last-fence", TransactionVersion.TV_2, 5001L);
        step("last-fenced", m.prepareComplete(9500L));
        fresh(4004, 32766, TransactionState.COMPLETE_COMMIT, TransactionVersion.TV_2);
        step("rotate", m.prepareProducerIdRotation(5002L, 45000, 3000L, true));
        step("rotate-retry", m.prepareIncrementProducerEpoch(45000, Optional.of((short) 32766), 3500L));
        fresh(4005, 7, TransactionState.EMPTY, TransactionVersion.TV_2);
        step("wide-add", m.prepareAddPartitions(Set.of(new TopicPartition("x".repeat(200), 100000)), 3000L, TransactionVersion.TV_2));
    }
}
