"""Everything that a step may ask."""

from __future__ import annotations

from .asking_groups import AskingGroups
from .asking_shares import AskingShares
from .asking_streams import AskingStreams
from .asking_transactions import AskingTransactions

Producer = tuple[int, int]
"""Producer id and epoch."""


class Steps(AskingGroups, AskingTransactions, AskingShares, AskingStreams):
    """One broker and its answers; every method asks, and tells a line that begins with the name of the step."""
