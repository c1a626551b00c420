"""TxnOffsetCommit (key 28), versions 0-5: offsets that hold when their transaction commits."""

from __future__ import annotations

from ..api import Api


class TxnOffsetCommit(Api):
    capabilities = (("transactions_v2", 5),)
