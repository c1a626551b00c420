"""Everything that is wrong with a history.

| anomaly | what it means |
|---|---|
| lost | an acknowledged record is not there when everything is over |
| doubled | a record that was sent once lies at two offsets |
| disagreement | an offset shows different records to different clients |
| phantom | a record that nobody sent, or whose send certainly failed |
| aborted | a read_committed reader saw a record of a transaction that was not committed |
| half | one record of a transaction is visible, another is not |
| order | two records of one producer lie in a partition in the wrong order |
| rewound | a consumer was given an offset again, without a new assignment |
| skipped | a consumer, or all consumers of a group, went past a record that they never got |
| offsets | a group went back behind offsets whose commit was acknowledged |
| cycle | no order of the operations explains what was seen (`precedence`) |

Two transactions that run at once may interleave in each partition as they like: Kafka promises no order of writes
between them, so opposite orders are no anomaly here, while both are under way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final

from logkernel.attrs_lite import frozen
from logkernel.testing.history.observed import ABORTED, COMMITTED, MAYBE, Observed, Seen
from logkernel.testing.history.operations import History, Operation, PartitionName
from logkernel.testing.history.precedence import cycle


@frozen
class Anomaly:
    kind: str
    what: str
    operations: tuple[Operation, ...] = ()
    """Calls that show it."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def check(history: History, *, real_time: bool = True) -> list[Anomaly]:
    """What is wrong with it, in the order of the table. `real_time`: the order of the lines is the order in which
    things happened; False where lines of several machines were put together."""
    observed = Observed(history)
    found: list[Anomaly] = []
    for look in CHECKS:
        found += look(observed)
    return found + list(_cycles(observed, real_time))


# ---------------------------------------------------------------- records


def _lost(observed: Observed) -> Iterator[Anomaly]:
    for (place, committed_only), read in observed.reads.items():
        if committed_only and observed.lost_markers(place):
            continue
        held = {value for _, _, _, value in read.result["records"]}
        keys = _last_keys(observed, place, read)
        for sends in observed.sends.values():
            for send in sends:
                if send.place != place or not observed.is_acknowledged(send) or send.begun > read.begun:
                    continue
                if send.fields["value"] not in held and not _may_be_missing(observed, send, read, keys):
                    readers = "read_committed readers" if committed_only else "readers"
                    yield Anomaly("lost", f"{send}: {readers} of the whole partition do not find it", (send, read))


def _last_keys(observed: Observed, place: PartitionName, read: Operation) -> dict[str, int]:
    """Key → the highest offset that holds it."""
    last: dict[str, int] = {}
    if place[0] in observed.history.compacts:
        for _, _, offset, value in read.result["records"]:
            for send in observed.sends_of(value):
                key = send.fields.get("key")
                if key is not None:
                    last[key] = max(last.get(key, -1), offset)
    return last


def _may_be_missing(observed: Observed, send: Operation, read: Operation, keys: dict[str, int]) -> bool:
    if observed.lost_lawfully(send):
        return True
    offset = observed.offset_of(send) or 0
    if offset < read.result["start"] and observed.may_be_trimmed(send.place, offset):
        return True
    key = send.fields.get("key")
    return key is not None and keys.get(key, -1) > offset


def _doubled(observed: Observed) -> Iterator[Anomaly]:
    places: dict[str, dict[tuple[PartitionName, int], Seen]] = defaultdict(dict)
    for found in observed.firm():
        sends = observed.sends_of(found.value)
        if not sends or not all(send.fields.get("once", True) for send in sends):
            continue
        if len(sends) > 1 and (not found.by.committed_only or observed.forgot_offsets or observed.forgot_transactions):
            continue  # a transaction whose end or offsets are void may have sent the same
        places[found.value].setdefault((found.place, found.offset), found)
    for value, rows in places.items():
        if len(rows) > 1:
            told = ", ".join(_where(*row) for row in sorted(rows))
            yield Anomaly("doubled", f"{value!r} lies at {told}", tuple(found.by for found in rows.values()))


