"""DeleteGroups (key 42), versions 0-2: forget groups without members.

- The same at every version.
"""

from __future__ import annotations

from ..api import Api


class DeleteGroups(Api):
    """Read and written by the generic codec."""
