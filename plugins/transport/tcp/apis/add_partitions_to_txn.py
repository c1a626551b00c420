"""AddPartitionsToTxn (key 24), versions 0-5: partitions join a transaction."""

from __future__ import annotations

from typing import Any

from ..api import Api


class AddPartitionsToTxn(Api):
    def ceiling(self, request: Any) -> int:
        """A client names its one transaction in the fields of version 3; later versions are brokers' own."""
        return self.row.max_version if request.transactions else 3
