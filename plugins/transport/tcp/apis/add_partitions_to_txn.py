"""AddPartitionsToTxn (key 24), versions 0-5: partitions join a transaction."""

from __future__ import annotations

from ..api import Api


class AddPartitionsToTxn(Api):
    """Read and written by the generic codec."""
