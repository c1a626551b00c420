"""What a run of chaos came to: counts, stalls and times until all was well, and the tables of `docs/durability.md`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from attrs import asdict, define, field, frozen

SECOND = 1_000_000_000
ANOMALIES = {
    "lost": ("lost", "skipped"),
    "doubled": ("doubled",),
    "reordered": ("order", "rewound", "disagreement", "cycle"),
    "transactions broken": ("aborted", "half", "phantom", "offsets"),
}
"""Row of the table → kinds of the checker's anomalies."""


@frozen
class Struck:
    """A fault that was; times are of the monotonic clock, in ns."""

    kind: str
    begun: int
    ended: int
    recovered: int | None
    """When every replica was in sync again; None where the next fault came first."""


@define
class Figures:
    """Everything is a sum, a maximum or a list, so that runs can be put together by `plus`."""

    minutes: float = 0.0
    sent: int = 0
    acknowledged: int = 0
    committed: int = 0
    aborted: int = 0
    unknown: int = 0
    """Transactions whose commit had no answer."""
    read: int = 0
    ended: int = 0
    """How often a broker ended by itself."""
    stall_s: float = 0.0
    anomalies: dict[str, int] = field(factory=dict)
    faults: dict[str, int] = field(factory=dict)
    stalls_s: dict[str, list[float]] = field(factory=dict)
    recoveries_s: dict[str, list[float]] = field(factory=dict)

    def plus(self, other: Figures) -> Figures:
        made: dict[str, Any] = {}
        for name, mine in asdict(self).items():
            theirs = getattr(other, name)
            if name == "stall_s":
                made[name] = max(mine, theirs)
            elif isinstance(mine, dict):
                keys = [*mine, *(key for key in theirs if key not in mine)]
                made[name] = {
                    key: mine[key] + theirs[key] if key in mine and key in theirs else mine.get(key, theirs.get(key))
                    for key in keys
                }
            else:
                made[name] = mine + theirs
        return Figures(**made)


def figures_of(
    lines: Iterable[Mapping[str, Any]], faults: Sequence[Struck], anomalies: Iterable[str], ended: int
) -> Figures:
    """`lines`: those of `recorder.merged`, `anomalies`: the kind of each."""
    found = Figures(ended=ended, anomalies=dict(Counter(anomalies)), faults=dict(Counter(each.kind for each in faults)))
    calls: dict[int, Mapping[str, Any]] = {}
    ends: dict[int, tuple[bool, str]] = {}
    acks: dict[int, list[int]] = defaultdict(list)
    first = last = 0
    for line in lines:
        last = line["at"]
        first = first or last
        if "call" in line:
            calls[line["id"]] = line
            found.sent += line["call"] == "send"
            if line["call"] == "end":
                ends[line["txn"]] = (line["commit"], "unknown")
        elif "ok" in line:
            call = calls[line["ok"]]
            if call["call"] == "send":
                found.acknowledged += 1
                if call["topic"] == "orders":
                    acks[call["partition"]].append(line["at"])
            elif call["call"] == "end":
                ends[call["txn"]] = (call["commit"], "ok")
            elif call["call"] == "poll":
                found.read += len(line["records"])
    found.minutes = (last - first) / SECOND / 60
    for commit, outcome in ends.values():
        found.aborted += not commit
        found.committed += commit and outcome == "ok"
        found.unknown += commit and outcome != "ok"
    _stalls(found, acks, faults)
    for each in faults:
        if each.recovered is not None:
            found.recoveries_s.setdefault(each.kind, []).append((each.recovered - each.ended) / SECOND)
    return found


def _stalls(found: Figures, acks: Mapping[int, Sequence[int]], faults: Sequence[Struck]) -> None:
    """The longest time in which a partition acknowledged nothing, of all and of each fault."""
    gaps = [(before, after) for times in acks.values() for before, after in pairwise(times)]
    found.stall_s = max(((after - before) / SECOND for before, after in gaps), default=0.0)
    for each in faults:
        until = each.recovered or each.ended
        over = [after - before for before, after in gaps if before < until and after > each.begun]
        found.stalls_s.setdefault(each.kind, []).append(max(over, default=0) / SECOND)


def tables(ours: Figures, kafka: Figures) -> str:
    """Both tables in Markdown."""
    lines = ["| | logkernel | Apache Kafka 3.9.2 |", "|---|---|---|"]
    rows: list[tuple[str, Any, Any]] = [
        ("minutes", f"{ours.minutes:.1f}", f"{kafka.minutes:.1f}"),
        ("faults", sum(ours.faults.values()), sum(kafka.faults.values())),
        ("records sent", ours.sent, kafka.sent),
        ("records acknowledged", ours.acknowledged, kafka.acknowledged),
        ("transactions committed", ours.committed, kafka.committed),
        ("transactions aborted", ours.aborted, kafka.aborted),
        ("commits without an answer", ours.unknown, kafka.unknown),
        ("records that consumers got", ours.read, kafka.read),
    ]
    for name, kinds in ANOMALIES.items():
        counts = [sum(each.anomalies.get(kind, 0) for kind in kinds) for each in (ours, kafka)]
        rows.append((f"**{name}**", *(f"**{count:,}**" for count in counts)))
    rows.append(("brokers that ended by themselves", ours.ended, kafka.ended))
    rows.append(("longest time without an acknowledgement", f"{ours.stall_s:.1f} s", f"{kafka.stall_s:.1f} s"))
    lines += [f"| {name} | {_number(mine)} | {_number(theirs)} |" for name, mine, theirs in rows]
    lines += ["", "| fault | times | longest stall, s | in sync after, s |", "|---|---|---|---|"]
    for kind in sorted({*ours.faults, *kafka.faults}):
        pairs = [
            " / ".join(str(each.faults.get(kind, 0)) for each in (ours, kafka)),
            " / ".join(_longest(each.stalls_s.get(kind)) for each in (ours, kafka)),
            " / ".join(_longest(each.recoveries_s.get(kind)) for each in (ours, kafka)),
        ]
        lines.append(f"| {kind} | {' | '.join(pairs)} |")
    return "\n".join(lines) + "\n"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _longest(times: Sequence[float] | None) -> str:
    return f"{max(times):.1f}" if times else "–"
