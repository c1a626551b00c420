// Kafka's command line tools in one JVM, driven by tool_steps.py: java ToolSteps
// A line of stdin is a main class and its arguments, tabs between them. Each is answered by a line: the exit code, a tab,
// and what was printed to stdout and stderr, line ends as \n.

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.utils.Exit;

public class ToolSteps {
    static final long PATIENCE_MS = 180_000;
    static volatile CompletableFuture<Integer> ended = new CompletableFuture<>();

    /** A tool that exits is left standing where it does: what it catches must not see it. */
    static void exit(int code) {
        ended.complete(code);
        while (true) LockSupport.park();
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t");
            ByteArrayOutputStream told = new ByteArrayOutputStream();
            PrintStream both = new PrintStream(told, true, StandardCharsets.UTF_8);
            System.setOut(both);
            System.setErr(both);
            ended = new CompletableFuture<>();
            Thread tool = new Thread(() -> run(words, both));
            tool.setDaemon(true);
            tool.start();
            int code;
            try {
                code = ended.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
            } catch (TimeoutException error) {
                code = -2;
            }
            String text = told.toString(StandardCharsets.UTF_8).replace("\\", "\\\\").replace("\r", "").replace("\n", "\\n");
            out.println(code + "\t" + text.replace("\t", " "));
            out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    static void run(String[] words, PrintStream to) {
        try {
            // Scala's println goes to a console of its own
            scala.Console$.MODULE$.withOut(to, () -> scala.Console$.MODULE$.withErr(to, () -> {
                try {
                    return Class.forName(words[0]).getMethod("main", String[].class)
                        .invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
                } catch (Exception error) {
                    throw new RuntimeException(error);
                }
            }));
            ended.complete(0);
        } catch (Throwable error) {
            Throwable cause = error;
            while (cause.getCause() != null) cause = cause.getCause();
            to.println(cause);
            ended.complete(-1);
        }
    }
}
