"""Histories of real processes replay through the pure machines to the same effects."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zookeepers
from chaos import trace
from served_over_zookeeper import Reached

from logkernel.admin import NewTopic

SETTINGS = ("zookeeper.session.timeout.ms=4000", "replica.lag.time.max.ms=2000", "min.insync.replicas=2")
EVENTS = {
    "Leader.on_produce", "Leader.on_appended", "Leader.on_fetch", "Leader.on_isr_accepted", "Leader.on_order",
    "Leader.on_resigned", "Leader.on_tick", "Follower.next_fetch", "Follower.on_records", "Follower.on_progress",
    "Follower.on_error", "Follower.on_leader", "Orders.broker_came", "Orders.broker_gone", "Orders.fold",
    "Orders.next_request", "Orders.on_answer", "ControllerState.on_campaign", "ControllerState.on_loaded",
    "election_rules.broker_gone", "election_rules.broker_started", "election_rules.broker_leaves",
    "alter_partition.judge_proposal",
}  # fmt: skip
"""What these faults have to lead to."""


class Traced(Reached):
    """Three brokers, each start of which writes a trace of its own."""

    patience_s = 180

    def __init__(
        self, folder: Path, url: str, start_broker: Callable[..., Any], eventually: Callable[..., None]
    ) -> None:
        super().__init__(eventually)
        folder.mkdir()
        self.folder = folder
        words = [word for setting in SETTINGS for word in ("--set", setting)]
        program = (sys.executable, str(Path(__file__).parent / "traced_serve.py"), str(folder))
        self.brokers = {
            node: start_broker("--coordination", url, "--node-id", str(node), *words, program=program)
            for node in (1, 2, 3)
        }

    def in_sync(self, admin: Any, count: int = 3) -> None:
        def synced() -> bool:
            rows = admin.describe_topics("orders")["orders"].partitions
            return len(rows) == 3 and all(len(row.isr) == count and row.leader is not None for row in rows)

        self.until(synced, f"{count} replicas are in sync")

    def signal(self, node: int, number: int) -> None:
        self.brokers[node].process.send_signal(number)


@pytest.mark.longest
def test_what_brokers_in_zookeeper_did_under_faults_replays_to_the_same_effects(
    patient_zookeeper: zookeepers.ZooKeeper,
    tmp_path: Path,
    start_broker: Callable[..., Any],
    eventually: Callable[..., None],
) -> None:
    url = f"zookeeper://{patient_zookeeper.address}/traced"
    traced = Traced(tmp_path / "traces", url, start_broker, eventually)
    with traced.connect() as log, log.admin() as admin:
        traced.until(lambda: len(admin.describe_cluster().brokers) == 3, "three brokers are known")
        admin.create_topics(NewTopic("orders", 3, 3))
        traced.in_sync(admin)
        with log.producer(acks="all") as producer:

            def write() -> None:
                sent = [producer.send("orders", b"%d" % number, partition=number % 3) for number in range(60)]
                for each in sent:
                    each.result()

            write()
            controller = admin.describe_cluster().controller
            traced.brokers[controller].kill()  # others lead, and another one commands
            traced.in_sync(admin, 2)
            write()
            traced.brokers[controller].restart()
            traced.in_sync(admin)
            follower = admin.describe_topics("orders")["orders"].partitions[0].replicas[-1]
            traced.signal(follower, signal.SIGSTOP)  # past its session
            traced.in_sync(admin, 2)
            write()
            traced.signal(follower, signal.SIGCONT)
            traced.in_sync(admin)
            traced.brokers[controller].terminate()  # hands over what it leads
            traced.in_sync(admin, 2)
            write()
            traced.brokers[controller].restart()
            traced.in_sync(admin)
    for broker in traced.brokers.values():
        broker.terminate()
    paths = sorted(traced.folder.iterdir())
    assert len(paths) == 5, "one trace for each start"
    counts = trace.replay(paths)
    assert counts.keys() >= EVENTS
    assert sum(counts.values()) > 500


def test_a_machine_that_answers_otherwise_is_noticed(tmp_path: Path) -> None:
    """A trace whose recorded effects were tampered with does not replay."""
    import pickle

    from logkernel.controller.state import ControllerState

    path = tmp_path / "one.trace"
    with path.open("wb", buffering=0) as sink:
        writer = trace.Writer(sink)
        state = ControllerState(1)
        name, number = "ControllerState", writer.number_of(state)
        writer.carried_out(("call", name, number, "__init__"), lambda node: None, (1,), {})
        writer.carried_out(("call", name, number, "on_controller"), state.on_controller, (None, 3), {})
    assert trace.replay([path]) == {"ControllerState.on_controller": 1}
    rows = []
    with path.open("rb") as stream:
        rows = [pickle.load(stream) for _ in range(2)]
    rows[1] = (*rows[1][:3], rows[0][3])
    path.write_bytes(b"".join(map(pickle.dumps, rows)))
    with pytest.raises(AssertionError, match=r"ControllerState.on_controller, call 1"):
        trace.replay([path])
