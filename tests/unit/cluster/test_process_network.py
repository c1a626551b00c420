"""The network between brokers of one process: order, cuts, pauses, and what a kill voids."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from broker_doors import OpenDoor

from logkernel.cluster.network import ProcessNetwork
from logkernel.contracts import Answer, RequestContext


class Door(OpenDoor):
    """Answers what it is told to, or later."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.answers: list[Answer] = []
        self.contexts: list[RequestContext] = []
        self.later = False

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        self.got.append(request)
        self.contexts.append(context)
        if self.later:
            self.answers.append(answer)
        else:
            answer(f"re:{request}")


class World:
    def __init__(self) -> None:
        self.queue: deque[Callable[[], None]] = deque()
        self.network = ProcessNetwork(self.queue.append)
        self.doors = {node: Door() for node in (1, 2, 3)}
        for node, door in self.doors.items():
            self.network.join(node, door)
        self.told: list[Any] = []

    def send(self, source: int, target: int, request: Any) -> None:
        self.network.transport(source).send(
            target, request, self.told.append, lambda error: self.told.append(type(error).__name__), 1000
        )

    def run(self) -> None:
        while self.queue:
            self.queue.popleft()()


def test_a_request_arrives_later_and_may_command() -> None:
    world = World()
    world.send(1, 2, "a")
    assert world.doors[2].got == []
    world.run()
    assert world.doors[2].got == ["a"]
    assert world.told == ["re:a"]
    assert world.doors[2].contexts[0].commands


def test_a_cut_holds_what_is_sent_and_keeps_its_order() -> None:
    world = World()
    world.network.cut({1}, {2, 3})
    world.send(1, 2, "a")
    world.send(1, 2, "b")
    world.send(3, 2, "c")
    world.run()
    assert world.doors[2].got == ["c"]
    world.network.heal()
    world.send(1, 2, "d")
    world.run()
    assert world.doors[2].got == ["c", "a", "b", "d"]


def test_a_one_way_cut_holds_the_answer() -> None:
    world = World()
    world.network.cut({2}, {1}, both_ways=False)
    world.send(1, 2, "a")
    world.run()
    assert world.doors[2].got == ["a"]
    assert world.told == []
    world.network.heal()
    world.run()
    assert world.told == ["re:a"]


def test_a_paused_broker_gets_it_afterwards() -> None:
    world = World()
    world.send(1, 2, "a")
    world.network.pause(2)
    world.run()
    assert world.doors[2].got == []
    world.network.resume(2)
    world.run()
    assert world.told == ["re:a"]


def test_who_is_not_there_fails_at_once() -> None:
    world = World()
    world.network.leave(2)
    world.send(1, 2, "a")
    world.run()
    assert world.told == ["PeerLost"]


def test_a_kill_fails_what_waits_and_voids_late_answers() -> None:
    world = World()
    world.doors[2].later = True
    world.send(1, 2, "a")
    world.run()
    world.network.cut({1}, {2})
    world.send(1, 2, "b")
    world.network.leave(2)
    world.run()
    assert world.told == ["PeerLost", "PeerLost"], "also what it had got and not answered"
    world.network.heal()
    world.doors[2].answers[0]("late")
    world.run()
    assert len(world.told) == 2


def test_a_broker_that_was_started_again_hears_no_answers_of_its_earlier_life() -> None:
    world = World()
    world.doors[2].later = True
    world.send(1, 2, "a")
    world.run()
    world.network.leave(1)
    world.network.join(1, world.doors[1])
    world.doors[2].answers[0]("late")
    world.run()
    assert world.told == []
