"""ShareFetch and ShareAcknowledge: who gets what, how long, and how often."""

from __future__ import annotations

from typing import Any

import pytest

from logkernel.record.batch import batches
from logkernel.requests.share_delivery import ForgetShareRequest

from .conftest import records


def test_two_members_share_one_partition(world: Any) -> None:
    world.join("a")
    world.join("b")
    world.produce(1, batches=6)
    assert world.fetch("a", max_records=4) == "0-3:1"
    assert world.fetch("b", max_records=4) == "4-5:1"
    assert world.ack("a", "0-3 accept") == ""
    assert world.ack("b", "4-5 accept") == ""
    assert world.offsets() == (6, 0)


def test_only_batches_with_acquired_records_are_sent(world: Any) -> None:
    world.produce(2, batches=5)
    first = world.fetching("a", max_records=4).response
    assert [(facts.base_offset, facts.last_offset) for facts in batches(records(first))] == [(0, 1), (2, 3)]
    assert world.fetch("b", max_records=3, mode=1) == "4-6:1"


def test_a_fetch_waits_until_data_comes(world: Any) -> None:
    waiting = world.fetching("a", wait_ms=500)
    assert waiting.got is None
    world.wait(100)
    world.produce(3)
    assert waiting.got == "0-2:1"
    empty = world.fetching("a", wait_ms=500)
    world.wait(499)
    assert empty.got is None
    world.wait(2)
    assert empty.got == ""


def test_a_start_beyond_the_end_is_waited_for(world: Any) -> None:
    """An administrator may put it there; as Kafka 4.3 has it, the lag is unknown and a fetch finds nothing."""
    world.produce(2)
    assert world.alter(3) == 0
    assert world.offsets() == (3, -1)
    world.join("a")
    assert world.fetch("a") == ""
    waiting = world.fetching("a", wait_ms=1_000)
    world.produce(1)
    assert waiting.got is None
    world.produce(2)
    assert waiting.got == "3-4:1"
    assert world.offsets() == (3, 2)


def test_a_fetch_waits_until_a_lock_times_out(world: Any) -> None:
    world.produce(2)
    assert world.fetch("a") == "0-1:1"
    waiting = world.fetching("b", wait_ms=5000)
    world.wait(999)
    assert waiting.got is None
    world.wait(1)
    assert waiting.got == "0-1:2"


def test_a_fetch_waits_until_records_are_released(world: Any) -> None:
    world.produce(2)
    assert world.fetch("a") == "0-1:1"
    waiting = world.fetching("b", wait_ms=5000)
    assert world.ack("a", "0 accept, 1 release") == ""
    assert waiting.got == "1-1:2"


def test_a_record_that_nobody_accepts_is_archived(world: Any) -> None:
    world.join("a")
    world.configure(**{"share.delivery.count.limit": "2"})
    world.produce(1)
    assert world.fetch("a") == "0-0:1"
    world.wait(1000)
    assert world.fetch("a") == "0-0:2"
    world.wait(1000)
    assert world.fetch("a") == ""
    assert world.offsets() == (1, 0)


def test_a_word_rides_on_a_fetch(world: Any) -> None:
    world.join("a")
    world.produce(2, batches=2)
    assert world.fetch("a", max_records=1) == "0-1:1"
    assert world.fetch("a", words="0-1 accept/reject") == "2-3:1"
    assert world.offsets() == (2, 2)
    assert world.fetch("a", words="2-9 accept") == "?42"


def test_a_partition_that_is_named_for_its_words_and_forgotten_is_not_read(world: Any) -> None:
    """So franz-go ends with a partition that was taken from it; what is acquired then, nobody looks at."""
    world.join("a")
    world.produce(2, batches=2)
    assert world.fetch("a", max_records=1) == "0-1:1"
    assert world.fetch("a", words="0-1 accept", forget=True) == ""
    assert world.offsets() == (2, 2)
    assert world.fetch("b") == "2-3:1"


def test_too_late_a_word(world: Any) -> None:
    world.produce(1)
    assert world.fetch("a") == "0-0:1"
    world.wait(1000)
    assert world.ack("a", "0 accept") == "!121"
    assert world.fetch("b") == "0-0:2"
    assert world.ack("a", "0 accept") == "!121"
    assert world.ack("b", "0 accept") == ""


def test_a_lock_is_renewed(world: Any) -> None:
    world.produce(1)
    assert world.fetch("a") == "0-0:1"
    for _ in range(3):
        world.wait(900)
        assert world.ack("a", "0 renew", renew=True) == ""
    assert world.ack("a", "0 renew") == "!42"
    assert world.ack("a", "0 accept") == ""
    world.configure(**{"share.renew.acknowledge.enable": "false"})
    world.produce(1)
    assert world.fetch("a") == "1-1:1"
    assert world.ack("a", "1 renew", renew=True) == "!121", "as Kafka 4.3 has it"


def test_records_in_flight_are_limited(world: Any) -> None:
    world.configure(**{"share.partition.max.record.locks": "100"})
    world.produce(60, batches=3)
    assert world.fetch("a", max_records=500) == "0-119:1"
    waiting = world.fetching("b", wait_ms=5000)
    assert waiting.got is None
    assert world.ack("a", "0-59 accept") == ""
    assert waiting.got == "120-179:1"


