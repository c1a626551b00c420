"""Exactly once: one micro-batch, many tasks, each with an ordinary transaction, and one decision. docs/decisions/026.

Every query has a partition of the topic `TOPIC`, which is its journal:

    task i       in a transaction of QUERY/i: token (open), rows, token (prepared); the transaction stays open
    driver       in the transaction of QUERY: the decision. Once that is committed the batch IS written
    driver       ends every participant's transaction, by the producer id and epoch that the tasks handed over

A token is seen as committed exactly where its task's rows are. So the journal says, to whoever reads it next and at any
later time, what has become of a batch (`judge`):

    last decision    its participants                what a task of batch b does
    none, or < b                                     WRITE
    > b                                              SKIP: written long ago
    = b              all committed, or none named    SKIP
    = b              some open                       FORWARD: commit these, and look again
    = b              all lost                        WRITE: the decision is void
    = b              some committed, some lost       HEAL: hand the rows to the driver, who writes what is missing
    one is open                                      SETTLE: take QUERY over, which ends it, and look again

The driver decides by compare and set: it takes QUERY over (whoever was deciding is fenced), reads the journal, and
decides only where it says what every task saw. Lost is a participant that was aborted behind the decision: by its
transaction's timeout, or by a task of another driver that took its transactional id over. Everything here is steps over
a `Port`; nothing is kept.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from logkernel.attrs_lite import frozen
from logkernel.errors import LogkernelError

TOPIC: Final = "__logkernel_spark"
PREFIX: Final = "logkernel-spark-"
MARGIN_MS: Final = 30_000
"""A participant whose transaction may time out this soon is not decided on; at most a quarter of its timeout."""
LOOKS: Final = 200
"""How often the journal is read again while open transactions come to their end."""

WRITE, SKIP, HEAL, FORWARD, SETTLE = "write", "skip", "heal", "forward", "settle"


class MustReplay(LogkernelError):
    """The batch was not written, or not wholly; the query must be started again, and will write what is missing."""


@frozen
class Row:
    """`partition` None: wherever its key or the partitioner puts it."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@frozen
class Participant:
    slot: int
    producer_id: int
    epoch: int


@frozen
class Token:
    """What a task notes in its own transaction: first with no rows, last with all it wrote."""

    batch: int
    participant: Participant
    at_ms: int
    timeout_ms: int
    prepared: bool = False
    rows: int = 0
    ranges: tuple[tuple[str, int, int, int], ...] = ()
    """(topic, partition, first offset, last offset) among which the rows lie."""
    offset: int = -1


@frozen
class Decision:
    batch: int
    participants: tuple[Participant, ...]
    offset: int = -1


@frozen
class Message:
    """What a task hands to the driver."""

    query: str
    batch: int
    slot: int
    verdict: str
    basis: int
    """Offset of the last decision that the task saw; -1 for none."""
    participant: Participant | None = None
    rows: tuple[Row, ...] = ()
    """HEAL: all rows of the task."""


class Port(Protocol):
    """What the steps ask of a cluster. `own` is the transactional id that the port was made for."""

    @property
    def timeout_ms(self) -> int:
        """transaction.timeout.ms."""
        ...

    def now_ms(self) -> int: ...

    def pause(self, looks: int) -> None:
        """Before the journal is read again for the `looks`-th time."""
        ...

    def view(self, query: str) -> View:
        """The journal as it is now."""
        ...

    def take(self, transactional_id: str) -> tuple[int, int]:
        """Producer id and epoch of a new owner: older ones are fenced, what they had open is ended."""
        ...

    def begin(self) -> tuple[int, int]:
        """`take` of `own`, and a new transaction of it."""
        ...

    def note(self, query: str, key: bytes, blob: bytes) -> None:
        """A record for the journal, in the open transaction, acknowledged."""
        ...

    def end_all(self, owners: Sequence[tuple[str, int, int]], commit: bool) -> bool:
        """End anybody's transactions: transactional id, producer id and epoch of each; in any order, all at once.
        False: one is not open under these numbers."""
        ...

    def decide(self, query: str, key: bytes, blob: bytes, hint: int, rows: Sequence[Row]) -> None:
        """One transaction of `own`, as it was taken: rows, decision, and from where the journal is to be read."""
        ...

    def read_back(self, token: Token) -> list[Row]:
        """The rows that a committed participant wrote. `partition` is always set."""
        ...


# ---------------------------------------------------------------- names and bytes


def decider_id(query: str) -> str:
    return f"{PREFIX}{query}"


def job_query(job: str) -> str:
    """The query of a named job: without "/", which parts a query from a slot."""
    return "job-" + job.replace("%", "%25").replace("/", "%2F")


def participant_id(query: str, slot: int) -> str:
    return f"{PREFIX}{query}/{slot}"


def decision_key(query: str) -> bytes:
    return query.encode()


def token_key(query: str, slot: int) -> bytes:
    return f"{query}/{slot}".encode()


def token_blob(token: Token) -> bytes:
    who = token.participant
    numbers = [token.batch, who.slot, who.producer_id, who.epoch, token.at_ms, token.timeout_ms]
    return json.dumps([*numbers, token.prepared, token.rows, token.ranges]).encode()


