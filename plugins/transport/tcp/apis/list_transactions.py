"""ListTransactions (key 66), versions 0-2: transactions by state, producer and age."""

from __future__ import annotations

from ..api import Api


class ListTransactions(Api):
    """Read and written by the generic codec."""
