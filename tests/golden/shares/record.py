"""Records what Apache Kafka answers to the cases: python tests/golden/shares/record.py > kafka-4.3.1.txt"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "bench"), str(HERE)]

import apache_kafka  # noqa: E402
from share_state_cases import TOPIC, coordinators, is_ready, table  # noqa: E402

from logkernel.plugins.transport.tcp.channel import TcpChannel  # noqa: E402
from logkernel.requests.topics import CreatableTopic, CreateTopicsRequest  # noqa: E402


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        server = apache_kafka.KafkaServer(Path(scratch))
        server.prepare()
        server.start()
        try:
            with TcpChannel("127.0.0.1", server.port, {}) as channel:

                def ask(request: Any) -> Any:
                    return channel.call(request)

                topic_id = ask(CreateTopicsRequest([CreatableTopic(TOPIC, 1, 1)])).topics[0].topic_id
                deadline_s = time.monotonic() + 60
                while not is_ready(ask, topic_id):
                    assert time.monotonic() < deadline_s
                    ask(coordinators(topic_id))
                    time.sleep(0.2)
                for line in table(ask, topic_id):
                    print(line)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
