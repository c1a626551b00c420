"""Random histories of producers from a seed: successors, zombies, retries, timeouts, appends that fail, crashes.

The host checks after every event that the machine is what its log folds to, and that whatever was decided is on its
way. Here, besides, for each transaction that a producer has begun: all its writes have one fate, which is the one that
its producer was told; none stays open; no id and epoch is given to two producers; and who is fenced changes nothing.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from attrs import define, field

from logkernel.plugins.services.transactions.state import COMPLETE, State
from logkernel.requests.producers import InitProducerIdRequest, InitProducerIdResponse
from logkernel.requests.transactions import AddPartitionsToTxnResponse, EndTxnRequest, EndTxnResponse
from logkernel.vocabulary import TopicPartition

SEEDS = range(24)
STEPS = 260
NAMES = ("a", "b", "c")
PARTITIONS = [TopicPartition("orders", number) for number in range(4)] + [TopicPartition("bills", 0)]
V1: frozenset[str] = frozenset()
V2 = frozenset({"transactions_v2"})
CONCURRENT, EPOCH, NOT_AVAILABLE = 51, 47, (15, 16)


@define(eq=False)
class Partition:
    """As much of a partition's producer state as markers meet."""

    epochs: dict[int, int] = field(factory=dict)
    open: dict[int, tuple[int, set[int]]] = field(factory=dict)
    """Producer id → (epoch, transactions whose writes are neither committed nor aborted)."""


@define(eq=False)
class Client:
    """A producer that does as Java's does, but now and then stalls, dies, or meets its successor."""

    number: int
    name: str
    v2: bool
    who: tuple[int, int] | None = None
    ticket: int = 0
    asked: tuple[str, Any] = ("", None)
    transaction: int = 0
    """The one that it has begun; 0 for none."""
    end: bool | None = None
    """How it wants it to end, until it hears that it did."""

    def die(self) -> None:
        self.who, self.ticket, self.transaction, self.end = None, 0, 0, None


