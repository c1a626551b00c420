"""Random histories of one group from a seed: members that come, work, stall and crash, appends that fail, restarts.

The host checks after every event that what is durable is what the log folds to. Here, besides: an assignment that
anyone is told was handed in by the leader of that very generation, so no part has two owners; and what was
acknowledged as committed is read back, and nothing older.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from attrs import define, field

from logkernel.requests.groups import JoinGroupResponse, SyncGroupResponse

SEEDS = range(24)
STEPS = 220
PARTS = 4


@define(eq=False)
class Client:
    """A consumer that does as the Java one does, but now and then stalls or dies."""

    name: str
    instance: str | None
    member_id: str = ""
    generation: int = -1
    ticket: int = 0
    assignment: bytes | None = None
    leads: list[str] = field(factory=list)

    def forget(self) -> None:
        self.member_id, self.generation, self.ticket, self.assignment = "", -1, 0, None


class History:
    def __init__(self, make_world: Any, seed: int) -> None:
        self.chance = random.Random(seed)
        settings = {"group.initial.rebalance.delay.ms": self.chance.choice((0, 500)), "group.max.size": 4}
        self.world = make_world(settings)
        self.clients = [Client(f"c{n}", f"i{n}" if n % 2 else None) for n in range(5)]
        self.handed_in: dict[tuple[int, str], set[bytes]] = {}
        """(generation, member id) → what leaders handed in for it."""
        self.acknowledged = -1
        self.next_offset = 0
        self.stable_rounds = 0

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
            self.hear()
        self.world.fail_next = 0
        self.calm()

    def step(self) -> None:
        dice = self.chance.random()
        if dice < 0.03:
            self.crash()
        elif dice < 0.08:
            self.world.fail_next = 19
        elif dice < 0.3:
            self.world.after(self.chance.choice((1, 50, 400, 2_500, 9_000)))
        else:
            self.act(self.chance.choice(self.clients))

    def crash(self) -> None:
        self.world.crash()
        for client in self.clients:
            client.ticket = 0

    def act(self, client: Client) -> None:
        if self.chance.random() < 0.05:
            client.forget()  # its process died; its requests go on waiting
        elif client.ticket:
            return
        elif client.generation < 0:
            client.ticket = self.world.join(client.member_id, instance=client.instance, rebalance_ms=8_000)
        elif client.assignment is None:
            client.ticket = self.sync(client)
        elif self.chance.random() < 0.1:
            self.world.leave(client.member_id, client.instance)
            client.forget()
        elif self.chance.random() < 0.5:
            self.commit(client)
        else:
            self.settle(client, self.world.beat(client.member_id, client.generation, client.instance))

    def sync(self, client: Client) -> int:
        parts: dict[str, bytes] = {}
        if client.leads:
            for number, who in enumerate(client.leads):
                mine = [str(part) for part in range(PARTS) if part % len(client.leads) == number]
                parts[who] = f"{client.member_id}@{client.generation}:{','.join(mine)}".encode()
                self.handed_in.setdefault((client.generation, who), set()).add(parts[who])
        return int(self.world.sync(client.member_id, client.generation, parts, client.instance))

    def commit(self, client: Client) -> None:
        self.next_offset += 1
        before = self.world.fetch()
        assert before >= self.acknowledged
        code = self.world.commit(self.next_offset, client.member_id, client.generation)
        if code == 0:
            self.acknowledged = self.next_offset
        after = self.world.fetch()
        assert after == (self.next_offset if code == 0 else before)
        if code in (22, 25, 82):
            client.forget()

    def hear(self) -> None:
        """Clients read what has come for them; answers to the dead are not read."""
        for client in self.clients:
            answer = self.world.answers.pop(client.ticket, None)
            if answer is None:
                continue
            client.ticket = 0
            if isinstance(answer, JoinGroupResponse):
                self.joined(client, answer)
            elif isinstance(answer, SyncGroupResponse):
                self.synced(client, answer)

    def joined(self, client: Client, answer: JoinGroupResponse) -> None:
        if answer.error_code == 79:
            client.member_id = answer.member_id
        elif answer.error_code:
            self.settle(client, answer.error_code)
        else:
            client.member_id, client.generation, client.assignment = answer.member_id, answer.generation_id, None
            client.leads = [] if answer.skip_assignment else [row.member_id for row in answer.members]
            assert bool(answer.members) == (answer.leader == answer.member_id)

    def synced(self, client: Client, answer: SyncGroupResponse) -> None:
        if answer.error_code:
            self.settle(client, answer.error_code)
            return
        client.assignment = answer.assignment
        group = self.world.group
        if not answer.assignment or group.generation != client.generation:
            return
        handed = set().union(*self.handed_in.values())
        assert answer.assignment in handed, "nobody handed that in"
        self.check_owners(client.generation)
        self.stable_rounds += 1

    def check_owners(self, generation: int) -> None:
        """What the members of this generation hold comes from one leader, and no part has two owners."""
        held = [member.assignment for member in self.world.group.members.values() if member.assignment]
        assert len({one.split(b":")[0] for one in held}) <= 1
        parts = [part for one in held for part in one.split(b":")[1].split(b",") if part]
        assert len(parts) == len(set(parts))
        if held:
            assert held[0].split(b":")[0].endswith(f"@{generation}".encode())

    def settle(self, client: Client, code: int) -> None:
        if code == 27:
            client.generation, client.assignment = -1, None
        elif code:
            client.forget()

    def calm(self) -> None:
        """Left alone, everybody who is not too many gets his part."""
        self.hear()
        for client in self.clients[2:]:
            client.forget()
        two = self.clients[:2]
        for _ in range(400):
            self.world.after(500)
            self.hear()
            for client in two:
                if client.ticket == 0 and (client.assignment is None or client.generation < 0):
                    self.act_calmly(client)
                elif client.ticket == 0:
                    self.settle(client, self.world.beat(client.member_id, client.generation, client.instance))
            self.hear()
        assert self.world.state == "Stable"
        assert {client.member_id for client in two} == set(self.world.group.members)
        assert all(client.assignment for client in two)
        assert self.world.fetch() >= self.acknowledged
        assert not self.world.parked

    def act_calmly(self, client: Client) -> None:
        if client.generation < 0:
            client.ticket = self.world.join(client.member_id, instance=client.instance, rebalance_ms=8_000)
        else:
            client.ticket = self.sync(client)


@pytest.mark.parametrize("seed", SEEDS)
def test_history_by_the_classic_protocol(make_world: Any, seed: int) -> None:
    history = History(make_world, seed)
    history.run()
    assert history.stable_rounds, "nothing happened"


def test_a_history_is_its_seed(make_world: Any) -> None:
    first, second = History(make_world, 3), History(make_world, 3)
    first.run()
    second.run()
    assert [(r.key, r.value) for r in first.world.log] == [(r.key, r.value) for r in second.world.log]
