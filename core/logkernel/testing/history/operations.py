"""A history: calls of clients with their outcomes, and facts, in the order in which they happened. See the package."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any, Final

from logkernel.attrs_lite import field, frozen, mutable
from logkernel.errors import LogkernelError

READ_COMMITTED: Final = "read_committed"
ISOLATIONS: Final = ("read_uncommitted", READ_COMMITTED)
MAX_LINE: Final = 64 << 20
"""Characters of a line."""
UNTOLD: Final = -1
"""The offset of a record that was acknowledged without one: the broker knew that it was written, and not where."""
OUTCOMES: Final = ("ok", "fail", "unknown")
PartitionName = tuple[str, int]
"""(topic, partition)."""


class HistoryError(LogkernelError):
    """A line is none of a history; the text names it."""


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _told_offset(value: Any) -> bool:
    return _count(value) or (type(value) is int and value == UNTOLD)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _rows(*kinds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def fits(value: Any) -> bool:
        return isinstance(value, list) and all(
            isinstance(row, list)
            and len(row) == len(kinds)
            and all(fit(part) for fit, part in zip(kinds, row, strict=True))
            for row in value
        )

    return fits


def _one_of(*known: str) -> Callable[[Any], bool]:
    return lambda value: value in known


Fields = Mapping[str, Callable[[Any], bool]]
PLACE: Final[Fields] = {"topic": _text, "partition": _count}
OFFSETS: Final = _rows(_text, _count, _count)
RECORDS: Final = _rows(_text, _count, _count, _text)
CALLS: Final[Mapping[str, tuple[Fields, Fields, Fields]]] = {
    "send": (
        {**PLACE, "value": _text},
        {"key": _text, "acks": _one_of("all", "1", "0"), "once": _flag, "txn": _count},
        {"offset": _told_offset},
    ),
    "begin": ({}, {}, {}),
    "end": ({"txn": _count, "commit": _flag}, {"group": _text, "offsets": OFFSETS}, {}),
    "poll": ({}, {"group": _text, "isolation": _one_of(*ISOLATIONS)}, {"records": RECORDS}),
    "assign": ({"partitions": _rows(_text, _count)}, {"group": _text}, {}),
    "commit": ({"group": _text, "offsets": OFFSETS}, {}, {}),
    "read": (
        PLACE, {"isolation": _one_of(*ISOLATIONS)}, {"start": _count, "end": _count, "records": RECORDS},
    ),
    "delete_records": ({**PLACE, "before": _count}, {}, {}),
    "delete_topic": ({"topic": _text}, {}, {}),
}  # fmt: skip
"""Call → the fields that it must have, those that it may have, and those that its `ok` must have."""


@mutable
class Operation:
    """A call, and what came of it."""

    number: int
    call: str
    client: str
    fields: Mapping[str, Any]
    begun: int
    """Its place in the history."""
    outcome: str = "unknown"
    ended: int | None = None
    """Where in the history its outcome is; None where there is none."""
    result: Mapping[str, Any] = field(factory=dict)

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"

    @property
    def place(self) -> PartitionName:
        return self.fields["topic"], self.fields["partition"]

    @property
    def committed_only(self) -> bool:
        return bool(self.fields.get("isolation") == READ_COMMITTED)

    def __str__(self) -> str:
        told = " ".join(f"{name}={value}" for name, value in self.fields.items() if value is not None)
        return f"{self.client} {self.call} {told} ({self.outcome})"


@frozen
class Lawful:
    """What was written before, and lies at `offset` or behind it, may be lost."""

    place: PartitionName
    offset: int
    at: int
    why: str


class History:
    """See the package. Raises `HistoryError` for what is none of a history."""

    def __init__(self, sink: IO[str] | None = None) -> None:
        """Each line is also written to `sink`, at once."""
        self.operations: dict[int, Operation] = {}
        self.lawful: list[Lawful] = []
        self.compacts: set[str] = set()
        self.expires: set[str] = set()
        self.length = 0
        """Lines so far."""
        self._sink = sink

    def __iter__(self) -> Iterator[Operation]:
        """In the order of the calls."""
        return iter(self.operations.values())

    # ------------------------------------------------------------ writing

    def call(self, name: str, client: str, **fields: Any) -> int:
        """Note a call that begins; returns its number."""
        number = len(self.operations)
        self.add({"call": name, "id": number, "client": client, **fields})
        return number

    def ok(self, number: int, **result: Any) -> None:
        self.add({"ok": number, **result})

    def fail(self, number: int, error: str = "") -> None:
        """It certainly had no effect."""
        self.add({"fail": number, "error": error})

    def unknown(self, number: int, error: str = "") -> None:
        """Nobody knows whether it had one."""
        self.add({"unknown": number, "error": error})

    def topic(self, name: str, *, compacts: bool = False, expires: bool = False) -> None:
        self.add({"topic": name, "compacts": compacts, "expires": expires})

    def lose(self, topic: str, partition: int, offset: int, why: str) -> None:
        """What was written at `offset` and behind it up to now may be lost."""
        self.add({"lawful": [topic, partition, offset], "why": why})

    # ------------------------------------------------------------ lines

    def add(self, line: Mapping[str, Any]) -> None:
        """Take one line."""
        if self._sink is not None:
            self._sink.write(json.dumps(line) + "\n")
        if "call" in line:
            self._begin(line)
        elif "topic" in line:
            self._fact(line)
        elif "lawful" in line:
            row = line["lawful"]
            if not OFFSETS([row]):
                raise self._wrong("lawful is [topic, partition, offset]")
            self.lawful.append(Lawful((row[0], row[1]), row[2], self.length, str(line.get("why", ""))))
        else:
            self._end(line)
        self.length += 1

    def _wrong(self, problem: str) -> HistoryError:
        return HistoryError(f"line {self.length + 1}: {problem}; see the format in logkernel.testing.history")

    def _begin(self, line: Mapping[str, Any]) -> None:
        name, number, client = line["call"], line.get("id"), line.get("client")
        if not isinstance(name, str) or name not in CALLS:
            raise self._wrong(f"call {name!r} is none of {', '.join(CALLS)}")
        if not _count(number) or not _text(client):
            raise self._wrong("a call has a number as id, and a text as client")
        assert isinstance(number, int)
        if number in self.operations:
            raise self._wrong(f"id {number} has another call already")
        needed, may, _ = CALLS[name]
        fields = {key: value for key, value in line.items() if key not in ("call", "id", "client")}
        self._check(name, fields, needed, {**needed, **may})
        self.operations[number] = Operation(number, name, str(client), fields, self.length)

    def _check(self, name: str, fields: Mapping[str, Any], needed: Iterable[str], known: Fields) -> None:
        for key in needed:
            if key not in fields:
                raise self._wrong(f"{name} has no {key}")
        for key, fits in known.items():
            if fields.get(key) is not None and not fits(fields[key]):
                raise self._wrong(f"{key} of {name} does not fit: {str(fields[key])[:80]}")

    def _fact(self, line: Mapping[str, Any]) -> None:
        name = line["topic"]
        if not _text(name):
            raise self._wrong("topic is a text")
        (self.compacts.add if line.get("compacts") else self.compacts.discard)(name)
        (self.expires.add if line.get("expires") else self.expires.discard)(name)

    def _end(self, line: Mapping[str, Any]) -> None:
        outcome = next((name for name in OUTCOMES if name in line), None)
        if outcome is None:
            raise self._wrong("neither a call, an outcome nor a fact")
        known = self.operations.get(line[outcome]) if _count(line[outcome]) else None
        if known is None or known.ended is not None:
            raise self._wrong(f"{outcome} of {line[outcome]!r}, which is not under way")
        result = {key: value for key, value in line.items() if key != outcome}
        if outcome == "ok":
            needed = CALLS[known.call][2]
            self._check(f"ok of {known.call}", result, needed, needed)
        known.outcome, known.ended, known.result = outcome, self.length, result


def load(lines: Iterable[str]) -> History:
    """A history from the lines of a file. Raises `HistoryError`."""
    history = History()
    for text in lines:
        if len(text) > MAX_LINE:
            raise HistoryError(f"line {history.length + 1} has {len(text)} characters; the most is {MAX_LINE}")
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise HistoryError(f"line {history.length + 1} is no JSON: {error}") from None
        if not isinstance(line, dict):
            raise HistoryError(f"line {history.length + 1} is no JSON object; see logkernel.testing.history")
        history.add(line)
    return history
