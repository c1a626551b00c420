"""What an administrator does in a simulated world: topics come, change, move and go while everybody works."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from logkernel.client.admin.aio_client import AsyncAdmin
from logkernel.client.admin.configs import ConfigResource
from logkernel.client.admin.topics import NewTopic
from logkernel.errors import LogkernelError, TopicAlreadyExists
from logkernel.testing.simulation.world.clients import Clients
from logkernel.testing.simulation.world.schedule import Shape
from logkernel.testing.simulation.world.stage import Stage

PATIENCE_MS: Final = 20_000
RETENTION_MS: Final = 1_200


class Chores:
    def __init__(self, stage: Stage, clients: Clients, shape: Shape, settings: Mapping[str, str]) -> None:
        """`settings` are those of all topics."""
        self.stage = stage
        self.clients = clients
        self.shape = shape
        self.settings = settings
        self._ways: Mapping[str, Callable[[AsyncAdmin], Coroutine[Any, Any, None]]] = {
            "churn": self._churn,
            "alter": self._alter,
            "reassign": self._reassign,
            "trim": self._trim,
            "elect": self._elect,
            "grow": self._grow,
        }

    def topics(self) -> dict[str, tuple[int, dict[str, str]]]:
        """Topic → its partitions and settings, of this shape."""
        shape, count = self.shape, self.shape.partitions
        common = {"segment.ms": str(shape.segment_ms), "min.insync.replicas": str(shape.min_isr)}
        if shape.flush_messages is not None:
            common["flush.messages"] = str(shape.flush_messages)
        common |= self.settings
        found = {"plain": (count, {**({"election": "unclean"} if shape.unclean else {}), **common})}
        if "transactional" in shape.writers or shape.copies:
            found["txn"] = (count, common)
        if shape.copies:
            found["copy"] = (2, common)
        if "compact" in shape.chores:
            lazy = {"min.cleanable.dirty.ratio": "0.01", "segment.ms": "200", "min.compaction.lag.ms": "0"}
            found["compact"] = (1, {**common, **lazy, "cleanup.policy": "compact"})
        if "expire" in shape.chores:
            found["short"] = (1, {**common, "retention.ms": str(RETENTION_MS), "segment.ms": "300"})
        if "churn" in shape.chores:
            found["churn"] = (1, common)
        return found

    async def create_topics(self) -> None:
        """All topics of the shape, tried until they are there."""
        history = self.clients.history
        for name, (count, settings) in self.topics().items():
            history.topic(name, compacts=name == "compact", expires=name == "short")
            await self._create(name, count, settings)
            self.clients.partitions[name] = count

    async def _create(self, name: str, count: int, settings: Mapping[str, str]) -> None:
        factor = min(3, self.shape.brokers)
        until_ms = self.stage.now_ms + PATIENCE_MS
        while self.stage.now_ms < until_ms:
            admin = self.clients.admin()
            try:
                await admin.create_topics(NewTopic(name, count, factor, settings))
                return
            except TopicAlreadyExists:
                return
            except LogkernelError as error:
                self.stage.note(f"create {name}: {type(error).__name__}: {error}")
                await self.clients.think()
            finally:
                await self.clients.close(admin)
        self.stage.fail(f"topic {name} cannot be created")

    async def go_on(self) -> None:
        """One chore after another, until the clients are over."""
        chores = [chore for chore in self.shape.chores if chore in self._ways]
        while chores and not self.clients.over and not self.stage.healing:
            chore = self.stage.random.choice(chores)
            admin = self.clients.admin()
            try:
                self.stage.note(f"admin: {chore}")
                await self._ways[chore](admin)
                self.stage.rare[f"chore {chore}"] += 1
            except LogkernelError as error:
                self.stage.note(f"admin: {chore}: {type(error).__name__}: {error}")
            finally:
                await self.clients.close(admin)
            for _ in range(5):
                await self.clients.think()

    # ------------------------------------------------------------ chores

    async def _churn(self, admin: AsyncAdmin) -> None:
        history = self.clients.history
        call = history.call("delete_topic", "admin", topic="churn")
        with contextlib.suppress(LogkernelError):  # whatever came of it,
            await admin.delete_topics(["churn"])
        history.unknown(call)
        await self._create("churn", *self.topics()["churn"])

    async def _alter(self, admin: AsyncAdmin) -> None:
        wanted = self.stage.random.choice(
            (
                {"segment.ms": self.stage.random.choice(("50", "5000"))},
                {"min.insync.replicas": str(self.stage.random.randint(1, 2))},
                {"flush.messages": self.stage.random.choice(("1", "10", None))},
                {"max.message.bytes": self.stage.random.choice(("200000", None))},
            )
        )
        await admin.alter_configs({ConfigResource("topic", "plain"): wanted})

    async def _reassign(self, admin: AsyncAdmin) -> None:
        partition = self.stage.random.randrange(self.clients.partitions["plain"])
        nodes = list(range(1, self.shape.brokers + 1))
        replicas = self.stage.random.sample(nodes, self.stage.random.randint(min(2, len(nodes)), min(3, len(nodes))))
        wanted = None if self.stage.random.random() < 0.2 else replicas
        await admin.alter_partition_reassignments({("plain", partition): wanted})

    async def _trim(self, admin: AsyncAdmin) -> None:
        place = ("plain", self.stage.random.randrange(self.clients.partitions["plain"]))
        before = self.stage.random.randint(0, self.clients.acknowledged_to.get(place, 0))
        history = self.clients.history
        call = history.call("delete_records", "admin", topic=place[0], partition=place[1], before=before)
        await admin.delete_records({place: before})
        history.ok(call)

    async def _elect(self, admin: AsyncAdmin) -> None:
        await admin.elect_leaders()

    async def _grow(self, admin: AsyncAdmin) -> None:
        count = self.clients.partitions["plain"]
        if count < 4:
            await admin.create_partitions({"plain": count + 1})
            self.clients.partitions["plain"] = count + 1
