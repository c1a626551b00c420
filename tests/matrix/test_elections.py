"""Who leads when the leader is gone: any strategy takes a replica in sync, and only `unclean` takes one that is not."""

from __future__ import annotations

from brokers_by_transport import Brokers, StoredBatch
from recorded_writes import Recorded


def send(brokers: Brokers, topic: str, *values: bytes) -> None:
    with brokers.log.producer(acks="all") as producer:
        for value in values:
            producer.send(topic, value, b"key", partition=0).result(120)


def values(brokers: Brokers, topic: str) -> list[bytes]:
    return [record.value for record in brokers.read(topic)]


def test_a_stale_replica_waits_or_leads(election: str, brokers: Brokers, topic: str) -> None:
    """The stale one is back, and the leader is not: `clean` waits for it, `unclean` gives up what only it had."""
    witness = f"{topic}.witness"
    for name, strategy in ((topic, election), (witness, "unclean")):
        brokers.create(name, {0: [1, 2]}, election=strategy)
        send(brokers, name, b"on both")
    brokers.stop(2)
    brokers.until_in_sync(topic, 1)
    send(brokers, topic, b"on one")
    brokers.kill(1)
    brokers.start(2)
    assert brokers.until_led(witness, other_than=1) == 2  # from now on the controller has decided
    if election == "unclean":
        assert brokers.until_led(topic, other_than=1) == 2
        send(brokers, topic, b"afterwards")
        wanted = [b"on both", b"afterwards"]
    else:
        brokers.until_offline(topic)
        wanted = [b"on both", b"on one"]
    brokers.start(1)
    brokers.until_in_sync(topic)
    assert values(brokers, topic) == wanted
    assert brokers.batches(1, topic) == brokers.batches(2, topic)


def test_a_replica_in_sync_leads_and_nothing_is_lost(election: str, brokers: Brokers, topic: str) -> None:
    brokers.create(topic, {0: [1, 2, 3]}, election=election, min_insync_replicas=2)
    told = [b"%d" % number for number in range(20)]
    send(brokers, topic, *told)
    brokers.kill(1)
    assert brokers.until_led(topic, other_than=1) == 2  # the next of the assignment
    send(brokers, topic, b"on two")
    brokers.start(1)
    brokers.until_in_sync(topic)
    assert values(brokers, topic) == [*told, b"on two"]
    logs = [brokers.batches(node, topic) for node in (1, 2, 3)]
    assert logs[0] == logs[1] == logs[2]
    assert epochs(logs[0])[-1] > epochs(logs[0])[0]


def epochs(log: list[StoredBatch]) -> list[int]:
    return [batch.epoch for batch in log]


def test_a_producer_goes_on_over_elections(election: str, brokers: Brokers, topic: str) -> None:
    """Nothing acknowledged is lost, doubled or reordered while each leader ends in its turn."""
    brokers.create(topic, {0: [1, 2, 3]}, election=election, min_insync_replicas=2)
    with Recorded(brokers.log, topic) as writer:
        for end in (brokers.kill, brokers.stop):
            writer.wait_for_more()
            leader = brokers.until_led(topic)
            end(leader)
            brokers.until_led(topic, other_than=leader)
            writer.wait_for_more()
            brokers.start(leader)
            brokers.until_in_sync(topic)
    writer.check(brokers.log)
    assert not writer.failed
