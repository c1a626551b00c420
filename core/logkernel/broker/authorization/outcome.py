"""What a guard decides about a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from logkernel.errors import KafkaError


class Answered(NamedTuple):
    """Nothing is left of the request: this is the response."""

    response: Any


class Refused(NamedTuple):
    """The request as a whole failed with this error."""

    error: type[KafkaError]


class Part(NamedTuple):
    """Answer this request, and amend its response."""

    request: Any
    amend: Callable[[Any], Any]


Outcome = Answered | Refused | Part | None
"""None: the request is answered as it is."""
