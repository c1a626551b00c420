"""ElectLeaders (key 43), versions 0-2: preferred or unclean elections.

- Version 0 asks for preferred leaders only, and has no error of the whole.
"""

from __future__ import annotations

from ..api import Api


class ElectLeaders(Api):
    """Read and written by the generic codec."""
