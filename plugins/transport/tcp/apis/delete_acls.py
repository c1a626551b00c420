"""DeleteAcls (key 31), versions 1-3: remove the rules that filters match.

- User resources come with version 3 (KIP-373).
"""

from __future__ import annotations

from ..api import Api


class DeleteAcls(Api):
    """Read and written by the generic codec."""
