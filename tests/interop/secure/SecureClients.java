// Java's clients at secure listeners: a table of logins from stdin, as JSON, and what became of each, one a line.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.SaslExtensions;
import org.apache.kafka.common.security.auth.SaslExtensionsCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class SecureClients {
    private static final String MODULES = "org.apache.kafka.common.security.";
    private static final long LIMIT_NANOS = 180_000_000_000L;

    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        JsonNode logins = json.readTree(System.in);
        var workers = Executors.newFixedThreadPool(Math.max(1, logins.size()));
        List<Future<ObjectNode>> outcomes = new ArrayList<>();
        logins.forEach(login -> outcomes.add(workers.submit(() -> outcome(json, login))));
        for (Future<ObjectNode> one : outcomes) {
            System.out.println(json.writeValueAsString(one.get()));
        }
        workers.shutdown();
    }

    private static ObjectNode outcome(ObjectMapper json, JsonNode login) {
        ObjectNode found = json.createObjectNode().put("name", text(login, "name")).put("error", "");
        try {
            found.set("read", json.valueToTree(attempt(login)));
        } catch (Exception error) {
            StringBuilder all = new StringBuilder();
            for (Throwable one = error; one != null; one = one.getCause()) {
                all.append(one).append("; ");
            }
            found.put("error", all.toString()).putNull("read");
        }
        return found;
    }

    private static List<String> attempt(JsonNode login) throws Exception {
        Map<String, Object> settings = settings(login);
        String topic = text(login, "topic");
        int count = login.get("values").size();
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.partitionsFor(topic);
            for (JsonNode value : login.get("values")) {
                producer.send(new ProducerRecord<>(topic, 0, (String) null, value.textValue())).get();
            }
        }
        List<String> read = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            long end = System.nanoTime() + LIMIT_NANOS;
            while (read.size() < count && System.nanoTime() < end) {
                consumer.poll(Duration.ofMillis(500)).forEach(record -> read.add(record.value()));
            }
        }
        return read;
    }

    private static Map<String, Object> settings(JsonNode login) {
        Map<String, Object> found = new HashMap<>();
        found.put("bootstrap.servers", text(login, "bootstrap"));
        found.put("security.protocol", text(login, "protocol"));
        found.put("auto.offset.reset", "earliest");
        found.put("max.block.ms", text(login, "max_block_ms"));
        String mechanism = text(login, "mechanism");
        if (!mechanism.isEmpty()) {
            found.put("sasl.mechanism", mechanism);
            found.put("sasl.jaas.config", jaas(login, mechanism));
        }
        if (mechanism.equals("OAUTHBEARER")) {
            found.put("sasl.login.callback.handler.class", GivenToken.class.getName());
        }
        if (!text(login, "ca").isEmpty()) {
            found.put("ssl.truststore.type", "PEM");
            found.put("ssl.truststore.location", text(login, "ca"));
        }
        if (!text(login, "own").isEmpty()) {
            found.put("ssl.keystore.type", "PEM");
            found.put("ssl.keystore.location", text(login, "own"));
        }
        return found;
    }

    private static String jaas(JsonNode login, String mechanism) {
        if (mechanism.equals("OAUTHBEARER")) {
            return MODULES + "oauthbearer.OAuthBearerLoginModule required token=\"" + text(login, "token") + "\";";
        }
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        String password = text(login, "password").replace("\\", "\\\\").replace("\"", "\\\"");
        return MODULES + module + " required username=\"" + text(login, "user") + "\" password=\"" + password + "\";";
    }

    private static String text(JsonNode login, String name) {
        return login.get(name).asText();
    }

    // The token that the login module has as its option.
    public static final class GivenToken implements AuthenticateCallbackHandler {
        private String token = "";

        @Override
        public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
            token = (String) entries.get(0).getOptions().get("token");
        }

        @Override
        public void handle(Callback[] callbacks) {
            for (Callback one : callbacks) {
                if (one instanceof OAuthBearerTokenCallback asked) {
                    asked.token(new Given(token));
                } else if (one instanceof SaslExtensionsCallback asked) {
                    asked.extensions(SaslExtensions.empty());
                }
            }
        }

        @Override
        public void close() {
        }
    }

    private record Given(String value) implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }

        @Override
        public long lifetimeMs() {
            return System.currentTimeMillis() + 3_600_000;
        }

        @Override
        public String principalName() {
            return "given";
        }

        @Override
        public Long startTimeMs() {
            return null;
        }
    }
}
