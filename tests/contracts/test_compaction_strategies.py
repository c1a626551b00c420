"""The built-in compaction strategies keep the contract."""

from __future__ import annotations

from typing import ClassVar

from logkernel.testing.contracts import CompactionStrategyContract


class TestTimestamp(CompactionStrategyContract):
    name = "timestamp"


class TestHeader(CompactionStrategyContract):
    name = "header"
    settings: ClassVar = {"compaction.strategy.header": "v"}