def _disagreement(observed: Observed) -> Iterator[Anomaly]:
    values: dict[tuple[PartitionName, int], dict[str, Seen]] = defaultdict(dict)
    for found in observed.firm():
        values[found.place, found.offset].setdefault(found.value, found)
    for row, shown in values.items():
        if len(shown) > 1:
            told = " and ".join(f"{found.value!r} ({found.by.client} {found.by.call})" for found in shown.values())
            yield Anomaly("disagreement", f"{_where(*row)} is {told}", tuple(found.by for found in shown.values()))


def _phantom(observed: Observed) -> Iterator[Anomaly]:
    told: set[str] = set()
    for found in observed.seen:
        sends = observed.sends_of(found.value)
        if found.value in told or any(send.outcome != "fail" and send.place == found.place for send in sends):
            continue
        told.add(found.value)
        why = "whose send failed" if sends else "which nobody sent"
        yield Anomaly("phantom", f"{_where(found.place, found.offset)} holds {found.value!r}, {why}", (found.by,))


# ---------------------------------------------------------------- transactions


def _aborted(observed: Observed) -> Iterator[Anomaly]:
    for found in observed.seen:
        sends = [send for send in observed.sends_of(found.value) if send.outcome != "fail"]
        if observed.lost_markers(found.place):
            continue
        if found.by.committed_only and sends and all(observed.status_of(send) == ABORTED for send in sends):
            what = f"{found.by.client} saw {found.value!r} at {_where(found.place, found.offset)}, which was aborted"
            yield Anomaly("aborted", what, (found.by, *sends))


def _half(observed: Observed) -> Iterator[Anomaly]:
    held = {
        place: {value for _, _, _, value in read.result["records"]}
        for (place, committed_only), read in observed.reads.items()
        if committed_only
    }
    for txn, sends in observed.sent_in.items():
        if observed.status(txn) not in (MAYBE, COMMITTED):
            continue
        visible, missing = [], []
        for send in sends:
            read = observed.reads.get((send.place, True))
            if read is None or not send.ok or send.begun > read.begun or observed.lost_markers(send.place):
                continue
            if send.fields["value"] in held[send.place]:
                visible.append(send)
            elif not _may_be_missing(observed, send, read, _last_keys(observed, send.place, read)):
                missing.append(send)
        if visible and missing:
            what = f"transaction {txn}: {visible[0]} is visible, {missing[0]} is not"
            yield Anomaly("half", what, (visible[0], missing[0]))


# ---------------------------------------------------------------- order


def _order(observed: Observed) -> Iterator[Anomaly]:
    last: dict[tuple[str, PartitionName], tuple[int, Operation]] = {}
    for send in observed.history:
        if send.call != "send" or not send.fields.get("once", True):
            continue
        offset = observed.offset_of(send)
        if offset is None or observed.is_shifting(send.place, offset):
            continue
        before = last.get((send.client, send.place))
        if before is not None and before[0] > offset:
            what = f"{send.client} sent {send.fields['value']!r} after {before[1].fields['value']!r}"
            yield Anomaly(
                "order", f"{what}; they lie at {offset} and {before[0]} of {_name(send.place)}", (before[1], send)
            )
        if before is None or offset > before[0]:
            last[send.client, send.place] = (offset, send)


@frozen
class _Run:
    """What a consumer was given of a partition in one assignment."""

    client: str
    group: str | None
    place: PartitionName
    begun: int
    """Where in the history the assignment is."""
    first: int
    """The first offset."""


def _runs(observed: Observed) -> Iterator[_Run | Anomaly]:
    """Each run, and what is wrong inside one."""
    assigned: dict[str, set[PartitionName]] = {}
    groups: dict[str, tuple[str | None, int]] = {}
    at: dict[tuple[str, PartitionName], int] = {}
    known = _visible_offsets(observed)
    for one in observed.history:
        if one.call == "assign":
            now = {(topic, partition) for topic, partition in one.fields["partitions"]}
            for place in assigned.get(one.client, set()) - now:
                at.pop((one.client, place), None)
            assigned[one.client] = now
            groups[one.client] = (one.fields.get("group"), one.begun)
        elif one.call == "poll" and one.ok:
            for topic, partition, offset, _ in one.result["records"]:
                place = (topic, partition)
                before = at.get((one.client, place))
                at[one.client, place] = offset
                if observed.is_shifting(place, offset):
                    continue
                if before is None:
                    group, begun = groups.get(one.client, (one.fields.get("group"), one.begun))
                    yield _Run(one.client, group, place, begun, offset)
                elif offset <= before:
                    yield Anomaly("rewound", f"{one.client} was given {_where(place, offset)} after {before}", (one,))
                else:
                    for passed in range(before + 1, offset):
                        send = known.get((place, passed))
                        if send is not None and not observed.may_be_trimmed(place, passed):
                            what = f"{one.client} went from {before} to {offset} of {_name(place)}, past {send}"
                            yield Anomaly("skipped", what, (one, send))


