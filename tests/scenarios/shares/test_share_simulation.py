"""Members, locks, crashes and operators in random order, from a seed; what must hold whatever happens:

- a record is held by one member at a time;
- what was accepted or rejected, and answered, is never delivered again, also after a crash, unless offsets were
  altered;
- no record is delivered more often than the limit says;
- the start offset never goes back, unless offsets were altered.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

LIMIT = 3
LOCK_MS = 1000
MEMBERS = ("a", "b", "c")


class Model:
    """What the clients believe, and whether the broker keeps to it."""

    def __init__(self, world: Any, seed: int) -> None:
        self.world = world
        self.chance = random.Random(seed)
        self.holders: dict[int, tuple[str, int]] = {}
        """Offset → member, and when its lock times out."""
        self.done: set[int] = set()
        self.parked: list[tuple[str, Any]] = []
        self.start = 0
        self.end = 0
        self.delivered = 0
        world.join("a")

    def took(self, member: str, response: Any) -> None:
        now_ms = self.world.clock.now_ms
        for topic in response.responses:
            for row in topic.partitions:
                for one in row.acquired_records:
                    assert 1 <= one.delivery_count <= LIMIT
                    for offset in range(one.first_offset, one.last_offset + 1):
                        assert offset not in self.done, f"{offset} was done with"
                        holder, due_ms = self.holders.get(offset, ("", 0))
                        assert not holder or due_ms <= now_ms, f"{offset} is held by {holder} until {due_ms}"
                        assert self.start <= offset < self.end
                        self.holders[offset] = (member, now_ms + LOCK_MS)
                        self.delivered += 1

    def look(self) -> None:
        """What came of parked fetches; where the start is."""
        for entry in [entry for entry in self.parked if entry[1].response is not None]:
            self.parked.remove(entry)
            self.took(entry[0], entry[1].response)
        start, lag = self.world.offsets()
        assert start == -1 or self.start <= start <= self.end
        self.start = max(self.start, start)
        assert lag == -1 or 0 <= lag <= self.end - max(start, 0)

    # ------------------------------------------------------------ steps

    def produce(self) -> None:
        count = self.chance.randint(1, 4)
        self.world.produce(count)
        self.end += count

    def fetch(self) -> None:
        member = self.chance.choice(MEMBERS)
        if any(name == member for name, _ in self.parked):
            return
        if member not in self.world.epochs:
            self.free(member)
        wait_ms = self.chance.choice((0, 0, 300))
        waiting = self.world.fetching(
            member, wait_ms=wait_ms, max_records=self.chance.randint(1, 6), mode=self.chance.randint(0, 1)
        )
        self.parked.append((member, waiting))

    def word(self) -> None:
        member = self.chance.choice(MEMBERS)
        mine = sorted(offset for offset, (name, _) in self.holders.items() if name == member)
        if not mine or member not in self.world.epochs:
            return
        first = last = self.chance.choice(mine)
        while last + 1 in mine and self.chance.random() < 0.6:
            last += 1
        word = self.chance.choice(("accept", "accept", "release", "reject"))
        got = self.world.ack(member, f"{first}-{last} {word}")
        due = min(self.holders[offset][1] for offset in range(first, last + 1))
        if got:
            assert got == "!121"
            assert due <= self.world.clock.now_ms, "a word on records that are held was refused"
            return
        for offset in range(first, last + 1):
            del self.holders[offset]
            if word != "release":
                self.done.add(offset)

    def free(self, member: str) -> None:
        self.holders = {offset: one for offset, one in self.holders.items() if one[0] != member}

    def close(self) -> None:
        member = self.chance.choice(MEMBERS)
        if member in self.world.epochs:
            self.free(member)
            assert self.world.ack(member, "", epoch=-1) == ""
            del self.world.epochs[member]

    def disconnect(self) -> None:
        member = self.chance.choice(MEMBERS)
        self.look()
        self.free(member)
        self.world.disconnect(member)
        self.world.epochs.pop(member, None)

    def wait(self) -> None:
        self.world.wait(self.chance.choice((50, 400, 1000)))

    def crash(self) -> None:
        self.look()
        self.world.crash()
        self.parked.clear()
        self.holders.clear()

    def alter(self) -> None:
        self.look()
        self.world.beat("a", -1)
        offset = self.chance.randint(0, self.end)
        self.holders.clear()
        assert self.world.alter(offset) == 0
        self.world.epochs.clear()
        self.parked = [entry for entry in self.parked if entry[1].response is None]
        assert not self.parked, "whoever waited was answered"
        self.done = {done for done in self.done if done < offset}
        self.start = offset
        self.world.join("a")

    def step(self) -> None:
        steps = (
            (self.produce, 20), (self.fetch, 35), (self.word, 35), (self.wait, 12), (self.close, 4),
            (self.disconnect, 3),
            (self.crash, 2), (self.alter, 1),
        )  # fmt: skip
        (chosen,) = self.chance.choices([step for step, _ in steps], [weight for _, weight in steps])
        chosen()
        self.look()


@pytest.mark.parametrize("seed", range(8))
def test_what_must_hold(worlds: Any, seed: int) -> None:
    world = worlds("group.share.delivery.count.limit=3", "share.coordinator.snapshot.update.records.per.snapshot=5")
    model = Model(world, seed)
    for _ in range(150):
        model.step()
    assert model.delivered > 50, "too little happened for anything to be proved"
