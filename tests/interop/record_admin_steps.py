"""Records what Apache Kafka answers to `AdminSteps.java`: python tests/interop/record_admin_steps.py [messages].

Prints to stdout; kafka-4.3.1-admin-steps.txt is such an output. With `messages` Kafka's error texts come too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))

import apache_kafka  # noqa: E402


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        first, second = folder / "data", folder / "more"
        settings = {
            "log.dirs": f"{first},{second}",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        server = apache_kafka.KafkaServer(folder, settings)
        server.prepare()
        compile_command = ["javac", "-nowarn", "-cp", f"{apache_kafka.JARS}/*", "-d", str(folder / "classes")]
        subprocess.run([*compile_command, str(HERE / "AdminSteps.java")], check=True)
        server.start()
        try:
            how = "slow" + "".join(sys.argv[1:])
            command = apache_kafka.java(
                "AdminSteps", server.bootstrap, str(second), how, classpath=str(folder / "classes")
            )
            subprocess.run(command, check=True)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
