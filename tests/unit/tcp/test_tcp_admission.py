"""Connections that the broker does not let in yet are not read, and have their turn one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from logkernel.contracts import ADMITTED, Admission
from logkernel.plugins.transport.tcp.admission import Admissions


class Loop:
    """Timers that the test runs."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []

    def call_later(self, delay_s: float, work: Callable[..., None], *given: Any) -> Loop:
        self.timers.append((delay_s, work, given))
        return self

    def run(self) -> float:
        """Run the first; returns its delay."""
        delay_s, work, given = self.timers.pop(0)
        work(*given)
        return delay_s

    def cancel(self) -> None:
        self.timers.clear()


class Guest:
    def __init__(self, host: str) -> None:
        self.host = host
        self.state = "read"

    def is_closing(self) -> bool:
        return self.state == "closed"

    def hold(self) -> None:
        self.state = "held"

    def let_in(self) -> None:
        self.state = "read"

    def abort(self) -> None:
        self.state = "closed"


class House:
    def __init__(self) -> None:
        self.loop = Loop()
        self.answers: dict[str, Admission] = {}
        self.asked: list[str] = []
        self.admissions = Admissions(self.loop, self._admit)  # type: ignore[arg-type]

    def _admit(self, host: str) -> Admission:
        self.asked.append(host)
        return self.answers.get(host, ADMITTED)

    def guests(self, *hosts: str) -> list[Guest]:
        found = [Guest(host) for host in hosts]
        for guest in found:
            self.admissions.came(guest)
        return found


@pytest.fixture
def house() -> House:
    return House()


def states(guests: list[Guest]) -> list[str]:
    return [guest.state for guest in guests]


def test_each_has_its_turn_after_the_one_before_it(house: House) -> None:
    house.answers = {"b": Admission(500), "c": Admission(250)}
    guests = house.guests("a", "b", "c", "d")
    assert (states(guests), house.asked) == (["read", "held", "held", "held"], ["a", "b"])
    assert house.loop.run() == 0.5
    assert (states(guests), house.asked) == (["read", "read", "held", "held"], ["a", "b", "c"])
    assert house.loop.run() == 0.25
    assert states(guests) == ["read"] * 4
    assert house.loop.timers == []


def test_one_that_left_takes_no_turn(house: House) -> None:
    house.answers = {"a": Admission(500)}
    guests = house.guests("a", "b", "c")
    guests[1].abort()
    house.loop.run()
    assert (states(guests), house.asked) == (["read", "closed", "read"], ["a", "c"])


def test_one_that_is_refused_is_closed_later_and_holds_nobody_up(house: House) -> None:
    house.answers = {"a": Admission(0, 700)}
    guests = house.guests("a", "b")
    assert states(guests) == ["held", "read"]
    assert house.loop.run() == 0.7
    assert states(guests) == ["closed", "read"]


def test_one_that_waits_and_is_refused_is_never_read(house: House) -> None:
    house.answers = {"a": Admission(500, 700)}
    guests = house.guests("a", "b")
    assert house.loop.run() == 0.5
    assert states(guests) == ["held", "read"]
    assert house.loop.run() == 1.2
    assert states(guests) == ["closed", "read"]


def test_a_listener_that_closes_lets_nobody_in(house: House) -> None:
    house.answers = {"a": Admission(500)}
    house.guests("a", "b")
    house.admissions.close()
    assert house.loop.timers == []


# ---------------------------------------------------------------- over sockets


def test_a_connection_that_waited_is_served(run: Any, door: Any, wire: Any) -> None:
    door.admissions = [Admission(1), Admission(1)]

    async def scenario() -> list[int]:
        listener = await wire.listen(door)
        answered = []
        for number in range(3):
            reader, writer = await asyncio.open_connection(listener.host, listener.port)
            writer.write(wire.frame("ApiVersions", 0, number))
            answered.append((await wire.read_frame(reader))[0])
            writer.close()
        await listener.close()
        return answered

    assert run(scenario()) == [0, 1, 2]
    assert door.came == ["127.0.0.1"] * 3


def test_a_connection_that_is_refused_gets_no_answer(run: Any, door: Any, wire: Any) -> None:
    door.admissions = [Admission(0, 1)]

    async def scenario() -> bytes:
        listener = await wire.listen(door)
        reader, writer = await asyncio.open_connection(listener.host, listener.port)
        writer.write(wire.frame("ApiVersions", 0, 7))
        try:
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()
            await listener.close()

    assert run(scenario()) == b""


def test_a_listener_may_have_fewer_connections_than_the_broker(run: Any, door: Any, wire: Any) -> None:
    async def scenario() -> list[bool]:
        settings = {"max__connections": 3, "listener__name__plaintext__max__connections": 1}
        listener = await wire.listen(door, **settings)
        served = []
        kept = []
        for _ in range(2):
            reader, writer = await asyncio.open_connection(listener.host, listener.port)
            kept.append(writer)
            writer.write(wire.frame("ApiVersions", 0, 7))
            try:
                served.append(bool(await reader.read(1)))
            except ConnectionError:
                served.append(False)
        for writer in kept:
            writer.close()
        await listener.close()
        return served

    assert run(scenario()) == [True, False]
