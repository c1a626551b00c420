"""Settings that were described, and that nothing read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from logkernel.broker import peer_channels
from logkernel.broker.build import build
from logkernel.broker.runtime import Runtime
from logkernel.config.broker import BrokerConfig
from logkernel.embed import EmbeddedLog
from logkernel.kernel import Kernel
from logkernel.peer.network import Network
from logkernel.requests.cluster import DescribeTopicPartitionsRequest, TopicRequest


def test_connections_between_brokers_heed_their_time_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds were the limit, whatever socket.connection.setup.timeout.ms said."""
    given: dict[str, Any] = {}

    class Heard(Network):
        def __init__(self, settings: Any, random: Any) -> None:
            given.update(settings)
            super().__init__(settings, random)

    monkeypatch.setattr(peer_channels, "Network", Heard)
    kernel = Kernel(allow=())
    limits = {"socket.connection.setup.timeout.ms": 700, "socket.connection.setup.timeout.max.ms": 900}
    overrides = [f"{name}={value}" for name, value in limits.items()]
    runtime = Runtime(BrokerConfig.load(None, overrides, kernel.declarations()), kernel)
    door: Any = None

    async def make() -> None:
        peer_channels.PeerChannels(runtime, "tcp", lambda node, of_controller: None, door, dict).close()

    asyncio.run(make())
    assert limits.items() <= given.items()


def test_services_wait_for_replicas_as_long_as_their_topics_setting_says() -> None:
    """All waited five seconds."""
    with EmbeddedLog(build(None, ["offsets.commit.timeout.ms=700"], in_memory=True)) as log:
        waits = {host.declared.name: host.commit_timeout_ms for host in log.broker.services}
    assert (waits["groups"], waits["transactions"]) == (700, 5_000)


def test_a_description_of_topics_is_cut_where_the_setting_says() -> None:
    """After 2000 partitions, whatever max.request.partition.size.limit said."""
    with EmbeddedLog(build(None, ["max.request.partition.size.limit=2"], in_memory=True)) as log:
        log.create_topic("t", 3)
        response = log.request(DescribeTopicPartitionsRequest([TopicRequest("t")]))
    assert [len(topic.partitions) for topic in response.topics] == [2]
    assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == ("t", 2)
