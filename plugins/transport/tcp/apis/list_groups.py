"""ListGroups (key 16), versions 0-5: groups of this broker.

- Filters by state come from 4, by type from 5; states and types go out likewise.
"""

from __future__ import annotations

from ..api import Api


class ListGroups(Api):
    """Read and written by the generic codec."""
