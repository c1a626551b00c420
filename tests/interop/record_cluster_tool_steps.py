"""Records what the tools of Apache Kafka 3.9 print of three of its brokers: `cluster_tool_steps.py`.

python tests/interop/record_cluster_tool_steps.py prints to stdout; kafka-3.9.2-cluster-tool-steps.txt is such an
output. `ours` or `mixed` asks brokers of ours, or both kinds in one cluster.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE), str(HERE.parents[1] / "bench")]

import apache_kafka  # noqa: E402
import cluster_tool_steps  # noqa: E402
import kafka_tools  # noqa: E402
import zookeepers  # noqa: E402
from conftest import Broker  # noqa: E402
from mixed_brokers import members  # noqa: E402


def tell(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    started: list[Broker] = []
    with tempfile.TemporaryDirectory() as scratch, zookeepers.zookeeper(Path(scratch, "zookeeper")) as server:

        def start_broker(*arguments: str) -> Any:
            number = len(started)
            broker = Broker(Path(scratch, f"data-{number}"), Path(scratch, f"stderr-{number}.log"), arguments)
            started.append(broker)
            return broker.start()

        kinds = cluster_tool_steps.CLUSTERS[sys.argv[1] if len(sys.argv) > 1 else "kafka"]
        command = kafka_tools.command(apache_kafka, Path(scratch), apache_kafka.OLDER)
        try:
            with members(Path(scratch), f"{server.address}/tools", kinds, start_broker) as cluster:
                cluster_tool_steps.run(cluster, command, tell)
        finally:
            for broker in started:
                broker.end()


if __name__ == "__main__":
    main()
