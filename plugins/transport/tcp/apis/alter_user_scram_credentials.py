"""AlterUserScramCredentials (key 51), version 0: alter user scram credentials."""

from __future__ import annotations

from ..api import Api


class AlterUserScramCredentials(Api):
    """Read and written by the generic codec."""
