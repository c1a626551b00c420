// Kafka's command line tools in one JVM, driven by tool_steps.py: java ToolSteps
// A line of stdin is a main class and its arguments, tabs between them. Each is answered by a line: the exit code, a tab,
// and what was printed to stdout and stderr, line ends as \n.

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

public class ToolSteps {
    static class Ended extends RuntimeException {
        final int code;
        Ended(int code) {
            this.code = code;
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        Exit.setExitProcedure((code, message) -> { throw new Ended(code); });
        Exit.setHaltProcedure((code, message) -> { throw new Ended(code); });
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t");
            ByteArrayOutputStream told = new ByteArrayOutputStream();
            PrintStream both = new PrintStream(told, true, StandardCharsets.UTF_8);
            System.setOut(both);
            System.setErr(both);
            int code = 0;
            try {
                scala(both, () -> Class.forName(words[0]).getMethod("main", String[].class)
                    .invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length)));
            } catch (Throwable error) {
                Throwable cause = error;
                while (cause != null && !(cause instanceof Ended)) cause = cause.getCause();
                code = cause == null ? -1 : ((Ended) cause).code;
                if (cause == null) error.printStackTrace(both);
            }
            both.flush();
            String text = told.toString(StandardCharsets.UTF_8).replace("\\", "\\\\").replace("\r", "").replace("\n", "\\n");
            out.println(code + "\t" + text);
            out.flush();
        }
    }

    interface Run {
        Object get() throws Exception;
    }

    /** Scala's println goes to a console of its own. */
    static void scala(PrintStream to, Run run) throws Exception {
        scala.Console$.MODULE$.withOut(to, () -> scala.Console$.MODULE$.withErr(to, () -> {
            try {
                return run.get();
            } catch (Exception error) {
                throw new RuntimeException(error);
            }
        }));
    }
}
