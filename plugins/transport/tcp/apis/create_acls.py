"""CreateAcls (key 30), versions 1-3: create acls."""

from __future__ import annotations

from ..api import Api


class CreateAcls(Api):
    """Read and written by the generic codec."""
