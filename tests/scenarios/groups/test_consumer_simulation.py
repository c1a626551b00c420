"""Random histories of one group from a seed, by both protocols: members that come, go, stall, crash and change
their minds, answers that are lost, appends that fail, topics that come and go, brokers that restart.

The host checks after every event that what is durable is what the log folds to, and that no partition has two owners
in the coordinator's eyes. Here, besides: nor in the members' own, as long as the coordinator believes them; what was
acknowledged as committed is read back, and nothing older; and left alone, every partition is read by exactly one.
"""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from attrs import define, field

from logkernel.plugins.services.groups.consumer import wire
from logkernel.requests.groups import LeaveGroupRequest, MemberIdentity

SEEDS = range(12)
STEPS = 250
TOPICS = ("orders", "other", "third")
FORGET = (25, 110, 69, 81, 82, 111)
Part = tuple[str, int]


@define(eq=False)
class Consumer:
    """A member of the new protocol, that does as the Java client does."""

    name: str
    instance: str | None
    topics: tuple[str, ...] = ("orders",)
    regex: str | None = None
    lives: int = 0
    epoch: int = -9
    owns: set[Part] = field(factory=set)
    told: set[Part] = field(factory=set)
    whole: bool = True
    """The next request says all: an answer was lost, or something changed."""

    @property
    def member_id(self) -> str:
        return f"{self.name}-{self.lives}"

    @property
    def is_in(self) -> bool:
        return self.epoch > 0

    def forget(self, *, reborn: bool = False) -> None:
        self.epoch = -9
        self.owns, self.told, self.whole = set(), set(), True
        self.lives += reborn

    def beat(self, world: Any, lost: bool) -> None:
        if not self.is_in:
            self.epoch = 0
            self.owns = set()
        self.owns &= self.told  # what it was told to give up it gives up by now
        names = self.topics if self.whole and self.regex is None else ()
        answer = world.hb(
            self.member_id,
            self.epoch,
            *names,
            held=sorted(self.owns),
            regex=self.regex if self.whole else None,
            instance=self.instance,
            rebalance_ms=30_000 if self.whole else -1,
        )
        if lost:
            self.whole = True
            if self.epoch == 0:
                self.epoch = -9
            return
        if answer.error_code in FORGET:
            self.forget(reborn=answer.error_code == 82)
        elif answer.error_code:  # the append failed
            self.epoch = -9 if self.epoch == 0 else self.epoch
            self.whole = True
        else:
            self.epoch, self.whole = answer.member_epoch, False
            parts = world.told(answer)
            if parts is not None:
                self.told = set(parts)
                self.owns |= self.told  # what it is to give up it gives up with the next heartbeat

    def leave(self, world: Any, pauses: bool) -> None:
        world.hb(self.member_id, -2 if pauses and self.instance else -1, instance=self.instance)
        self.forget(reborn=True)


@define(eq=False)
class Classic:
    """A member of the classic protocol, that gives up all before it joins."""

    name: str
    instance: str | None = None
    member_id: str = ""
    generation: int = -1
    ticket: int = 0
    syncs: bool = False
    leads: list[str] = field(factory=list)
    owns: set[Part] = field(factory=set)
    topics: tuple[str, ...] = ("orders",)
    regex: None = None
    is_synced: bool = False

    @property
    def is_in(self) -> bool:
        return self.is_synced

    def forget(self, *, reborn: bool = True) -> None:
        self.member_id, self.generation, self.ticket, self.leads = "", -1, 0, []
        self.owns, self.is_synced, self.syncs = set(), False, False

    def beat(self, world: Any, lost: bool) -> None:
        self.hear(world)
        if self.ticket:
            return
        if self.generation < 0:
            self.owns, self.is_synced = set(), False
            self.ticket = world.join(self.member_id, protocols={"range": subscription()}, rebalance_ms=30_000)
        elif self.syncs:
            self.ticket = world.sync(self.member_id, self.generation, self.shares(world))
        else:
            self.settle(world.beat(self.member_id, self.generation))
        self.hear(world)

    def shares(self, world: Any) -> dict[str, bytes]:
        count = world.topics.partitions.get("orders", 0)
        return {
            who: wire.encode_assignment(1, {"orders": list(range(number, count, len(self.leads)))})
            for number, who in enumerate(self.leads)
        }

    def hear(self, world: Any) -> None:
        answer = world.answers.pop(self.ticket, None)
        if answer is None:
            return
        self.ticket = 0
        if answer.error_code == 79:
            self.member_id = answer.member_id
        elif answer.error_code:
            self.settle(answer.error_code)
        elif not self.syncs:
            self.member_id, self.generation, self.syncs = answer.member_id, answer.generation_id, True
            self.leads = [row.member_id for row in answer.members]
        else:
            self.syncs = False
            self.owns, self.is_synced = set(wire.decode_assignment(answer.assignment)), True

    def settle(self, code: int) -> None:
        if code == 27:
            self.generation, self.syncs = -1, False
        elif code:
            self.forget()

    def leave(self, world: Any, pauses: bool) -> None:
        if self.member_id and not self.ticket:
            world.ask(LeaveGroupRequest("g", members=[MemberIdentity(self.member_id)]))
            self.forget()


def subscription() -> bytes:
    return struct.pack(">hih", 1, 1, 6) + b"orders" + struct.pack(">ii", -1, 0)


