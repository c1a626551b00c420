"""Findings of a check: place, problem and remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from attrs import asdict, define, field, frozen

ERROR: Final = "error"
"""Durable data is damaged, or contradicts other data."""
WARNING: Final = "warning"
"""What a crash or an unfinished removal leaves behind; opening the directory repairs it."""

BY_OPENING: Final = "opening the directory (or `logkernel repair`) rebuilds it"
BY_REPAIR: Final = "`logkernel repair` rebuilds it from the records"
CUT: Final = (
    "`logkernel repair` truncates the log there; if the records behind it matter, copy the directory first,"
    " or take them from a replica"
)


@frozen
class Finding:
    """One finding. `severity` is ERROR or WARNING, `what` the problem."""

    severity: str
    path: str
    position: int | None
    """Byte position in the file, or None."""
    what: str
    remedy: str

    def row(self) -> dict[str, Any]:
        return {"kind": "finding", **asdict(self)}


@define
class Report:
    """Collects findings and counts; `advance` gets the number of bytes as they are checked."""

    advance: Callable[[int, str], None] = lambda done, name: None
    findings: list[Finding] = field(factory=list)
    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0

    def error(self, path: str, what: str, remedy: str, position: int | None = None) -> None:
        self.findings.append(Finding(ERROR, path, position, what, remedy))

    def warning(self, path: str, what: str, remedy: str, position: int | None = None) -> None:
        self.findings.append(Finding(WARNING, path, position, what, remedy))

    @property
    def errors(self) -> int:
        return sum(finding.severity == ERROR for finding in self.findings)

    def summary(self) -> dict[str, Any]:
        return {
            "kind": "summary",
            "partitions": self.partitions,
            "segments": self.segments,
            "batches": self.batches,
            "records": self.records,
            "bytes": self.bytes,
            "errors": self.errors,
            "warnings": len(self.findings) - self.errors,
        }
