"""Records what Apache Kafka says to `coordinator_steps.py`, or with the word `tools` to `tool_steps.py`.

python tests/interop/record_coordinator_steps.py [tools] prints to stdout; kafka-4.3.1-coordinator-steps.txt and
kafka-4.3.1-tool-steps.txt are such outputs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "bench")]

import apache_kafka  # noqa: E402
import coordinator_steps  # noqa: E402
import kafka_tools  # noqa: E402
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
                command = kafka_tools.command(apache_kafka, Path(scratch), apache_kafka.VERSION)
                tool_steps.run(server.bootstrap, command, tell)
            else:
                coordinator_steps.run(server.bootstrap, tell)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
