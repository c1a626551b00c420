"""Producer ids and transactions of one producer (KIP-98, KIP-360, KIP-890). Pure.

    state             event                                   next
    UNINITIALIZED     init                                    INITIALIZING
    INITIALIZING      the coordinator gave id and epoch       READY
    READY             begin                                   IN_TRANSACTION
    IN_TRANSACTION    commit                                  COMMITTING: flush, offsets, then EndTxn
    IN_TRANSACTION    abort                                   ABORTING: what was never sent is dropped, then EndTxn
    IN_TRANSACTION,   a batch or an offset commit failed      ABORTABLE
    COMMITTING
    ABORTABLE         abort                                   ABORTING
    COMMITTING,       EndTxn answered                         READY; after an error the epoch grows first
    ABORTING
    any               fenced, not authorized                  FATAL

An idempotent producer without transactions stays UNINITIALIZED and asks any broker for an id. Under
transactions v2 a partition joins by being produced to, and each EndTxn gives a new epoch; else partitions and
groups are added first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import define

from logkernel.client.cluster.calls import ANY, Call, ClientCore, Verdict, no_error
from logkernel.client.vocabulary import GroupMetadata, Offsets
from logkernel.errors import (
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    LogkernelError,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
    UnsupportedVersion,
    error_for,
)
from logkernel.peer.network import NONE, UP
from logkernel.requests.producers import InitProducerIdRequest
from logkernel.requests.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

UNINITIALIZED, INITIALIZING, READY, IN_TRANSACTION, COMMITTING, ABORTING, ABORTABLE, FATAL = range(8)
STATE_NAMES: Final = (
    "uninitialized",
    "initializing",
    "ready",
    "in transaction",
    "committing",
    "aborting",
    "abortable error",
    "fatal error",
)
NEVER_MS: Final = 2**62
MAX_EPOCH: Final = 2**15 - 2
V1: Final = frozenset({"transactions_v2"})
"""What is withheld from brokers whose cluster has not turned transactions v2 on."""

FATAL_ERRORS: Final = (
    ProducerFenced,
    InvalidProducerEpoch,
    TransactionalIdAuthorizationFailed,
    InvalidTxnState,
    UnsupportedVersion,
)


@define(eq=False)
class Operation:
    """What a user waits for."""

    done: bool = False
    error: Exception | None = None

    def end(self, error: Exception | None) -> None:
        if not self.done:
            self.done, self.error = True, error


class Transactions:
    """See the module."""

    def __init__(self, core: ClientCore, settings: Mapping[str, Any]) -> None:
        self._core = core
        self.id: str | None = settings["transactional.id"]
        self._timeout_ms: int = settings["transaction.timeout.ms"]
        self.state = UNINITIALIZED
        self.error: Exception | None = None
        self.producer_id = self.epoch = -1
        self.v2 = False
        self._level = 0
        self.added: set[tuple[str, int]] = set()
        self._wanted: set[tuple[str, int]] = set()
        self._started = False
        self._asking = False
        self._adding = False
        self._operation = Operation(True)
        self._offsets: list[tuple[GroupMetadata, Offsets, Operation]] = []
        self._ending = False
        self._bump = False

    # ------------------------------------------------------------ ids

    @property
    def has_id(self) -> bool:
        return self.producer_id >= 0

    def need_id(self) -> None:
        """Ask for an id, or for one with a new epoch, where none is on its way."""
        if self._asking or self.state == FATAL or (self.id is not None and self.state == UNINITIALIZED):
            return
        self._asking = True
        request = InitProducerIdRequest(
            transactional_id=self.id,
            transaction_timeout_ms=self._timeout_ms if self.id is not None else 2**31 - 1,
            producer_id=self.producer_id if self.id is not None else -1,
            producer_epoch=self.epoch if self.id is not None else -1,
        )
        target = ("transaction", self.id) if self.id is not None else ANY
        self._core.call(Call(target, request, NEVER_MS, self._given))

    def _given(self, response: Any, error: Exception | None) -> None:
        self._asking = False
        if error is not None:
            self.fail_for_good(error)
            return
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        if self.state in (INITIALIZING, ABORTING):
            self._to_ready()

    def new_epoch(self) -> bool:
        """The next epoch of an idempotent producer; False where a new id is asked for first."""
        if not self.has_id:
            return False
        if self.epoch >= MAX_EPOCH:
            self.producer_id = self.epoch = -1
            self.need_id()
            return False
        self.epoch += 1
        return True

    def drop_id(self) -> None:
        self.producer_id = self.epoch = -1

    # ------------------------------------------------------------ what users ask

    def init(self) -> Operation:
        if self.id is None:
            raise LogkernelError("transactions need a transactional.id; set it")
        if self.state == INITIALIZING:
            return self._operation
        self._check(UNINITIALIZED)
        self.state = INITIALIZING
        self._operation = Operation()
        self.need_id()
        return self._operation

    def begin(self) -> None:
        self._check(READY)
        self.v2 = self.level() >= 2
        self.state = IN_TRANSACTION

    def level(self) -> int:
        """The transaction.version of the brokers that are connected, or were last: 2 and above are transactions v2."""
        nodes = self._core.network.nodes.values()
        levels = [node.features.get("transaction.version", 0) for node in nodes if node.state == UP]
        if levels:
            self._level = max(levels)
        return self._level

    def send_offsets(self, offsets: Offsets, group: GroupMetadata) -> Operation:
        self._check(IN_TRANSACTION)
        operation = Operation()
        if not offsets:
            operation.end(None)
            return operation
        self._started = True
        self._offsets.append((group, dict(offsets), operation))
        if len(self._offsets) == 1:
            self._next_offsets()
        return operation

    def end(self, *, commit: bool) -> Operation:
        """Commit or abort; asked again while it is under way, the same operation."""
        wanted = COMMITTING if commit else ABORTING
        if self.state == wanted:
            return self._operation
        if commit or self.state != ABORTABLE:
            self._check(IN_TRANSACTION)
        self.state = wanted
        if not commit:
            self._wanted.clear()
        self._operation = Operation()
        return self._operation

    def check_send(self) -> None:
        """Raises where a record must not be sent now."""
        if self.id is not None:
            self._check(IN_TRANSACTION)
        elif self.state == FATAL and self.error is not None:
            raise self.error

    def _check(self, wanted: int) -> None:
        if self.state in (ABORTABLE, FATAL) and self.error is not None:
            raise self.error
        if self.state != wanted:
            raise LogkernelError(
                f"this call needs a producer that is {STATE_NAMES[wanted]!r}, but it is {STATE_NAMES[self.state]!r}"
            )

    # ------------------------------------------------------------ what the sender asks

    def may_send(self, key: tuple[str, int]) -> bool:
        """Whether the partition is part of the transaction; if not, it will be."""
        if self.id is None or key in self.added:
            return True
        if self.state not in (IN_TRANSACTION, COMMITTING):
            return False
        if self.v2:
            self.added.add(key)
            self._started = True
            return True
        self._wanted.add(key)
        return False

    @property
    def wants_partitions(self) -> bool:
        """Whether `may_send` met partitions that are to be added, and nobody has asked for it yet."""
        return bool(self._wanted) and not self._adding

    def step(self, incomplete: bool) -> None:
        """Send what is due; `incomplete`: batches are still without an outcome."""
        if self._wanted and not self._adding and self.state in (IN_TRANSACTION, COMMITTING):
            self._add_partitions()
        if self.state in (COMMITTING, ABORTING) and not incomplete and not self._ending and not self._adding:
            if self._offsets and self.state == COMMITTING:
                return
            self._end()

    def batch_failed(self, error: Exception) -> None:
        """A batch of the transaction has no place in the log."""
        if self.id is None:
            return
        if isinstance(error, (ProducerFenced, TransactionalIdAuthorizationFailed, UnsupportedVersion)):
            self.fail_for_good(error)
        else:
            self.fail_abortably(error)

    def fail_abortably(self, error: Exception) -> None:
        if self.state not in (IN_TRANSACTION, COMMITTING):
            return
        self._bump = True
        self.error = error
        if self.state == COMMITTING:
            self._operation.end(error)
        self.state = ABORTABLE
        self._drop_offsets(error)

    def fail_for_good(self, error: Exception) -> None:
        if self.state == FATAL:
            return
        self.state, self.error = FATAL, error
        self._operation.end(error)
        self._drop_offsets(error)

    def _drop_offsets(self, error: Exception) -> None:
        for _, _, operation in self._offsets:
            operation.end(error)
        self._offsets.clear()

    # ------------------------------------------------------------ requests

    def _call(self, target: tuple[str, str], request: Any, done: Callable[[Any], None], verdict: Verdict) -> None:
        def ended(response: Any, error: Exception | None) -> None:
            if error is None:
                done(response)
            elif isinstance(error, FATAL_ERRORS):
                self.fail_for_good(error)
            else:
                self._refused(error)

        withheld = NONE if self.v2 else V1
        self._core.call(Call(target, request, NEVER_MS, ended, verdict, withheld))

    def _refused(self, error: Exception) -> None:
        self._adding = False
        if self._ending:
            self._ending = False
            if self.state == ABORTING and isinstance(error, InvalidProducerIdMapping):
                self._bump = True  # the coordinator forgot us, and with us the transaction
                self._finished(None)
                return
            self.fail_for_good(error)
            return
        self.fail_abortably(error)

    @property
    def _coordinator(self) -> tuple[str, str]:
        assert self.id is not None
        return ("transaction", self.id)

    def _add_partitions(self) -> None:
        self._adding = True
        adding = sorted(self._wanted)
        topics: dict[str, list[int]] = {}
        for topic, partition in adding:
            topics.setdefault(topic, []).append(partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id or "",
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name, parts) for name, parts in topics.items()],
        )

        def done(_: Any) -> None:
            self._adding = False
            self._started = True
            self.added.update(adding)
            self._wanted.difference_update(adding)

        self._started = True
        self._call(self._coordinator, request, done, _added_error)

    def _next_offsets(self) -> None:
        group = self._offsets[0][0]
        if self.v2:
            self._commit_offsets()
            return
        request = AddOffsetsToTxnRequest(self.id or "", self.producer_id, self.epoch, group.group_id)
        self._call(self._coordinator, request, lambda _: self._commit_offsets(), no_error)

    def _commit_offsets(self) -> None:
        if not self._offsets:
            return
        group, offsets, operation = self._offsets[0]
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), place in sorted(offsets.items(), key=lambda row: row[0]):
            offset, epoch, text = (place, -1, None) if isinstance(place, int) else place
            topics.setdefault(topic, []).append(TxnOffsetCommitRequestPartition(partition, offset, epoch, text))
        request = TxnOffsetCommitRequest(
            transactional_id=self.id or "",
            group_id=group.group_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=[TxnOffsetCommitRequestTopic(name, parts) for name, parts in topics.items()],
        )

        def done(_: Any) -> None:
            if self._offsets and self._offsets[0][2] is operation:
                self._offsets.pop(0)
                operation.end(None)
                if self._offsets:
                    self._next_offsets()

        self._call(("group", group.group_id), request, done, _offsets_error)

    def _end(self) -> None:
        committed = self.state == COMMITTING
        if not self._started:
            self._finished(None)
            return
        self._ending = True
        request = EndTxnRequest(self.id or "", self.producer_id, self.epoch, committed)
        self._call(self._coordinator, request, self._finished, no_error)

    def _finished(self, response: Any) -> None:
        """The transaction is over."""
        self._ending = False
        if response is not None and self.v2 and response.producer_id >= 0:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
            self._bump = False
        if self._bump:
            self._bump = False
            self.need_id()  # `_given` goes on
            return
        self._to_ready()

    def _to_ready(self) -> None:
        self.state, self.error = READY, None
        self.added.clear()
        self._wanted.clear()
        self._started = False
        self._operation.end(None)


def _added_error(response: Any) -> int:
    """The worst of the partitions' errors; a retriable one only where there is no other."""
    rows = (row for topic in response.results_by_topic_v3_and_below for row in topic.results_by_partition)
    return _worst([row.partition_error_code for row in rows])


def _offsets_error(response: Any) -> int:
    return _worst([row.error_code for topic in response.topics for row in topic.partitions])


def _worst(codes: list[int]) -> int:
    failed = [code for code in codes if code]
    for code in failed:
        error = error_for(code)
        if not (isinstance(error, KafkaError) and error.retriable) and code != ConcurrentTransactions.code:
            return code
    return failed[0] if failed else 0
