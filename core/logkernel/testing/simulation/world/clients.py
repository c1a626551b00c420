"""Those who use a simulated world: our asyncio clients, each told what to do by a coroutine, and a history of it all.

| kind | what it does |
|---|---|
| plain | sends without sequences, or several batches at once: these may come twice |
| once | sends with an idempotent producer, one batch after another: of more, a broker that was started again knows
  only the last (Kafka's snapshots hold no more), and a batch may come twice |
| transactional | sends in transactions, and aborts some of them |
| copy | copies a topic exactly once: consume, send, and commit the offsets in one transaction |
| all, committed | reads all partitions of a topic, committed records only, or all |
| classic, consumer | members of a group of that protocol; they commit, leave, and come back |
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from logkernel.client.admin.aio_client import AsyncAdmin
from logkernel.client.consumer.aio_consumer import AsyncConsumer
from logkernel.client.drivers.loop_driver import AsyncEmbeddedDriver
from logkernel.client.factory import ClientFactory
from logkernel.client.producer.aio_producer import AsyncProducer
from logkernel.client.vocabulary import RebalanceListener
from logkernel.errors import LogkernelError
from logkernel.kernel import Kernel
from logkernel.testing.history import History
from logkernel.testing.simulation.world.clients_network import ClientsNetwork
from logkernel.testing.simulation.world.schedule import Shape
from logkernel.testing.simulation.world.stage import Stage
from logkernel.vocabulary import TopicPartition

COMMON: Final[dict[str, Any]] = {
    "request_timeout_ms": 800, "retry_backoff_ms": 20, "retry_backoff_max_ms": 200, "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 100, "metadata_max_age_ms": 1_000, "socket_connection_setup_timeout_ms": 300,
}  # fmt: skip
PRODUCER: Final[dict[str, Any]] = {**COMMON, "delivery_timeout_ms": 3_000, "max_block_ms": 2_000, "linger_ms": 2}
CONSUMER: Final[dict[str, Any]] = {
    **COMMON, "auto_offset_reset": "earliest", "default_api_timeout_ms": 2_000, "fetch_max_wait_ms": 100,
    "enable_auto_commit": False, "max_poll_records": 20,
}  # fmt: skip
CLASSIC: Final[dict[str, Any]] = {
    "session_timeout_ms": 1_000,
    "heartbeat_interval_ms": 150,
    "max_poll_interval_ms": 3_000,
}
CLOSE_S: Final = 0.5
Way = Callable[[str], Coroutine[Any, Any, None]]
"""One life of a client of that name."""
COMMITTED: Final = "read_committed"


class Clients:
    """Makes clients, runs what they do, and writes the history."""

    def __init__(self, stage: Stage, network: ClientsNetwork, kernel: Kernel, shape: Shape) -> None:
        self.stage = stage
        self.network = network
        self.shape = shape
        self.history = History()
        self.partitions: Counter[str] = Counter()
        """Topic → how many partitions it has, as created here."""
        self.acknowledged: Counter[str] = Counter()
        """Writer → its sends, or transactions, that came through."""
        self.read_to: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
        """Reader → how far it is."""
        self.acknowledged_to: dict[tuple[str, int], int] = {}
        self.over = False
        self._factory = ClientFactory(kernel)
        self._open: list[Any] = []
        self._names: Counter[str] = Counter()
        self._running: list[asyncio.Task[None]] = []

    # ------------------------------------------------------------ clients

    def _driver(self, machine: Any, values: Mapping[str, Any]) -> AsyncEmbeddedDriver:
        return AsyncEmbeddedDriver(machine, values, self.network.host(), _at_once)

    def _opened(self, client: Any) -> Any:
        self._open = [known for known in self._open if not known.closed] + [client]
        return client

    def producer(self, name: str, **settings: Any) -> AsyncProducer:
        given = {**PRODUCER, "client_id": name, **settings}
        return self._opened(self._factory.producer(AsyncProducer, self._driver, given))  # type: ignore[no-any-return]

    def consumer(self, name: str, group: str | None = None, **settings: Any) -> AsyncConsumer:
        given = {**CONSUMER, "client_id": name, **settings}
        made = self._factory.consumer(AsyncConsumer, self._driver, (), group, given)
        return self._opened(made)  # type: ignore[no-any-return]

    def admin(self) -> AsyncAdmin:
        given = {**COMMON, "default_api_timeout_ms": 1_500, "client_id": "admin"}
        return self._opened(self._factory.admin(AsyncAdmin, self._driver, given))  # type: ignore[no-any-return]

    def name(self, kind: str) -> str:
        """Each life of a client has a name of its own."""
        self._names[kind] += 1
        return f"{kind}.{self._names[kind]}"

    async def close(self, client: Any) -> None:
        """Whatever becomes of it."""
        try:
            if isinstance(client, AsyncAdmin):
                await client.close()
            else:
                await client.close(CLOSE_S)
        except LogkernelError as error:
            self.stage.note(f"close: {type(error).__name__}")

    async def close_all(self) -> None:
        for client in self._open:
            if not client.closed:
                await self.close(client)
        self._open.clear()

    # ------------------------------------------------------------ running

    def begin(self) -> None:
        """Have all clients of the shape do what they do."""
        work: list[tuple[str, Way]] = []
        for number, kind in enumerate(self.shape.writers):
            way: Way = self.transactional if kind == "transactional" else self.sender
            work.append((f"{kind}-{number}", way))
        for number, kind in enumerate(self.shape.readers):
            if kind in ("all", "committed"):
                work.append((f"{kind}-{number}", self.reader))
            else:
                work += [(f"{kind}-{number}{member}", self.member) for member in "ab"]
        if self.shape.copies:
            work.append(("copy-0", self.copier))
        for name, way in work:
            self._running.append(self.stage.spawn(self._go_on(name, way)))

    async def _go_on(self, name: str, way: Way) -> None:
        """One life of a client after another."""
        while not self.over:
            try:
                await way(name)
            except LogkernelError as error:
                self.stage.note(f"{name} begins again: {type(error).__name__}: {error}")
                self.stage.rare[f"another life of {name.partition('-')[0]}"] += 1
            await self.think()

    async def end(self) -> None:
        self.over = True
        for task in self._running:
            await task

    async def think(self) -> None:
        await asyncio.sleep(self.stage.random.random() * self.shape.think_ms / 1000)

    @property
    def writers(self) -> list[str]:
        return [f"{kind}-{number}" for number, kind in enumerate(self.shape.writers)]

    # ------------------------------------------------------------ those who write

    def _place(self, topics: Sequence[str]) -> tuple[str, int]:
        topic = self.stage.random.choice(topics)
        return topic, self.stage.random.randrange(self.partitions[topic])

    async def sender(self, name: str) -> None:
        kind, client = name.partition("-")[0], self.name(name)
        acks = "all" if kind == "once" else self.stage.random.choice(("all", "1"))
        flight = 1 if kind == "once" else 5
        producer = self.producer(
            client, enable_idempotence=self.stage.random.random() < 0.5 or kind == "once", acks=acks,
            max_in_flight_requests_per_connection=flight,
        )  # fmt: skip
        topics = [topic for topic in ("plain", "plain", "compact", "short", "churn") if topic in self.partitions]
        number = 0
        try:
            while not self.over:
                await self.think()
                for _ in range(self.stage.random.randint(1, 4)):
                    number += 1
                    await self._send(producer, client, name, f"{client}:{number}", self._place(topics), acks, kind)
        finally:
            await self.close(producer)

    async def _send(
        self, producer: AsyncProducer, client: str, writer: str, value: str, place: tuple[str, int], acks: str,
        kind: str, txn: int | None = None,
    ) -> None:  # fmt: skip
        key = None
        if place[0] == "compact":
            key = f"k{self.stage.random.randrange(4)}"
        call = self.history.call(
            "send", client, topic=place[0], partition=place[1], value=value, key=key, acks=acks, once=kind != "plain",
            txn=txn,
        )  # fmt: skip

        def delivered(metadata: Any, error: Exception | None) -> None:
            if error is not None:
                self.history.unknown(call, type(error).__name__)
                self.stage.note(f"{client} {value}: {type(error).__name__}")
                return
            self.history.ok(call, offset=metadata.offset)
            self.stage.note(f"{client} {value} lies at {place[0]}-{place[1]}@{metadata.offset}")
            self.acknowledged_to[place] = max(self.acknowledged_to.get(place, 0), metadata.offset + 1)
            if txn is None:
                self.acknowledged[writer] += 1

        data = value.encode()
        await producer.send(
            place[0], data, key=None if key is None else key.encode(), partition=place[1], on_delivery=delivered
        )

    async def transactional(self, name: str) -> None:
        client = self.name(name)
        producer = self.producer(client, transactional_id=name, transaction_timeout_ms=2_000)
        number = 0
        try:
            await producer.init_transactions()
            while not self.over:
                await self.think()
                producer.begin_transaction()
                txn = self._begun(client)
                for _ in range(self.stage.random.randint(1, 4)):
                    number += 1
                    value = f"{client}:{number}"
                    await self._send(producer, client, name, value, self._place(["txn"]), "all", "once", txn)
                commit = self.stage.random.random() < 0.7
                if not commit and self.stage.random.random() < 0.8:
                    await producer.flush(1.0)  # an abort leaves out what was not sent yet
                await self._end(producer, client, name, txn, commit=commit)
        finally:
            await self.close(producer)

    def _begun(self, client: str) -> int:
        txn = self.history.call("begin", client)
        self.history.ok(txn)
        return txn

    async def _end(
        self, producer: AsyncProducer, client: str, writer: str, txn: int, *, commit: bool, **offsets: Any
    ) -> None:
        call = self.history.call("end", client, txn=txn, commit=commit, **offsets)
        try:
            await (producer.commit_transaction() if commit else producer.abort_transaction())
        except LogkernelError as error:
            self.history.unknown(call, type(error).__name__)
            raise
        self.history.ok(call)
        self.stage.note(f"{client} {'commits' if commit else 'aborts'} {txn}")
        if commit:
            self.acknowledged[writer] += 1

    async def copier(self, name: str) -> None:
        client = self.name(name)
        consumer = self.consumer(client, "copiers", isolation_level=COMMITTED, **CLASSIC)
        producer = self.producer(client, transactional_id=name, transaction_timeout_ms=2_000)
        try:
            await producer.init_transactions()
            consumer.subscribe(["txn"], _Listener(self, client, "copiers"))
            while not self.over:
                records = await self._poll(consumer, client, name, "copiers", COMMITTED)
                if not records:
                    await self.think()
                    continue
                producer.begin_transaction()
                txn, ends = self._begun(client), {}
                for record in records:
                    place = ("copy", record.partition % self.partitions["copy"])
                    value = f"copy of {record.value.decode()}"
                    await self._send(producer, client, name, value, place, "all", "once", txn)
                    ends[record.topic, record.partition] = record.offset + 1
                await producer.send_offsets_to_transaction(ends, consumer.group_metadata())
                rows = [[*place, offset] for place, offset in ends.items()]
                await self._end(producer, client, name, txn, commit=True, group="copiers", offsets=rows)
        finally:
            await self.close(producer)
            await self.close(consumer)

    # ------------------------------------------------------------ those who read

    async def _poll(
        self, consumer: AsyncConsumer, client: str, reader: str, group: str | None, isolation: str
    ) -> list[Any]:
        records = await consumer.poll(0.1)
        if records:
            rows = [[record.topic, record.partition, record.offset, record.value.decode()] for record in records]
            call = self.history.call("poll", client, group=group, isolation=isolation)
            self.history.ok(call, records=rows)
            last = records[-1]
            self.stage.note(f"{client} reads {len(rows)}, to {last.topic}-{last.partition}@{last.offset}")
            for record in records:
                self.read_to[reader][record.topic, record.partition] = record.offset + 1
        return records

    def assigned(self, client: str, group: str | None, partitions: Sequence[tuple[str, int]]) -> None:
        call = self.history.call("assign", client, group=group, partitions=[list(name) for name in sorted(partitions)])
        self.history.ok(call)

    async def reader(self, name: str) -> None:
        client = self.name(name)
        isolation = COMMITTED if name.startswith("committed") else "read_uncommitted"
        consumer = self.consumer(client, isolation_level=isolation)
        topic = "txn" if "txn" in self.partitions and self.stage.random.random() < 0.7 else "plain"
        places = [TopicPartition(topic, number) for number in range(self.partitions[topic])]
        self.assigned(client, None, places)
        consumer.assign(places)
        try:
            while not self.over:
                await self._poll(consumer, client, name, None, isolation)
        finally:
            await self.close(consumer)

    async def member(self, name: str) -> None:
        client, group = self.name(name), name[:-1]
        kind = name.partition("-")[0]
        settings = CLASSIC if kind == "classic" else {"group_protocol": "consumer"}
        consumer = self.consumer(client, group, **settings)
        listener = _Listener(self, client, group)
        consumer.subscribe(["plain"], listener)
        polls = self.stage.random.choice((5, 20, 1_000))
        try:
            while not self.over and polls:
                records = await self._poll(consumer, client, group, group, "read_uncommitted")
                polls -= 1 if records else 0
                if records and self.stage.random.random() < 0.5:
                    await self._commit(consumer, client, group, listener)
        finally:
            await self.close(consumer)

    async def _commit(self, consumer: AsyncConsumer, client: str, group: str, listener: _Listener) -> None:
        ends: dict[tuple[str, int], Any] = {name: await consumer.position(name) for name in sorted(listener.held)}
        if not ends:
            return
        call = self.history.call("commit", client, group=group, offsets=[[*name, ends[name]] for name in ends])
        try:
            await consumer.commit(ends, 1.0)
        except LogkernelError as error:
            self.history.unknown(call, type(error).__name__)
            self.stage.note(f"{client} commit: {type(error).__name__}")
        else:
            self.history.ok(call)

    async def read_whole(self, topic: str, partition: int, isolation: str) -> None:
        """Read a partition from its start to its end, when everything is over."""
        client, place = self.name("end"), TopicPartition(topic, partition)
        consumer = self.consumer(client, isolation_level=isolation)
        rows: list[list[Any]] = []
        call = self.history.call("read", client, topic=topic, partition=partition, isolation=isolation)
        try:
            consumer.assign([place])
            end = (await consumer.end_offsets([place]))[place]
            while await consumer.position(place) < end:
                for record in await consumer.poll(0.1):
                    rows.append([topic, partition, record.offset, record.value.decode()])
            start = (await consumer.beginning_offsets([place]))[place]  # old records may have gone meanwhile
        finally:
            await self.close(consumer)
        self.history.ok(call, start=start, end=end, records=rows)


class _Listener(RebalanceListener):
    """Tells the history what a member of a group has."""

    def __init__(self, clients: Clients, client: str, group: str) -> None:
        self._clients = clients
        self._client = client
        self._group = group
        self.held: set[TopicPartition] = set()

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self.held.update(partitions)
        self._tell()

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.held.difference_update(partitions)
        self._tell()

    def _tell(self) -> None:
        self._clients.stage.note(f"{self._client} holds {sorted(self.held)}")
        self._clients.assigned(self._client, self._group, sorted(self.held))


async def _at_once(work: Callable[[], Any]) -> Any:
    """What others do in a worker thread."""
    return work()
