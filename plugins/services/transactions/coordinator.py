"""The coordinator of all transactional ids in one partition of __transaction_state, and the decision being built."""

from __future__ import annotations

from typing import Any, Final

from attrs import define, evolve

from logkernel.contracts import ClusterView, Decision
from logkernel.vocabulary import Record, TopicPartition

from .records import decode_value, encode_key, encode_value
from .settings import TransactionSettings
from .state import NO_EPOCH, State, Transaction

TOPIC: Final = "__transaction_state"
FEATURE: Final = "transaction.version"


@define(eq=False)
class Ending:
    """The progress of one decided end. Soft state: a new machine starts it again."""

    producer_id: int
    epoch: int
    left: set[TopicPartition]
    """Partitions whose marker is not confirmed yet."""
    attempts: int = 0
    due_ms: int | None = None
    """Monotonic ms of the next attempt; None while an attempt is under way."""


class TransactionCoordinator:
    """What the parts of the machine share: transactions, the time of the event, and the decision being built."""

    __slots__ = (
        "_last_epochs",
        "abort_due_ms",
        "cluster",
        "endings",
        "expire_due_ms",
        "mono_ms",
        "number",
        "ongoing",
        "out",
        "settings",
        "transactions",
        "waiting",
        "wall_ms",
    )

    def __init__(self, number: int, settings: TransactionSettings, cluster: ClusterView) -> None:
        self.number = number
        self.settings = settings
        self.cluster = cluster
        self.transactions: dict[str, Transaction] = {}
        self.ongoing: set[str] = set()
        """The ids of `transactions` that are Ongoing."""
        self.endings: dict[str, Ending] = {}
        """Id → progress, for those `transactions` that are in a Prepare state."""
        self.waiting: set[str] = set()
        """The ids of `endings` that have a `due_ms`."""
        self.abort_due_ms: int | None = None
        self.expire_due_ms: int | None = None
        self._last_epochs: dict[tuple[bytes, bytes], int] = {}
        """(key, value) of decided records that are not replayed yet → `last_epoch`, which the record does not hold."""
        self.wall_ms = 0
        self.mono_ms = 0
        self.out = Decision()

    def begin(self, wall_ms: int, mono_ms: int) -> None:
        self.wall_ms, self.mono_ms, self.out = wall_ms, mono_ms, Decision()

    def finish(self) -> Decision:
        if self.abort_due_ms is None and (self.ongoing or self.out.records):
            self.abort_due_ms = self.mono_ms + self.settings.abort_interval_ms
        if self.expire_due_ms is None and (self.transactions or self.out.records):
            self.expire_due_ms = self.mono_ms + self.settings.expiration_interval_ms
        out, self.out = self.out, Decision()
        return out

    @property
    def level(self) -> int:
        """The finalized `transaction.version`."""
        return self.cluster.feature_level(FEATURE)

    @property
    def epoch(self) -> int:
        """The coordinator epoch: the leader epoch of this log. Partitions refuse markers of an older one."""
        return self.cluster.leader_epoch(TOPIC, self.number) or 0

    # ------------------------------------------------------------ what the host is asked to do

    def append(self, transactional_id: str, txn: Transaction) -> None:
        key, value = encode_key(transactional_id), encode_value(txn, self.level)
        if txn.last_epoch != NO_EPOCH:
            self._last_epochs[key, value] = txn.last_epoch
        self.out.records.append(Record(key, value, timestamp_ms=self.wall_ms))

    def append_tombstone(self, transactional_id: str) -> None:
        self.out.records.append(Record(encode_key(transactional_id), None, timestamp_ms=self.wall_ms))

    def answer(self, ticket: int, response: Any) -> None:
        """Answer when all earlier records are committed: even a refusal may depend on them."""
        self.out.answers.append((ticket, response))

    def send(self, token: Any, request: Any) -> None:
        self.out.sends.append((token, request))

    # ------------------------------------------------------------ replay

    def fold(self, transactional_id: str, record: Record) -> None:
        assert record.key is not None
        if record.value is None:
            self.transactions.pop(transactional_id, None)
            self.ongoing.discard(transactional_id)
            return
        txn = decode_value(record.value)
        last_epoch = self._last_epochs.pop((record.key, record.value), NO_EPOCH)
        if last_epoch != NO_EPOCH:
            txn = evolve(txn, last_epoch=last_epoch)
        self.transactions[transactional_id] = txn
        if txn.state is State.ONGOING:
            self.ongoing.add(transactional_id)
        else:
            self.ongoing.discard(transactional_id)
        if not txn.is_ending:
            self.endings.pop(transactional_id, None)
            self.waiting.discard(transactional_id)