def decision_blob(decision: Decision) -> bytes:
    who = [[one.slot, one.producer_id, one.epoch] for one in decision.participants]
    return json.dumps({"batch": decision.batch, "participants": who}).encode()


def _token(blob: bytes, offset: int) -> Token:
    batch, slot, producer_id, epoch, at_ms, timeout_ms, prepared, rows, ranges = json.loads(blob)
    who = Participant(slot, producer_id, epoch)
    return Token(batch, who, at_ms, timeout_ms, prepared, rows, tuple(tuple(row) for row in ranges), offset)


def _decision(blob: bytes, offset: int) -> Decision:
    found = json.loads(blob)
    return Decision(found["batch"], tuple(Participant(*row) for row in found["participants"]), offset)


# ---------------------------------------------------------------- the journal, read


class View:
    """The journal of one query, folded record by record in the order of the log."""

    def __init__(self, query: str) -> None:
        self._decision_key = decision_key(query)
        self._token_prefix = self._decision_key + b"/"
        self._pending: dict[int, list[Token | Decision]] = {}
        self.decision: Decision | None = None
        self.committed: dict[Participant, Token] = {}

    def record(self, producer_id: int, offset: int, key: bytes | None, blob: bytes | None) -> None:
        """A record of a transaction that has not ended yet."""
        if key is None or blob is None:
            return
        if key == self._decision_key:
            self._pending.setdefault(producer_id, []).append(_decision(blob, offset))
        elif key.startswith(self._token_prefix):
            self._pending.setdefault(producer_id, []).append(_token(blob, offset))

    def marker(self, producer_id: int, committed: bool) -> None:
        """The end of a producer's transaction."""
        for found in self._pending.pop(producer_id, ()):
            if not committed:
                continue
            if isinstance(found, Decision):
                self.decision = found
            else:
                self.committed[found.participant] = found

    @property
    def open(self) -> dict[Participant, Token]:
        """The last token of every participant whose transaction is open."""
        tokens = (found for row in self._pending.values() for found in row if isinstance(found, Token))
        return {token.participant: token for token in tokens}

    @property
    def undecided(self) -> bool:
        return any(isinstance(found, Decision) for row in self._pending.values() for found in row)

    @property
    def basis(self) -> int:
        return -1 if self.decision is None else self.decision.offset


def judge(view: View, batch: int) -> str:
    """See the module."""
    decision = view.decision
    if view.undecided:
        return SETTLE
    if decision is None or decision.batch < batch:
        return WRITE
    if decision.batch > batch:
        return SKIP
    among = view.open
    if any(one in among for one in decision.participants):
        return FORWARD
    lost = [one for one in decision.participants if one not in view.committed]
    if not lost:
        return SKIP
    return WRITE if len(lost) == len(decision.participants) else HEAL


def look(port: Port, query: str, batch: int) -> tuple[str, View]:
    """WRITE, SKIP or HEAL, after what was under way has come to its end. Raises `MustReplay` where it does not."""
    for looks in range(LOOKS):
        port.pause(looks)
        view = port.view(query)
        verdict = judge(view, batch)
        if verdict == SETTLE:
            port.take(decider_id(query))
        elif verdict == FORWARD:
            assert view.decision is not None
            among = view.open
            _end_all(port, query, [one for one in view.decision.participants if one in among], commit=True)
        else:
            return verdict, view
    raise MustReplay(f"transactions of query {query} do not come to an end; is every broker alive?")


# ---------------------------------------------------------------- a task


class Task:
    """One task of a batch. `begin`, then rows (for WRITE after `open`), then `finish`."""

    def __init__(self, port: Port, query: str, batch: int, slot: int) -> None:
        self._port = port
        self._query, self._batch, self._slot = query, batch, slot
        self._participant: Participant | None = None
        self._began_ms = 0
        self._basis = -1
        self.verdict = ""

    def begin(self) -> str:
        self.verdict, view = look(self._port, self._query, self._batch)
        self._basis = view.basis
        return self.verdict

    def open(self) -> None:
        """Before the first row: fences every older task of this slot."""
        port = self._port
        producer_id, epoch = port.begin()
        self._began_ms = port.now_ms()
        self._participant = Participant(self._slot, producer_id, epoch)
        self._note(Token(self._batch, self._participant, self._began_ms, port.timeout_ms))

    def prepare(self, rows: int, ranges: Iterable[tuple[str, int, int, int]]) -> None:
        """After the last row is acknowledged."""
        assert self._participant is not None
        who, timeout_ms = self._participant, self._port.timeout_ms
        self._note(Token(self._batch, who, self._began_ms, timeout_ms, True, rows, tuple(ranges)))

    def message(self, rows: Sequence[Row] = ()) -> Message:
        who, basis = self._participant, self._basis
        return Message(self._query, self._batch, self._slot, self.verdict, basis, who, tuple(rows))

    def _note(self, token: Token) -> None:
        self._port.note(self._query, token_key(self._query, self._slot), token_blob(token))


