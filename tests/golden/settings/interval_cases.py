"""What the interval between a group's assignments does to members that come within it: the same heartbeats to Apache
Kafka (`record.py`) and to ours (`test_group_settings.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from logkernel.requests import consumer_groups, groups, share_groups, topics

from .settings_cases import GROUP, SET, Ask, Retried, alter, described

TOPIC: Final = "t"
PARTITIONS: Final = 2
LONG: Final = "15000"
"""Longer than all steps take."""


class Member:
    """Of a group that is named by its kind."""

    def __init__(self, ask: Ask, kind: str, name: str) -> None:
        self._ask = ask
        self._kind = kind
        self._name = name
        self.epoch = 0
        self.held: dict[Any, list[int]] = {}

    def beat(self, *, leaves: bool = False) -> Any:
        """A heartbeat; one with epoch 0 joins."""
        epoch = -1 if leaves else self.epoch
        names = [TOPIC] if epoch == 0 else None
        request: Any
        if self._kind == "share":
            request = share_groups.ShareGroupHeartbeatRequest(self._kind, self._name, epoch, None, names)
        else:
            owned = [consumer_groups.TopicPartitions(topic, rows) for topic, rows in self.held.items()]
            timeout_ms = 60_000 if epoch == 0 else -1
            request = consumer_groups.ConsumerGroupHeartbeatRequest(
                self._kind, self._name, epoch, None, None, timeout_ms, names, None, None, owned
            )
        answer = self._ask(request)
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.held = {row.topic_id: list(row.partitions) for row in answer.assignment.topic_partitions}
        return answer

    def has_all(self) -> bool:
        self.beat()
        return sum(map(len, self.held.values())) == PARTITIONS


def table(ask: Ask, retried: Retried) -> Iterator[str]:
    retried(
        lambda: not ask(topics.CreateTopicsRequest([topics.CreatableTopic(TOPIC, PARTITIONS, 1)])).topics[0].error_code
    )
    for kind in ("consumer", "share"):
        yield f"{kind} group and its interval"
        for line in _steps(ask, retried, kind):
            yield f" {line}"


def _steps(ask: Ask, retried: Retried, kind: str) -> Iterator[str]:
    name = f"{kind}.assignment.interval.ms"

    def set_interval(value: str) -> None:
        assert alter(ask, GROUP, kind, (name, SET, value), dry=False) == "ok"
        retried(lambda: any(row.startswith(f"{name} = {value} ") for row in described(ask, GROUP, kind)))

    set_interval("0")
    ask(groups.FindCoordinatorRequest(coordinator_keys=[kind]))
    old, new = Member(ask, kind, "old"), Member(ask, kind, "new")
    retried(old.has_all)
    first = old.epoch

    def told(what: str, answer: Any) -> str:
        assigned = answer.assignment
        held = "-" if assigned is None else sum(len(row.partitions) for row in assigned.topic_partitions)
        return f"{what}: error {answer.error_code} epoch +{answer.member_epoch - first} partitions {held}"

    set_interval(LONG)
    yield told("new joins within the interval", new.beat())
    yield told("old", old.beat())
    yield told("new", new.beat())
    set_interval("0")
    yield told("old without an interval", old.beat())
    yield told("old has given up", old.beat())
    yield told("new", new.beat())
    set_interval(LONG)
    new.beat(leaves=True)
    yield told("old after new left within the interval", old.beat())
    set_interval("0")
    yield told("old without an interval", old.beat())
