"""AlterUserScramCredentials (key 51), version 0: set and remove users' credentials."""

from __future__ import annotations

from ..api import Api


class AlterUserScramCredentials(Api):
    """Read and written by the generic codec."""