# ---------------------------------------------------------------- the driver


def commit(port: Port, messages: Sequence[Message]) -> None:
    """Write the batch of `messages`, or raise `MustReplay`: it is seen whole, or a replay will see to it."""
    if not messages:
        return
    query, batch = messages[0].query, messages[0].batch
    written = [message.participant for message in messages if message.participant is not None]
    if not written and all(message.verdict == WRITE for message in messages):
        return  # no rows
    port.take(decider_id(query))
    verdict, view = look(port, query, batch)
    strangers = [one for one, token in view.open.items() if one not in written and token.batch <= batch]
    if verdict == SKIP:
        _end_all(port, query, [*strangers, *written], commit=False)
        return
    why = _differs(messages, verdict, view.basis) or _unfit(port, view, written)
    if why:
        _end_all(port, query, written, commit=False)
        raise MustReplay(f"batch {batch} of query {query} was taken back: {why}")
    if verdict == HEAL:
        _heal(port, query, batch, view, messages)
        _end_all(port, query, strangers, commit=False)
        return
    hint = min(view.open[one].offset for one in written)
    decision = Decision(batch, tuple(written))
    port.decide(query, decision_key(query), decision_blob(decision), _hint(view, hint), ())
    refused = not _end_all(port, query, written, commit=True)
    _end_all(port, query, strangers, commit=False)
    if refused and look(port, query, batch)[0] != SKIP:
        raise MustReplay(f"batch {batch} of query {query}: tasks were aborted behind its decision; a replay mends that")


def _hint(view: View, offset: int) -> int:
    """Nothing before it is asked for again: neither `offset`, nor a token that is open still."""
    return min([offset, *(token.offset for token in view.open.values())])


def _differs(messages: Sequence[Message], verdict: str, basis: int) -> str:
    for message in messages:
        if (message.verdict, message.basis) != (verdict, basis):
            return f"task {message.slot} saw another state of it than is there now"
    return ""


def _unfit(port: Port, view: View, written: Sequence[Participant]) -> str:
    """Why a participant cannot be decided on."""
    among = view.open
    for one in written:
        token = among.get(one)
        if token is None or not token.prepared:
            return f"the transaction of task {one.slot} was aborted; is transaction.timeout.ms long enough for a batch?"
        left_ms = token.at_ms + token.timeout_ms - port.now_ms()
        if left_ms < min(MARGIN_MS, token.timeout_ms // 4):
            return f"the transaction of task {one.slot} is about to time out; make transaction.timeout.ms longer"
    return ""


def abort(port: Port, messages: Iterable[Message | None]) -> None:
    """Take back what was not decided. Spark calls it also after a commit that failed, perhaps behind its decision."""
    found = [message for message in messages if message is not None]
    written = [message.participant for message in found if message.participant is not None]
    if not written:
        return
    query = found[0].query
    port.take(decider_id(query))
    view = port.view(query)
    decided = () if view.decision is None else view.decision.participants
    _end_all(port, query, [one for one in written if one not in decided], commit=False)


def _end_all(port: Port, query: str, participants: Iterable[Participant], *, commit: bool) -> bool:
    """Whether every one could be ended so."""
    owners = [(participant_id(query, one.slot), one.producer_id, one.epoch) for one in participants]
    return not owners or port.end_all(owners, commit)


# ---------------------------------------------------------------- what is missing


def _heal(port: Port, query: str, batch: int, view: View, messages: Sequence[Message]) -> None:
    """Write, in one transaction with a decision that names nobody, the rows that no committed participant wrote."""
    assert view.decision is not None
    there: list[Row] = []
    for one in view.decision.participants:
        token = view.committed.get(one)
        if token is None:
            continue
        rows = port.read_back(token)
        if len(rows) != token.rows:
            raise MustReplay(
                f"batch {batch} of query {query} is written in part, and {len(rows)} of {token.rows} rows of task"
                f" {one.slot} are still in the log: what is missing cannot be told. Retention or compaction took them"
            )
        there += rows
    rows = missing((row for message in messages for row in message.rows), there)
    port.decide(query, decision_key(query), decision_blob(Decision(batch, ())), _hint(view, view.basis), rows)


def missing(rows: Iterable[Row], there: Iterable[Row]) -> list[Row]:
    """`rows` without those that are `there`, as often as they are; rows that name a partition are matched first."""
    placed = Counter(there)
    left: list[Row] = []
    free: list[Row] = []
    for row in rows:
        if row.partition is None:
            free.append(row)
        elif placed[row] > 0:
            placed[row] -= 1
        else:
            left.append(row)
    anywhere: Counter[Row] = Counter()
    for row, count in placed.items():
        anywhere[_anywhere(row)] += count
    for row in free:
        if anywhere[row] > 0:
            anywhere[row] -= 1
        else:
            left.append(row)
    return left


def _anywhere(row: Row) -> Row:
    return Row(row.topic, None, row.key, row.value, row.headers)


def rows_of(messages: Iterable[Any]) -> list[Message]:
    """The messages of a driver's list that are ours."""
    return [message for message in messages if isinstance(message, Message)]
