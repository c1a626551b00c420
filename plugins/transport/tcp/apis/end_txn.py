"""EndTxn (key 26), versions 0-5: commit or abort."""

from __future__ import annotations

from ..api import Api


class EndTxn(Api):
    """Read and written by the generic codec."""
