"""Records what Apache Kafka answers to `large_cases.py`: python record_large.py > kafka-4.3.1-large.txt"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "bench"), str(HERE.parents[1])]

import apache_kafka  # noqa: E402
from golden.groups.large_cases import table  # noqa: E402

from logkernel.plugins.transport.tcp.channel import TcpChannel  # noqa: E402


def retried(step: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not step():
        assert time.monotonic() < deadline_s
        time.sleep(0.3)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        server = apache_kafka.KafkaServer(Path(scratch))
        server.prepare()
        server.start()
        channel = TcpChannel("127.0.0.1", server.port, {})
        try:
            for line in table(channel.call, retried):
                print(line)
        finally:
            channel.close()
            server.stop()


if __name__ == "__main__":
    main()
