"""What came before what, as a graph. A cycle in it means that no order of the operations explains what was seen.

    node               lies between
    a call, an end     (nothing: they are what the history tells)
    the write of send  its call and its outcome
    the commit point   the call of `end` and its outcome, and behind all writes of its transaction

| an edge says                          | because |
|---|---|
| call → effect → outcome | an operation takes place while it is under way |
| outcome → the client's later calls | a client does one thing after another |
| outcome → each later call | time (`real_time`) |
| write → the next write of the partition | offsets |
| write, commit point → outcome of a poll | what is seen was written, and committed for read_committed readers |

Two writes of concurrent transactions give no edge between the transactions, so opposite orders in two partitions are no
cycle: Kafka allows these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from logkernel.testing.history.observed import ABORTED, Observed
from logkernel.testing.history.operations import Operation, PartitionName

Node = tuple[str, int]
"""(what of it, number of the operation or line)."""
Step = tuple[str, Operation | None]


def cycle(observed: Observed, *, real_time: bool) -> list[Step]:
    """A cycle, as texts and their operations; empty where there is none."""
    graph = _Graph(observed)
    if real_time:
        graph.add_time("moment", observed.history)
    return [graph.tell(node) for node in graph.find()]


class _Graph:
    def __init__(self, observed: Observed) -> None:
        self.observed = observed
        self.edges: dict[Node, list[Node]] = defaultdict(list)
        self._add_operations()
        self._add_offsets()
        self._add_sights()

    def add(self, before: Node, after: Node) -> None:
        self.edges[before].append(after)

    def _add_operations(self) -> None:
        clients: dict[str, list[Operation]] = defaultdict(list)
        for one in self.observed.history:
            clients[one.client].append(one)
            self.add(("call", one.number), ("effect", one.number))
            if one.ended is not None and one.outcome != "unknown":
                self.add(("effect", one.number), ("end", one.number))
            if one.call == "end" and one.outcome != "fail":
                for send in self.observed.sent_in[one.fields["txn"]]:
                    if send.ok:
                        self.add(("effect", send.number), ("effect", one.number))
        for operations in clients.values():
            self.add_time("turn", operations)

    def add_time(self, what: str, operations: Iterable[Operation]) -> None:
        """Outcomes come before later calls: a chain of moments, one for each line, so that there are few edges."""
        events: list[tuple[int, Node, bool]] = []
        for one in operations:
            events.append((one.begun, ("call", one.number), True))
            if one.ended is not None:
                events.append((one.ended, ("end", one.number), False))
        before: Node | None = None
        for line, node, is_call in sorted(events):
            moment = (what, line)
            self.add(*((moment, node) if is_call else (node, moment)))
            if before is not None:
                self.add(before, moment)
            before = moment

    def _add_offsets(self) -> None:
        placed: dict[int, set[tuple[PartitionName, int]]] = defaultdict(set)
        for found in self.observed.firm():
            sends = [send for send in self.observed.sends_of(found.value) if send.outcome != "fail"]
            if len(sends) == 1 and sends[0].fields.get("once", True):
                placed[sends[0].number].add((found.place, found.offset))
        rows = sorted((*place, number) for number, places in placed.items() if len(places) == 1 for place in places)
        for (place, _, before), (other, _, after) in pairwise(rows):
            if place == other:
                self.add(("effect", before), ("effect", after))

    def _add_sights(self) -> None:
        for found in self.observed.seen:
            if found.by.call == "send":
                continue
            sends = [send for send in self.observed.sends_of(found.value) if send.outcome != "fail"]
            if len(sends) != 1:
                continue
            send, txn = sends[0], sends[0].fields.get("txn")
            seen = ("effect", send.number)
            if txn is not None and found.by.committed_only and self.observed.status(txn) != ABORTED:
                seen = ("effect", self.observed.ends[txn].number)
            self.add(seen, ("end", found.by.number))

    # ------------------------------------------------------------ cycles

    def find(self) -> list[Node]:
        """The nodes of a cycle, the first of them again at the end; depth first, without recursion."""
        done: set[Node] = set()
        for root in list(self.edges):
            path: list[Node] = []
            within: set[Node] = set()
            stack: list[tuple[Node, int]] = [(root, 0)]
            while stack:
                node, index = stack.pop()
                if index == 0:
                    if node in done:
                        continue
                    path.append(node)
                    within.add(node)
                following = self.edges.get(node, [])
                if index < len(following):
                    stack.append((node, index + 1))
                    target = following[index]
                    if target in within:
                        return [*path[path.index(target) :], target]
                    if target not in done:
                        stack.append((target, 0))
                else:
                    path.pop()
                    within.discard(node)
                    done.add(node)
        return []

    def tell(self, node: Node) -> Step:
        what, number = node
        if what in ("moment", "turn"):
            return f"line {number + 1}", None
        one = self.observed.history.operations[number]
        return f"{what} of {one}", one