def _visible_offsets(observed: Observed) -> dict[tuple[PartitionName, int], Operation]:
    """Where acknowledged records lie that every reader meets."""
    return {
        (send.place, offset): send
        for sends in observed.sends.values()
        for send in sends
        if observed.is_acknowledged(send)
        and send.place[0] not in observed.history.compacts
        and (offset := observed.offset_of(send)) is not None
        and not observed.is_shifting(send.place, offset)
    }


def _consumers(observed: Observed) -> Iterator[Anomaly]:
    runs: list[_Run] = []
    for found in _runs(observed):
        if isinstance(found, Anomaly):
            yield found
        else:
            runs.append(found)
    if not (observed.forgot_offsets or observed.forgot_transactions):
        yield from _went_back(observed, runs)
    yield from _group_skips(observed)


def _went_back(observed: Observed, runs: list[_Run]) -> Iterator[Anomaly]:
    commits: dict[tuple[str, PartitionName], list[tuple[int, Operation]]] = defaultdict(list)
    for one in observed.history:
        if one.outcome == "fail" or (one.call == "end" and observed.status(one.fields["txn"]) == ABORTED):
            continue
        if one.call in ("commit", "end") and one.fields.get("group") is not None:
            for topic, partition, offset in one.fields.get("offsets") or ():
                commits[one.fields["group"], (topic, partition)].append((offset, one))
    for run in runs:
        if run.group is None:
            continue
        known = commits.get((run.group, run.place), [])
        done = [row for row in known if row[1].ok and row[1].ended is not None and row[1].ended < run.begun]
        if not done:
            continue
        _, last = max(done, key=lambda row: row[1].ended or 0)
        valid = [offset for offset, one in known if one is last or (one.ended is None or one.ended > last.begun)]
        least = min(valid)
        if run.first < least and not observed.is_shifting(run.place, max(valid)):
            what = f"{run.client} of group {run.group} begins {_name(run.place)} at {run.first}; {least} was committed"
            yield Anomaly("offsets", what, (last,))


def _group_skips(observed: Observed) -> Iterator[Anomaly]:
    given: dict[tuple[str, PartitionName], set[int]] = defaultdict(set)
    groups: dict[str, str | None] = {}
    for one in observed.history:
        if one.call == "assign":
            groups[one.client] = one.fields.get("group")
        group = groups.get(one.client) or one.fields.get("group")
        if one.call == "poll" and one.ok and group is not None:
            for topic, partition, offset, _ in one.result["records"]:
                given[group, (topic, partition)].add(offset)
    known = _visible_offsets(observed)
    for (place, offset), send in known.items():
        for (group, where), offsets in given.items():
            if where != place or offset in offsets or observed.may_be_trimmed(place, offset):
                continue
            if min(offsets) < offset < max(offsets):
                yield Anomaly("skipped", f"nobody in group {group} was given {send}", (send,))


def _cycles(observed: Observed, real_time: bool) -> Iterator[Anomaly]:
    found = cycle(observed, real_time=real_time)
    if found:
        yield Anomaly("cycle", " → ".join(text for text, _ in found), tuple(one for _, one in found if one is not None))


def _name(place: PartitionName) -> str:
    return f"{place[0]}-{place[1]}"


def _where(place: PartitionName, offset: int) -> str:
    return f"{_name(place)}@{offset}"


CHECKS: Final[tuple[Callable[[Observed], Iterator[Anomaly]], ...]] = (
    _lost, _doubled, _disagreement, _phantom, _aborted, _half, _order, _consumers,
)  # fmt: skip