def test_a_session_ends_and_what_it_holds_is_free(world: Any) -> None:
    world.produce(2)
    assert world.fetch("a") == "0-1:1"
    waiting = world.fetching("b", wait_ms=5000)
    assert world.ack("a", "0 accept", epoch=-1) == ""
    assert waiting.got == "1-1:2"
    assert world.ack("a", "1 accept", epoch=2) == "!122"


def test_a_connection_is_gone_and_what_it_held_is_free(world: Any) -> None:
    world.produce(2)
    assert world.fetch("a") == "0-1:1"
    parked, waiting = world.fetching("a", wait_ms=5000), world.fetching("b", wait_ms=5000)
    world.disconnect("c")
    assert waiting.got is None
    world.disconnect("a")
    assert waiting.got == "0-1:2"
    assert parked.got == ""
    assert world.fetch("a") == "!122"


def test_a_final_fetch(world: Any) -> None:
    world.join("a")
    world.produce(1)
    assert world.fetch("a") == "0-0:1"
    assert world.fetch("a", words="0 accept", epoch=-1) == ""
    assert world.offsets() == (1, 0)
    assert world.fetch("a", epoch=-1) == "!122"


def test_epochs_of_sessions(world: Any) -> None:
    world.produce(1)
    assert world.fetch("a", epoch=3) == "!122"
    assert world.fetch("a", epoch=0, words="0 accept") == "!42"
    assert world.fetch("a", epoch=0) == "0-0:1"
    assert world.fetch("a", epoch=2) == "!123"
    assert world.ack("a", "0 accept", epoch=0) == "!123"
    assert world.fetch("a", epoch=0) == "0-0:2", "a new session lets go of what the old one held"


def test_sessions_are_limited(worlds: Any) -> None:
    world = worlds("group.share.max.share.sessions=1")
    assert world.fetch("a") == ""
    assert world.fetch("b", epoch=0) == "!133"
    world.wait(120_000)
    assert world.fetch("b", epoch=0) == ""
    assert world.fetch("a", epoch=1) == "!122"


def test_deleted_records_are_passed_over(world: Any) -> None:
    world.join("a")
    world.produce(1, batches=10)
    assert world.fetch("a", max_records=2) == "0-1:1"
    world.delete_records(5)
    assert world.fetch("a") == "5-9:1"
    assert world.ack("a", "0-9 accept") == ""
    assert world.offsets() == (10, 0)


@pytest.mark.parametrize(("reset", "first"), [("earliest", "0-4:1"), ("latest", ""), ("by_duration:PT1S", "2-4:1")])
def test_where_a_group_begins(world: Any, reset: str, first: str) -> None:
    world.configure(**{"share.auto.offset.reset": reset})
    world.produce(2)
    world.wait(5000)
    world.produce(3)
    assert world.fetch("a") == first
    world.produce(1)
    assert world.fetch("a") == "5-5:1"


def test_latest_is_kept_over_a_crash(world: Any) -> None:
    world.configure(**{"share.auto.offset.reset": "latest"})
    world.join("a")
    world.produce(2)
    assert world.fetch("a") == ""
    world.produce(1)
    world.crash()
    assert world.fetch("a") == "2-2:1"


def test_what_was_accepted_is_so_after_a_crash(world: Any) -> None:
    world.join("a")
    world.produce(1, batches=6)
    assert world.fetch("a") == "0-5:1"
    assert world.ack("a", "0 release, 1 accept, 3 reject, 5 accept") == ""
    world.crash()
    assert world.fetch("a") == "0-0:2 2-2:1 4-4:1"


def test_an_unknown_topic_and_partition(world: Any) -> None:
    assert world.fetch("a", partitions=(7,)) == "!3"
    world.broker.create_topic("gone", 1, {})
    name, world.topic = world.topic, "gone"
    topic_id = world.topic_id
    world.fetch("b")
    from logkernel.requests.topics import DeleteTopicsRequest, DeleteTopicState

    world.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")]))
    world.topic = name
    assert topic_id not in {key.topic_id for key in leaders(world)}
    assert "!100" in world.fetch("b")


def test_a_group_without_readers_is_forgotten_and_found_again(world: Any) -> None:
    world.join("a")
    world.produce(3)
    assert world.fetch("a") == "0-2:1"
    assert world.ack("a", "1 accept", epoch=-1) == ""
    assert not leaders(world)
    assert world.fetch("a", epoch=0) == "0-0:2 2-2:2"


def test_a_group_that_nobody_joined_leaves_no_trace(world: Any) -> None:
    world.produce(3)
    world.configure(**{"share.auto.offset.reset": "latest"})
    assert world.fetch("x") == ""
    assert world.broker.cluster.partition_count("__share_group_state") is None


def leaders(world: Any) -> Any:
    host = next(host for host in world.broker.services if host.declared.name == "share-partitions")
    return host.shard(0).machine.leaders


def test_share_groups_that_are_switched_off(world: Any) -> None:
    world.broker.metadata.image.features["share.version"] = 0
    assert world.fetch("a") == "!35"
    assert world.join("a").error_code == 35


def test_only_the_broker_itself_may_let_go(world: Any) -> None:
    assert world.ask(ForgetShareRequest("g")).error_code == 42
    assert world.ask(ForgetShareRequest("g"), internal=True).error_code == 0
