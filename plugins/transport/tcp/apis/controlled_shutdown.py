"""ControlledShutdown (key 7), version 3: a broker that is about to stop asks to be relieved."""

from __future__ import annotations

from ..api import Api


class ControlledShutdown(Api):
    """Read and written by the generic codec."""
