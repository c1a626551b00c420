"""AllocateProducerIds (key 67), version 0: a broker asks for a block of producer ids."""

from __future__ import annotations

from ..api import Api


class AllocateProducerIds(Api):
    """Read and written by the generic codec."""
