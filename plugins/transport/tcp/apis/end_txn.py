"""EndTxn (key 26), versions 0-5: commit or abort."""

from __future__ import annotations

from ..api import Api


class EndTxn(Api):
    capabilities = (("transactions_v2", 5),)
