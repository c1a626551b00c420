"""How requests of one API and version are read and answered, and a request that waits for its answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from logkernel.attrs_lite import mutable

from . import registry
from .api import Api, DecodeBody, EncodeBody
from .frames import FLEXIBLE_FRAME_HEAD, FRAME_HEAD
from .wire import Part

SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
OWN_KEYS: Final = frozenset({registry.API_VERSIONS_KEY, SASL_HANDSHAKE, SASL_AUTHENTICATE})
"""APIs that a connection may answer, not the broker."""


class ApiCodec:
    """One API at one version: how its requests are decoded and its responses encoded, looked up once."""

    __slots__ = (
        "api", "capabilities", "decode", "encode", "flexible", "frame_head", "head_bytes", "is_own", "key", "refusal",
        "version",
    )  # fmt: skip

    def __init__(self, api: Api, version: int) -> None:
        self.api = api
        self.key = api.key
        self.is_own = api.key in OWN_KEYS
        self.version = version
        self.flexible = version >= api.row.flexible_from
        head = FLEXIBLE_FRAME_HEAD if self.flexible and api.key != registry.API_VERSIONS_KEY else FRAME_HEAD
        self.frame_head: Callable[[int, int], bytes] = head.pack
        self.head_bytes = head.size - 4
        """Of the response header, without the frame's size."""
        self.decode: DecodeBody = api.request_decoder(version)
        self.encode: EncodeBody = api.response_encoder(version)
        self.capabilities = api.capabilities_at(version)
        refuses = type(api).refusal is not Api.refusal
        self.refusal: Callable[[Any], Any] | None = partial(api.refusal, version) if refuses else None


@mutable
class PendingResponse:
    """A request whose response has not been sent. `parts` is None until it is answered."""

    codec: ApiCodec
    correlation_id: int
    silent: bool
    """Whether the client expects no response (acks=0)."""
    parts: list[Part] | None = None
    last: bool = False
    """Whether the connection is closed after this response."""
