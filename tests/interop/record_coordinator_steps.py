"""Records what Apache Kafka says to `coordinator_steps.py`, or with the word `tools` to `tool_steps.py`.

python tests/interop/record_coordinator_steps.py [tools] prints to stdout; kafka-4.3.1-coordinator-steps.txt and
kafka-4.3.1-tool-steps.txt are such outputs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "bench")]

import apache_kafka  # noqa: E402
import coordinator_steps  # noqa: E402
import tool_steps  # noqa: E402


def tell(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        server = apache_kafka.KafkaServer(Path(scratch), coordinator_steps.SETTINGS)
        server.prepare()
        server.start()
        try:
            if "tools" in sys.argv:
                compile_command = [
                    "javac",
                    "-cp",
                    f"{apache_kafka.JARS}/*",
                    "-d",
                    scratch,
                    str(HERE / "ToolSteps.java"),
                ]
                subprocess.run(compile_command, check=True)
                tool_steps.run(server.bootstrap, apache_kafka.java("ToolSteps", classpath=scratch), tell)
            else:
                coordinator_steps.run(server.bootstrap, tell)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
