"""Brokers in processes of their own under faults: what was acknowledged is there, once and in order.

`LOGKERNEL_KILLS` says how many faults there are.
"""

from __future__ import annotations

import os
import random
import signal
import time
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


def test_brokers_that_die_in_any_order_lose_nothing(tmp_path: Path) -> None:
    chance = random.Random(49)
    with ServedProcesses(tmp_path / "data") as cluster:
        cluster.create("orders", 3, min_insync_replicas="2")
        with cluster.connect() as remote:
            with Recorded(remote, "orders", partitions=3) as writer:
                for _ in range(int(os.environ.get("LOGKERNEL_KILLS", "10"))):
                    writer.wait_for_more(30)
                    first = chance.randrange(1, 4)
                    cluster.signal(first, chance.choice([signal.SIGKILL, signal.SIGTERM]))
                    if chance.random() < 0.3:
                        cluster.signal(first % 3 + 1, signal.SIGKILL)
                    if chance.random() < 0.6:
                        cluster.wait_for_isr("orders", 3)
                cluster.wait_for_isr("orders", 3)
                writer.wait_for_more(30)
            writer.check(remote)
        assert cluster.stop() == 0


def test_a_parent_that_stands_still_takes_no_broker_for_dead(tmp_path: Path) -> None:
    with ServedProcesses(tmp_path / "data", 3, "broker.session.timeout.ms=10000") as cluster:
        cluster.create("orders", 1, min_insync_replicas="2")
        assert cluster.process is not None
        with cluster.connect() as remote, Recorded(remote, "orders") as writer:
            for number, span_s in ((signal.SIGSTOP, 12), (signal.SIGCONT, 3)):  # the first for longer than a session
                cluster.process.send_signal(number)
                until_s = time.monotonic() + span_s
                while time.monotonic() < until_s:
                    writer.wait_for_more(10)
        assert "a session ends" not in cluster.log()
        assert cluster.stop() == 0
