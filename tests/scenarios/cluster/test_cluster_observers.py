"""Plugins that observe a broker of a cluster."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

import logkernel
from logkernel.broker import build
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel


class Counts:
    """What the plugin of one broker was told."""

    __name__ = "counts"

    def __init__(self) -> None:
        self.created: Counter[str] = Counter()
        self.leaders: Counter[str] = Counter()
        self._told = threading.Condition()

    @hookimpl
    def logkernel_topic_created(self, topic: str) -> None:
        with self._told:
            self.created[topic] += 1
            self._told.notify_all()

    @hookimpl
    def logkernel_leader_changed(self, topic: str) -> None:
        with self._told:
            self.leaders[topic] += 1
            self._told.notify_all()

    def wait_for(self, topic: str) -> None:
        with self._told:
            assert self._told.wait_for(lambda: self.created[topic] and self.leaders[topic], 30)


def test_a_broker_that_restarts_announces_no_topic_that_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each restart of a member called the hooks of creation and of new leaders for every topic."""
    lives: list[Counts] = []

    def kernel(**given: Any) -> Kernel:
        lives.append(Counts())
        return Kernel(**{**given, "plugins": lives[-1:]})

    monkeypatch.setattr(build, "Kernel", kernel)
    with logkernel.open_cluster(brokers=3) as cluster:
        cluster.create_topic("orders", 1, replication_factor=3)
        for first in list(lives):
            first.wait_for("orders")
        cluster.wait_for_isr("orders", 0, 3)
        follower = next(node for node in cluster.brokers if node != cluster.leader("orders", 0))
        cluster.stop(follower)
        cluster.start(follower)
        again = lives[3]
        cluster.wait_for_isr("orders", 0, 3)
        cluster.create_topic("later", 1, replication_factor=3)
        again.wait_for("later")
        assert again.created == again.leaders == {"later": 1}
