"""What cannot be written does not hold, whoever wanted it written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from logkernel.broker.replicas.leader_replica import LeaderReplica
from logkernel.errors import CorruptMessage, KafkaStorageError
from logkernel.partition.effects import Outcome
from logkernel.plugins.services.shares.partitions import fetching

NOT_COORDINATOR = 16


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Appends to the topic fail from now on; "" mends it."""
    whole = LeaderReplica.store
    broken = ""

    def store(self: Any, batches: Any, write: Any, *rest: Any) -> None:
        if self.name.topic == broken:
            write.receiver.deliver(Outcome(KafkaStorageError.code))
        else:
            whole(self, batches, write, *rest)

    def choose(topic: str) -> None:
        nonlocal broken
        broken = topic

    monkeypatch.setattr(LeaderReplica, "store", store)
    return choose


def test_an_acknowledgement_that_cannot_be_kept(world: Any, failing: Any) -> None:
    world.join("a")
    world.produce(2)
    assert world.fetch("a") == "0-1:1"
    failing("__share_group_state")
    assert world.ack("a", "0-1 accept") == f"!{NOT_COORDINATOR}"
    failing("")
    assert world.ack("a", "0 accept") == "", "the member still holds its records"
    world.wait(1000)
    assert world.fetch("b") == "1-1:2"
    world.crash()
    assert world.fetch("b") == "1-1:2"


def test_a_lock_times_out_though_it_cannot_be_kept(world: Any, failing: Any) -> None:
    world.join("a")
    world.produce(1)
    assert world.fetch("a") == "0-0:1"
    failing("__share_group_state")
    world.wait(1000)
    assert world.fetch("b") == "0-0:2"
    failing("")
    assert world.ack("b", "0 accept") == ""
    assert world.offsets() == (1, 0)


def test_a_member_whose_records_cannot_be_kept_has_not_joined(world: Any, failing: Any) -> None:
    world.join("a")
    failing("__consumer_offsets")
    assert world.join("b").error_code == NOT_COORDINATOR
    assert world.beat("a", -1).error_code == NOT_COORDINATOR
    failing("")
    assert world.beat("b", 2).error_code == 25
    assert world.join("b").error_code == 0


def test_share_state_that_cannot_be_made_is_made_later(world: Any, failing: Any) -> None:
    world.join("z")  # the topic is there
    world.broker.create_topic("more", 1, {})
    failing("__share_group_state")
    first = world.join("a", "more")
    assert (first.error_code, first.assignment.topic_partitions) == (0, [])
    failing("")
    assert world.beat("a", first.member_epoch).assignment is None, "not before the retry interval is over"
    world.wait(30_000)
    again = world.beat("a", first.member_epoch)
    assert [row.partitions for row in again.assignment.topic_partitions] == [[0]]


def test_offsets_that_cannot_be_altered(world: Any, failing: Any) -> None:
    world.join("a")
    world.produce(3)
    assert world.fetch("a") == "0-2:1"
    assert world.ack("a", "0-1 accept") == ""
    world.beat("a", -1)
    failing("__share_group_state")
    assert world.alter(0) == NOT_COORDINATOR
    failing("")
    assert world.offsets() == (2, 1)


@pytest.mark.parametrize(("error", "code"), [(CorruptMessage("rotten"), 2), (OSError("gone"), 56)])
def test_a_log_that_cannot_be_read(world: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int) -> None:
    def read(*_: Any) -> Any:
        raise error

    world.produce(1)
    with monkeypatch.context() as patch:
        patch.setattr(fetching, "read", read)
        assert world.fetch("a") == f"!{code}"
    assert world.fetch("a") == "0-0:1"
