"""CreateAcls (key 30), versions 1-3: add rules.

- User resources come with version 3 (KIP-373).
"""

from __future__ import annotations

from ..api import Api


class CreateAcls(Api):
    """Read and written by the generic codec."""