class History:
    def __init__(self, make_world: Any, seed: int, *, classics: int) -> None:
        self.chance = random.Random(seed)
        self.world = make_world({"group.initial.rebalance.delay.ms": 100})
        self.world.check_every = 25
        self.world.add_topic("third", 3)
        self.clients: list[Any] = [Consumer(f"n{n}", f"i{n}" if n % 2 else None) for n in range(5)]
        self.clients += [Classic(f"c{n}") for n in range(classics)]
        self.acknowledged, self.next_offset = -1, 0
        self.settled = 0

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
            self.check()
        self.world.fail_next = 0
        self.calm()

    def step(self) -> None:
        dice = self.chance.random()
        if dice < 0.02:
            self.world.crash()
            for client in self.clients:
                if isinstance(client, Classic):
                    client.ticket = 0
        elif dice < 0.05:
            self.world.fail_next = 7
        elif dice < 0.08:
            self.change_topics()
        elif dice < 0.25:
            self.world.after(self.chance.choice((1, 100, 1_000, 4_000, 20_000)))
        else:
            self.act(self.chance.choice(self.clients))

    def change_topics(self) -> None:
        name = self.chance.choice(("other", "third"))
        count = self.world.topics.partitions.get(name)
        if count is None:
            self.world.add_topic(name, self.chance.randint(1, 4))
        elif count < 6 and self.chance.random() < 0.6:
            self.world.add_topic(name, count + 1)
        else:
            self.world.drop_topic(name)
            for client in self.clients:
                client.owns = {part for part in client.owns if part[0] != name}
                if isinstance(client, Consumer):
                    client.told = {part for part in client.told if part[0] != name}

    def act(self, client: Any) -> None:
        dice = self.chance.random()
        if dice < 0.04:
            client.forget(reborn=True)  # its process died
        elif dice < 0.08:
            client.leave(self.world, pauses=dice < 0.06)
        elif dice < 0.12 and isinstance(client, Consumer):
            self.resubscribe(client)
        elif dice < 0.3 and client.is_in:
            self.commit(client)
        else:
            client.beat(self.world, lost=dice > 0.95)

    def resubscribe(self, client: Consumer) -> None:
        client.whole = True
        client.topics = tuple(self.chance.sample(TOPICS, self.chance.randint(1, 3)))
        client.regex = self.chance.choice((None, None, "o.*", "o.*|third"))
        if client.is_in and client.regex is None:
            self.world.hb(client.member_id, client.epoch, *client.topics, regex="", instance=client.instance)

    def commit(self, client: Any) -> None:
        parts = [part for part in client.owns if part[0] == "orders"]
        if not parts or ("orders", 0) not in parts:
            return
        self.next_offset += 1
        epoch = client.epoch if isinstance(client, Consumer) else client.generation
        before = self.world.fetch()
        code = self.world.commit(self.next_offset, client.member_id, epoch)
        if code == 0:
            self.acknowledged = self.next_offset
            group = self.world.group.consumer
            if group is not None:
                holder = group.owners.get((self.world.topics.ids["orders"], 0))
                assert holder == client.member_id, "one committed who does not hold the partition"
        assert self.world.fetch() == (self.next_offset if code == 0 else before)

    def check(self) -> None:
        group = self.world.group
        assert self.world.fetch() >= self.acknowledged
        if group is None or group.consumer is None:
            return
        self.settled += group.consumer.state.value == "Stable"
        believed: list[Part] = []
        for client in self.clients:
            member = group.consumer.members.get(client.member_id)
            epoch = client.epoch if isinstance(client, Consumer) else client.generation
            if member is not None and client.is_in and member.epoch == epoch:
                believed += client.owns
        assert len(believed) == len(set(believed)), "two members read one partition"

    def calm(self) -> None:
        """Left alone, those who stay share all that they subscribe to."""
        staying = self.clients[:3] + self.clients[5:]
        for client in self.clients[3:5]:
            client.forget(reborn=True)
        for _ in range(140):
            self.world.after(1_000)
            for client in staying:
                client.beat(self.world, lost=False)
            self.check()
        group = self.world.group
        assert group.consumer is not None, "consumers are in"
        assert self.world.state == "Stable"
        assert set(group.consumer.members) == {client.member_id for client in staying}
        read = sorted(part for client in staying for part in client.owns)
        wanted = sorted(
            (topic, number)
            for topic, count in self.world.topics.partitions.items()
            if group.consumer.reads(topic)
            for number in range(count)
        )
        assert read == wanted
        assert not self.world.parked


@pytest.mark.parametrize("seed", SEEDS)
def test_history_by_the_consumer_protocol(make_world: Any, seed: int) -> None:
    history = History(make_world, seed, classics=0)
    history.run()
    assert history.settled, "nothing happened"


@pytest.mark.parametrize("seed", SEEDS)
def test_history_by_both_protocols(make_world: Any, seed: int) -> None:
    History(make_world, seed + 1_000, classics=3).run()


def test_a_history_is_its_seed(make_world: Any) -> None:
    first, second = (History(make_world, 3, classics=2) for _ in range(2))
    first.run()
    second.run()
    assert [(r.key, r.value) for r in first.world.log] == [(r.key, r.value) for r in second.world.log]
