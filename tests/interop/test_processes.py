"""A broker process that the system stops loses its session, and joins again when it goes on."""

from __future__ import annotations

import signal
from pathlib import Path

from recorded_writes import Recorded
from served_processes import ServedProcesses


def test_a_broker_that_stands_still_loses_its_session_and_comes_back(tmp_path: Path) -> None:
    with ServedProcesses(tmp_path / "data", 3, "broker.session.timeout.ms=500") as cluster:
        cluster.create("orders", 1, min_insync_replicas="2")
        with cluster.connect() as remote:
            with Recorded(remote, "orders") as writer:
                writer.wait_for_more()
                leader = cluster.leader("orders")
                stopped = cluster.pid(leader)
                cluster.signal(leader, signal.SIGSTOP)
                cluster.wait_for_leader("orders", leader)
                writer.wait_for_more()
                cluster.resume(stopped)
                cluster.wait_for_isr("orders", 3)
                writer.wait_for_more()
            writer.check(remote)
        assert cluster.pid(leader) == stopped, "it was not started again"
        assert cluster.stop() == 0
