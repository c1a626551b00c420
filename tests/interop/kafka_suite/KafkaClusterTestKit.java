// Stands in for the cluster of Kafka's own tests: brokers of logkernel in a process of their own. The system property
// `logkernel.command` has its words, separated by tabs. First on the class path, before kafka-test-common-runtime.

package org.apache.kafka.common.test;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import kafka.server.BrokerServer;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.utils.Utils;

public final class KafkaClusterTestKit implements AutoCloseable {
    private final Map<Integer, BrokerServer> brokers = new HashMap<>();
    private final Map<String, String> settings;
    private final MockFaultHandler faults = new MockFaultHandler("none");
    private Process process;
    private Path folder;
    private String bootstrap;

    private KafkaClusterTestKit(TestKitNodes nodes, Map<String, String> settings) {
        nodes.brokerNodes().keySet().forEach(id -> brokers.put(id, null));
        this.settings = settings;
    }

    public void format() throws IOException {
        folder = Files.createTempDirectory("logkernel-suite");
    }

    public void startup() {
        List<String> command = new ArrayList<>(List.of(System.getProperty("logkernel.command").split("\t")));
        boolean named = settings.getOrDefault("listener.security.protocol.map", "").contains("EXTERNAL"); // by their kit
        String listener = named ? "EXTERNAL://localhost:0" : "127.0.0.1:0"; // a certificate names localhost
        command.addAll(List.of("serve", "--data", folder.resolve("data").toString(), "--listen", listener));
        if (brokers.size() == 1) settings.put("node.id", "0"); // as theirs has; several of ours count from 1
        else command.addAll(List.of("--brokers", String.valueOf(brokers.size())));
        settings.remove("file.delete.delay.ms"); // a topic's, which Kafka's broker passes over and ours refuses
        settings.forEach((name, value) -> command.addAll(List.of("--set", name + "=" + value)));
        File log = folder.resolve("log").toFile();
        try {
            process = new ProcessBuilder(command).redirectError(log).start();
            Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
            String line = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
            if (line == null) throw new IllegalStateException(Files.readString(log.toPath()));
            bootstrap = line.replaceFirst(".*listening on ", "").replaceFirst(" .*", "").replaceAll("[^,/]*://", "");
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    public void waitForReadyBrokers() {
    }

    public String bootstrapServers() {
        return bootstrap;
    }

    public Map<Integer, BrokerServer> brokers() {
        return brokers;
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return faults;
    }

    @Override
    public void close() throws Exception {
        if (process != null) {
            process.destroy();
            if (!process.waitFor(20, TimeUnit.SECONDS)) process.destroyForcibly().waitFor();
        }
        if (folder != null) Utils.delete(folder.toFile());
    }

    public static final class Builder {
        private final TestKitNodes nodes;
        private final Map<String, String> settings = new TreeMap<>();

        public Builder(TestKitNodes nodes) {
            this.nodes = nodes;
        }

        public Builder setConfigProp(String name, Object value) {
            settings.put(name, text(value));
            return this;
        }

        private static String text(Object value) {
            if (value instanceof Password secret) return secret.value();
            if (value instanceof List<?> words) return words.stream().map(String::valueOf).collect(Collectors.joining(","));
            return String.valueOf(value);
        }

        public KafkaClusterTestKit build() {
            return new KafkaClusterTestKit(nodes, settings);
        }
    }
}
