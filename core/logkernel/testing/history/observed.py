"""What a history shows: who sent a value, where it was seen, what became of transactions, and what may be missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from logkernel.attrs_lite import frozen
from logkernel.testing.history.operations import UNTOLD, History, Lawful, Operation, PartitionName

COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
MAYBE: Final = "maybe"
"""A commit was asked for, and nobody knows what came of it."""


@frozen
class Seen:
    """A value at an offset, by an acknowledgement, a poll or a read."""

    place: PartitionName
    offset: int
    value: str
    by: Operation


class Observed:
    def __init__(self, history: History) -> None:
        self.history = history
        self.sends: dict[str, list[Operation]] = defaultdict(list)
        """By value."""
        self.seen: list[Seen] = []
        """Acknowledgements with acks=all, and all that was polled or read."""
        self.sent_in: dict[int, list[Operation]] = defaultdict(list)
        """Transaction → its sends."""
        self.ends: dict[int, Operation] = {}
        """Transaction → the last call that was to end it."""
        self.reads: dict[tuple[PartitionName, bool], Operation] = {}
        """(place, committed only) → the last reading of the whole partition."""
        self.deleted: set[str] = set()
        """Topics that were deleted in this history: nothing has to stay in them."""
        self._trimmed: dict[PartitionName, int] = {}
        self._lawful: dict[PartitionName, list[Lawful]] = defaultdict(list)
        for lawful in history.lawful:
            self._lawful[lawful.place].append(lawful)
        lossy = {lawful.place[0] for lawful in history.lawful}
        self.forgot_offsets = OFFSETS_TOPIC in lossy
        """What groups committed may be gone."""
        self.forgot_transactions = TRANSACTIONS_TOPIC in lossy
        """Transactions may stay as they were for ever, or come to another end than their clients were told."""
        for one in history:
            self._take(one)

    def _take(self, one: Operation) -> None:
        if one.call == "send":
            self.sends[one.fields["value"]].append(one)
            if one.fields.get("txn") is not None:
                self.sent_in[one.fields["txn"]].append(one)
            offset = self.offset_of(one)
            if offset is not None:
                self.seen.append(Seen(one.place, offset, one.fields["value"], one))
        elif one.call in ("poll", "read") and one.ok:
            for topic, partition, offset, value in one.result["records"]:
                self.seen.append(Seen((topic, partition), offset, value, one))
            if one.call == "read":
                self.reads[one.place, one.committed_only] = one
        elif one.call == "end":
            self.ends[one.fields["txn"]] = one
        elif one.call == "delete_records":
            self._trimmed[one.place] = max(self._trimmed.get(one.place, 0), one.fields["before"])
        elif one.call == "delete_topic":
            self.deleted.add(one.fields["topic"])

    # ------------------------------------------------------------ questions

    def sends_of(self, value: str) -> list[Operation]:
        return self.sends.get(value, [])

    def status(self, txn: int) -> str:
        """What became of a transaction: whoever never asked for a commit gets none."""
        end = self.ends.get(txn)
        if end is None or not end.fields["commit"] or end.outcome == "fail":
            return ABORTED
        return COMMITTED if end.ok else MAYBE

    def status_of(self, send: Operation) -> str:
        txn = send.fields.get("txn")
        return COMMITTED if txn is None else self.status(txn)

    def is_acknowledged(self, send: Operation) -> bool:
        """Whether its record has to be there for ever, but for cleanup."""
        return self._is_durable(send) and self.status_of(send) == COMMITTED

    def _is_durable(self, send: Operation) -> bool:
        """Whether its acknowledgement holds. Where coordinators forgot transactions, producers may have got the same
        epochs again, so that what they sent counts as what others sent before."""
        if self.forgot_transactions and send.fields.get("txn") is not None:
            return False
        return send.ok and send.fields.get("acks", "all") == "all"

    def lost_lawfully(self, send: Operation) -> bool:
        """Whether its record may be gone."""
        if send.place[0] in self.deleted:
            return True
        offset = self.offset_of(send)
        return any(
            (offset is None or each.offset <= offset) and send.begun < each.at
            for each in self._lawful.get(send.place, ())
        )

    def lost_markers(self, place: PartitionName) -> bool:
        """Whether ends of transactions may be lost there, lawfully: what was aborted may count as committed then, and
        what was committed may stay invisible."""
        return self.forgot_transactions or place in self._lawful

    def is_shifting(self, place: PartitionName, offset: int) -> bool:
        """Whether an offset meant different records at different times, lawfully."""
        if place[0] in self.deleted:
            return True
        return any(each.offset <= offset for each in self._lawful.get(place, ()))

    def may_be_trimmed(self, place: PartitionName, offset: int) -> bool:
        """Whether somebody asked for its deletion, or its age may have deleted it."""
        return place[0] in self.history.expires or offset < self._trimmed.get(place, 0)

    def firm(self) -> Iterator[Seen]:
        """What was seen at offsets that mean the same record for ever."""
        return (found for found in self.seen if not self.is_shifting(found.place, found.offset))

    def offset_of(self, send: Operation) -> int | None:
        """Where its record lies, as far as its acknowledgement says."""
        offset = int(send.result["offset"]) if self._is_durable(send) else UNTOLD
        return None if offset == UNTOLD else offset
