import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** Tells for each file of properties whether Kafka starts with it: `record.py` names the files. */
class ListenerAnswers {
    public static void main(String[] files) throws Exception {
        List<String> told = new ArrayList<>();
        for (String file : files) {
            Properties settings = new Properties();
            try (var text = Files.newBufferedReader(Path.of(file), StandardCharsets.UTF_8)) {
                settings.load(text);
            }
            told.add(answer(settings));
        }
        told.forEach(System.out::println);
    }

    private static String answer(Properties settings) {
        try {
            new kafka.server.KafkaConfig(settings);
            return "starts";
        } catch (Throwable error) {
            return error.getMessage().replace("\n", " ");
        }
    }
}