class History:
    def __init__(self, make_world: Any, seed: int) -> None:
        self.chance = random.Random(seed)
        settings = {"transactional.id.expiration.ms": 200_000, "transaction.max.timeout.ms": 60_000}
        self.world = make_world(settings)
        self.world.cluster.level = self.chance.choice((0, 1, 2, 2))
        self.world.accept, self.world.heard = self.mark, self.hear
        newest = self.world.cluster.level == 2
        self.clients = [Client(number, NAMES[number % 3], newest and self.chance.random() < 0.7) for number in range(6)]
        self.partitions = {name: Partition() for name in PARTITIONS}
        self.fates: dict[int, bool] = {}
        """Transaction → how its writes ended."""
        self.told: dict[int, bool] = {}
        self.given: dict[tuple[int, int], int] = {}
        """(producer id, epoch) → the client that was told it."""
        self.owners: dict[tuple[int, int], int] = {}
        """(producer id, epoch) → the client that asked for it last, told or not."""
        self.count = 0
        self.seen: Counter[str] = Counter()

    # ------------------------------------------------------------ partitions

    def put(self, client: Client, name: TopicPartition) -> None:
        """A write in a transaction that the coordinator has confirmed."""
        assert client.who is not None
        producer_id, epoch = client.who
        partition = self.partitions[name]
        if epoch < partition.epochs.get(producer_id, -1):
            return
        at, transactions = partition.open.setdefault(producer_id, (epoch, set()))
        assert at == epoch, "the transaction before has not ended here"
        partition.epochs[producer_id] = epoch
        transactions.add(client.transaction)
        self.seen["write"] += 1

    def mark(self, marker: Any, name: TopicPartition) -> int:
        dice = self.chance.random()
        if dice < 0.1:
            return self.chance.choice((6, 7, 19, 56, 3))
        partition = self.partitions[name]
        epoch = partition.epochs.get(marker.producer_id, -1)
        opened = marker.producer_id in partition.open
        strict = opened and marker.transaction_version == 2
        if marker.producer_epoch < epoch or (strict and marker.producer_epoch == epoch):
            self.seen["late marker"] += 1
            return EPOCH
        partition.epochs[marker.producer_id] = marker.producer_epoch
        _, transactions = partition.open.pop(marker.producer_id, (0, set()))
        for transaction in transactions:
            assert self.fates.setdefault(transaction, marker.transaction_result) == marker.transaction_result
        return 19 if 0.1 <= dice < 0.15 else 0  # written, and nobody hears of it

    # ------------------------------------------------------------ what happens

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
        self.calm()

    def step(self) -> None:
        world, dice = self.world, self.chance.random()
        if dice < 0.03:
            self.crash()
        elif dice < 0.06 and world.under_way:
            keep = self.chance.randrange(3)
            world.fail(self.chance.choice((19, 7, 56)), keep, unseen=self.chance.random() < 0.5)
            self.seen["failed"] += 1
        elif dice < 0.1:
            world.fail_next = 19
        elif dice < 0.2:
            world.hold_commits = not world.hold_commits
            world.commit()
        elif dice < 0.27:
            world.hold_sends = not world.hold_sends
            world.release()
        elif dice < 0.35:
            world.commit(1)
        elif dice < 0.45:
            world.after(self.chance.choice((1, 150, 3_000, 11_000, 30_000)))
        elif dice < 0.452:
            world.after(300_000)
        else:
            self.act(self.chance.choice(self.clients))
        self.inherit()

    def inherit(self) -> None:
        """Whoever had the epoch before a transaction was taken from him may go on, until another is given the next."""
        for txn in self.world.machine.transactions.values():
            before = self.owners.get((txn.producer_id, txn.epoch - 1))
            if before is not None and txn.client_version >= 2 and (txn.is_ending or txn.state in COMPLETE):
                self.owners[txn.producer_id, txn.epoch] = before

    def crash(self) -> None:
        for client in self.clients:
            client.ticket = 0
        self.world.crash(self.world.committed + self.chance.randrange(4))
        self.seen["crash"] += 1

    def act(self, client: Client) -> None:
        dice = self.chance.random()
        if dice < 0.04:
            client.die()
        if client.ticket:
            return
        if client.who is None:
            self.ask(client, "init", None, InitProducerIdRequest(client.name, 30_000))
        elif client.end is not None:
            self.ask(client, "end", client.end, EndTxnRequest(client.name, *client.who, client.end))
        elif client.transaction == 0 and dice < 0.15:
            self.ask(client, "init", client.who, InitProducerIdRequest(client.name, 30_000, *client.who))
        elif (client.transaction and dice < 0.6) or (client.v2 and dice < 0.2):
            client.end = bool(client.transaction) and self.chance.random() < 0.6
            self.ask(client, "end", client.end, EndTxnRequest(client.name, *client.who, client.end))
        else:
            self.add(client)

    def add(self, client: Client) -> None:
        if not client.transaction:
            self.count += 1
            client.transaction = self.count
        name = self.chance.choice(PARTITIONS)
        request = self.world.adding(client.who, name, name=client.name)
        self.ask(client, "add", name, request, internal=client.v2)

    def ask(self, client: Client, what: str, about: Any, request: Any, *, internal: bool = False) -> None:
        client.asked = (what, about)
        client.ticket = self.world.tickets + 1
        before, failing = self.world.txn(client.name), self.world.fail_next
        self.world.send(request, V2 if client.v2 else V1, internal=internal)
        if not self.world.decided:
            return
        if before is not None and not (what == "init" and about is None):  # who asks for an id anew may fence others
            owner = self.owners.get((before.producer_id, before.epoch))
            assert owner == client.number, "somebody who is fenced changed something"
        if not failing:
            self.claim(client, what)

    def claim(self, client: Client, what: str) -> None:
        """What this client asked for is its own from now on, told or not."""
        txn = self.world.txn(client.name)
        if txn is None or what == "add" or (what == "init" and txn.state is not State.EMPTY):
            return
        self.owners[txn._successor if txn.is_ending else (txn.producer_id, txn.epoch)] = client.number

    # ------------------------------------------------------------ what is heard

    def hear(self, ticket: int, answer: Any) -> None:
        client = next((one for one in self.clients if one.ticket == ticket), None)
        if client is None:
            return  # it died meanwhile
        client.ticket = 0
        what, about = client.asked
        if isinstance(answer, InitProducerIdResponse):
            self.inited(client, answer)
        elif isinstance(answer, AddPartitionsToTxnResponse):
            row = answer.results_by_transaction[0].topic_results[0].results_by_partition[0]
            self.added(client, about, row.partition_error_code)
        else:
            assert what == "end"
            self.ended(client, answer)

    def inited(self, client: Client, answer: InitProducerIdResponse) -> None:
        code = answer.error_code
        if code == 0:
            self.give(client, (answer.producer_id, answer.producer_epoch))
            client.transaction, client.end = 0, None
            self.seen["init"] += 1
        elif code not in (CONCURRENT, *NOT_AVAILABLE):
            client.die()

    def give(self, client: Client, who: tuple[int, int]) -> None:
        assert self.given.setdefault(who, client.number) == client.number, f"{who} was given out before"
        client.who = who

    def added(self, client: Client, name: TopicPartition, code: int) -> None:
        if code == 0:
            self.put(client, name)
        elif code not in (CONCURRENT, *NOT_AVAILABLE):
            self.seen["fenced"] += 1
            client.die()

    def ended(self, client: Client, answer: EndTxnResponse) -> None:
        code = answer.error_code
        if code == 0:
            assert client.end is not None
            if client.transaction:
                assert self.told.setdefault(client.transaction, client.end) == client.end
            self.seen["commit" if client.end else "abort"] += 1
            if client.v2:
                self.give(client, (answer.producer_id, answer.producer_epoch))
            client.transaction, client.end = 0, None
        elif code not in (CONCURRENT, *NOT_AVAILABLE):
            client.die()

    # ------------------------------------------------------------ the end

    def calm(self) -> None:
        """Left alone, everything that was begun ends, and as its producer was told."""
        world = self.world
        self.crash()
        world.fail_next, world.hold_commits, world.hold_sends = 0, False, False
        world.commit()
        for client in self.clients:
            client.die()
        for _ in range(30):
            world.after(10_000)
        for name, partition in self.partitions.items():
            assert not partition.open, f"{name}: a transaction that nobody ends"
        for transaction, committed in self.told.items():
            assert self.fates.get(transaction, committed) == committed, "told otherwise"
        assert not world.parked


