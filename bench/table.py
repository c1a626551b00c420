"""The one table: medians, ratio, and what was aimed at."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

# (start of a row's name, unit, ratio to reach or None, figure to reach or None)
AIMS: tuple[tuple[str, str, float | None, float | None], ...] = (
    ("compaction, none, resident", "MiB", None, None),
    ("compaction, lz4, resident", "MiB", None, None),
    ("compaction", "CPU-s", 1.0, None),
    ("produce 1,000/s, beside", "", None, 2.0),
    ("produce 1,000/s", "ms", None, None),
    ("retention", "s", None, 1.0),
    ("throughput", "MB/s", 1.0, None),
    ("a second", "/s", 1.0, None),
    ("commits", "us", None, None),
    ("transactions", "CPU-ms", None, None),
    ("read_committed / read_uncommitted", "", None, 1.1),
    ("read_", "CPU-s/GB", None, None),
    ("rebalance of 10, classic, join", "ms", 1.0, None),
    ("rebalance of 10, consumer, join", "ms", 1.0, None),
    ("rebalance", "CPU-ms", None, None),
    ("resident, offsets", "MiB", None, None),
    ("until then", "CPU-s", None, None),
    ("start, 1,000,000", "s", None, 2.0),
    ("produce 1000 B, 3 replicas", "CPU-s/GB", 0.5, None),
    ("produce 1000 B, 3 processes", "CPU-s/GB", 0.5, None),
    ("follower, times", "", None, 1.5),
    ("follower", "CPU-s/GB", None, None),
    ("paced, CPU", "CPU-s/s", None, None),
    ("idle, CPU", "CPU-s/s", None, None),
    ("idle, resident", "MB", None, 150.0),
    ("kill -9 of a leader, until another leads", "s", 1.0, 7.0),
    ("kill -9 of a leader, until acknowledged", "s", None, None),
    ("rolling restart, longest", "s", None, 2.0),
    ("rolling restart, client errors", "", None, 0.0),
    ("rolling restart, records", "", None, 0.0),
    ("rolling restart", "s", None, None),
    ("2,000 partitions, failover", "s", None, 3.0),
    ("2,000 partitions, start", "s", None, 10.0),
    ("produce 1000 B, TLS", "CPU-s/GB", 1.0, None),
    ("logins for a CPU second", "", 0.5, None),
    ("produce", "CPU-s/GB", 0.6, None),
    ("consume", "CPU-s/GB", 1.0, None),
    ("50 typical tests", "s", 0.05, None),
    ("open_cluster(3), ready", "ms", None, 150.0),
    ("open_cluster(3), first ack", "ms", None, 20.0),
    ("append, cluster", "CPU-us", None, None),
    ("fetch session of 1,000, idle fetch, p50", "ms", 1.0, None),
    ("fetch session of 1,000, append and fetch, p50", "ms", 1.0, None),
    ("fetch session", "CPU-us", 1.0, None),
    ("latency", "ms", 1.0, None),
    ("start to first answer", "ms", 0.1, 150.0),
    ("resident", "MiB", 0.125, None),
    ("restart", "s", 0.25, None),
    ("1,000 idle connections", "MiB", None, 20.0),
    ("1,000 partitions, created", "s", None, 2.0),
    ("1,000 partitions, opened again", "s", None, 2.0),
)

MORE_IS_BETTER = ("throughput", "a second", "logins for a CPU second")


def _aim(name: str) -> tuple[str, float | None, float | None]:
    name = next((ending for ending in MORE_IS_BETTER if name.endswith(ending)), name)
    for start, unit, ratio, figure in AIMS:
        if name.startswith(start):
            return unit, ratio, figure
    return "", None, None


@dataclass
class Table:
    """Samples by row and column; a column is a broker."""

    columns: list[str]
    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, column: str, found: dict[str, float]) -> None:
        for row, value in found.items():
            self.samples.setdefault(row, {}).setdefault(column, []).append(value)

    def _cells(self, row: str) -> list[str]:
        unit, ratio_aim, figure_aim = _aim(row)
        medians = {column: statistics.median(values) for column, values in self.samples[row].items()}
        cells = [row, unit, *(f"{medians[column]:.3g}" if column in medians else "-" for column in self.columns)]
        ours = medians.get(self.columns[0])
        peer = medians.get("kafka")
        ratio = ours / peer if ours is not None and peer else None
        before = medians.get("before")
        if "before" in self.columns:
            cells.append(f"{ours / before:.3f}" if ours is not None and before else "-")
        cells.append("-" if ratio is None else f"{ratio:.3f}")
        cells.append(self._verdict(row, ours, ratio, ratio_aim, figure_aim))
        return cells

    @staticmethod
    def _verdict(
        row: str, ours: float | None, ratio: float | None, ratio_aim: float | None, figure_aim: float | None
    ) -> str:
        """What the row aims at, and whether it got there, to a hundredth of a ratio."""
        aims, reached = [], []
        if ratio_aim is not None:
            least = row.endswith(MORE_IS_BETTER)
            aims.append(f"{'>=' if least else '<='} {ratio_aim:g}x")
            if ratio is not None:
                reached.append(round(ratio, 2) >= ratio_aim if least else round(ratio, 2) <= ratio_aim)
        if figure_aim is not None:
            aims.append(f"<= {figure_aim:g}")
            if ours is not None:
                reached.append(ours <= figure_aim)
        if not reached:
            return ", ".join(aims)
        return f"{', '.join(aims)}: {'yes' if all(reached) else 'NO'}"

    def text(self) -> str:
        head = ["measure", "unit", *self.columns, *["/ before"] * ("before" in self.columns), "ratio", "aim"]
        rows = [head, *(self._cells(row) for row in self.samples)]
        widths = [max(len(row[index]) for row in rows) for index in range(len(head))]
        lines = []
        for row in rows:
            left, middle, right = row[:2], row[2:-1], row[-1]
            cells = [cell.ljust(width) for cell, width in zip(left, widths, strict=False)]
            cells += [cell.rjust(width) for cell, width in zip(middle, widths[2:], strict=False)]
            lines.append("  ".join([*cells, right]).rstrip())
        return "\n".join(lines)
