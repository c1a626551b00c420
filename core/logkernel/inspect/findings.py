"""What a check finds: where, what, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from attrs import asdict, define, field, frozen

ERROR: Final = "error"
"""Something that was durable is damaged, or contradicts something else."""
WARNING: Final = "warning"
"""What a crash or a removal may leave behind; opening the directory puts it right."""

BY_OPENING: Final = "opening the directory (or `logkernel repair`) rebuilds it"
BY_REPAIR: Final = "`logkernel repair` rebuilds it from the records"
CUT: Final = (
    "copy the folder away first if these records matter; `logkernel repair` cuts the log there, a replica or a copy has"
    " the rest"
)


@frozen
class Finding:
    severity: str
    path: str
    position: int | None
    """Byte position in the file, where there is one."""
    what: str
    remedy: str

    def row(self) -> dict[str, Any]:
        return {"kind": "finding", **asdict(self)}


@define
class Report:
    """Collects findings and counts; `advance` is told of bytes as they are done."""

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