def test_histories_end_in_one_fate_a_transaction(make_world: Any) -> None:
    seen: Counter[str] = Counter()
    fates: Counter[bool] = Counter()
    for seed in SEEDS:
        history = History(make_world, seed)
        try:
            history.run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        seen.update(history.seen)
        fates.update(history.fates.values())
    assert min(fates[True], fates[False]) > 40, "nothing happened"
    assert min(seen[what] for what in ("init", "commit", "abort", "fenced", "crash", "failed")) > 10, seen


def test_a_history_is_its_seed(make_world: Any) -> None:
    first, second = History(make_world, 3), History(make_world, 3)
    first.run()
    second.run()
    assert [(r.key, r.value) for r in first.world.log] == [(r.key, r.value) for r in second.world.log]
    assert first.fates == second.fates != {}


@pytest.mark.parametrize("seed", range(6))
def test_a_crash_at_any_record_is_carried_through(make_world: Any, seed: int) -> None:
    """Whatever prefix of a log is left, the machine that reads it finishes what is prepared, and so does the next."""
    history = History(make_world, seed)
    for _ in range(80):
        history.step()
    log = history.world.log
    for length in range(len(log) + 1):
        world = make_world(history.world.settings)
        world.cluster.level = history.world.cluster.level
        world.log[:] = log[:length]
        world.crash()
        world.after(100)
        assert not world.machine.coordinator.endings
        before = list(world.log)
        world.crash()
        assert world.log == before, "what is finished stays as it is"
