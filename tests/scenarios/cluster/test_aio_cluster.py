"""The asyncio twin of a cluster does what the other does."""

from __future__ import annotations

import asyncio

from logkernel import aio


def test_a_leader_dies_and_its_records_live() -> None:
    async def run() -> list[bytes | None]:
        async with await aio.open_cluster(brokers=3) as cluster:
            await cluster.create_topic("orders", 1, 3)
            await cluster.wait_for_isr("orders", 0, 3)
            async with cluster.producer(acks="all") as producer:
                await (await producer.send("orders", b"before"))
                leader = await cluster.leader("orders")
                assert leader is not None
                await cluster.kill(leader)
                assert cluster.brokers[leader] == "killed"
                assert await cluster.wait_for_leader("orders", other_than=leader) != leader
                await (await producer.send("orders", b"after"))
            found: list[bytes | None] = []
            async with cluster.consumer("orders", auto_offset_reset="earliest") as consumer:
                for _ in range(100):
                    found += [record.value for record in await consumer.poll(0.1)]
                    if len(found) == 2:
                        break
            return found

    assert asyncio.run(run()) == [b"before", b"after"]


def test_a_leader_moves_and_all_is_as_it_was_saved() -> None:
    async def run() -> list[object]:
        async with await aio.open_cluster(brokers=2) as cluster:
            await cluster.create_topic("orders", assignment={0: [1, 2]})
            await cluster.wait_for_isr("orders", 0, 2)
            saved = await cluster.save()
            moved = await cluster.move_leader("orders")
            await cluster.create_topic("more", 3)
            before = await cluster.topics()
            await cluster.restore(saved)
            return [moved, before, await cluster.topics(), await cluster.leader("orders")]

    assert asyncio.run(run()) == [2, {"more": 3, "orders": 1}, {"orders": 1}, 1]
