"""DeleteAcls (key 31), versions 1-3: delete acls."""

from __future__ import annotations

from ..api import Api


class DeleteAcls(Api):
    """Read and written by the generic codec."""
