"""What the transport knows of one Kafka API: its versions, and how its messages cross to the versionless side.

Each file in `apis/` subclasses `Api`. Where Kafka's semantics differ by version, the difference crosses
as a capability, or is mended here: `upgrade_*` give the newest form to our side, `downgrade_*` the form
that a version has. Hot APIs override the codecs themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

from logkernel.attrs_lite import frozen
from logkernel.contracts import Buffer

from .loading import load_module
from .wire import Cursor, Part

if TYPE_CHECKING:
    from .messages import Read, Write

DecodeBody = Callable[[memoryview], Any]
EncodeBody = Callable[[Any], list[Part]]
EncodeRequest = Callable[[Any], bytes | bytearray]
EncodeParts = Callable[[Any], Sequence[Buffer]]

NEVER = 1 << 15
"""A version that is never reached."""


@frozen
class Row:
    """A line of the table in `registry`."""

    key: int
    name: str
    """Kafka's name without "Request", e.g. "ListOffsets"."""
    min_version: int
    max_version: int
    flexible_from: int
    """First version with header v2, compact types and tagged fields."""
    family: str
    """Module of `logkernel.requests` that holds the classes."""
    snake: str
    """Name of the file in `apis/`, and of kio's package."""

    @property
    def request_name(self) -> str:
        return f"{self.name}Request"


class Api:
    """One API at all its versions; the codecs are compiled at first use."""

    capabilities: ClassVar[tuple[tuple[str, int], ...]] = ()
    """(capability, first version whose requests carry it in their context)."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.key = row.key
        self._context: dict[int, frozenset[str]] = {}
        self.encode_request: Callable[[int], EncodeRequest] = cache(self.request_encoder)
        """`request_encoder`, `request_parts_encoder` and `response_decoder`, each made once a version."""
        self.encode_request_parts: Callable[[int], EncodeParts] = cache(self.request_parts_encoder)
        self.decode_response: Callable[[int], DecodeBody] = cache(self.response_decoder)

    def capabilities_at(self, version: int) -> frozenset[str]:
        found = self._context.get(version)
        if found is None:
            found = frozenset(name for name, first in self.capabilities if version >= first)
            self._context[version] = found
        return found

    def classes(self, version: int, half: str) -> tuple[Any, Any]:
        from .messages import schema

        name = self.row.name + half.capitalize()
        family = load_module(f"logkernel.requests.{self.row.family}")
        return schema(self.row.snake, version, half, name), getattr(family, name)

    def reader(self, version: int, half: str) -> Read:
        from .messages import reader

        return reader(*self.classes(version, half))

    def writer(self, version: int, half: str) -> Write:
        from .messages import writer

        return writer(*self.classes(version, half))

    # ------------------------------------------------------------ the server's side

    def request_decoder(self, version: int) -> DecodeBody:
        """Reads the body of a request. The view may be reused once the request was submitted."""
        read = self.reader(version, "request")
        upgrade = partial(self.upgrade_request, version)
        return lambda body: upgrade(read(Cursor(body)))

    def response_encoder(self, version: int) -> EncodeBody:
        """Writes the body of a response, as parts to be sent in order."""
        write = self.writer(version, "response")
        downgrade = partial(self.downgrade_response, version)

        def encode(response: Any) -> list[Part]:
            out = bytearray()
            write(out, downgrade(response))
            return [out]

        return encode

    def refusal(self, version: int, request: Any) -> Any:
        """The response where the transport itself must refuse `request`; None where the broker decides."""
        return None

    def upgrade_request(self, version: int, request: Any) -> Any:
        """`request` in the newest form; it is ours to change."""
        return request

    def downgrade_response(self, version: int, response: Any) -> Any:
        """`response` in the form of `version`; the broker's object is not changed."""
        return response

    # ------------------------------------------------------------ the client's side

    def request_encoder(self, version: int) -> EncodeRequest:
        write = self.writer(version, "request")
        downgrade = partial(self.downgrade_request, version)

        def encode(request: Any) -> bytearray:
            out = bytearray()
            write(out, downgrade(request))
            return out

        return encode

    def request_parts_encoder(self, version: int) -> EncodeParts:
        """As `request_encoder`, in parts to be sent in order; they may be views of what the request holds."""
        encode = self.request_encoder(version)
        return lambda request: (encode(request),)

    def response_decoder(self, version: int) -> DecodeBody:
        read = self.reader(version, "response")
        upgrade = partial(self.upgrade_response, version)
        return lambda body: upgrade(read(Cursor.of_trusted(body)))

    def ceiling(self, request: Any) -> int:
        """The highest version that can carry `request`, e.g. names where later versions have only ids."""
        return self.row.max_version

    def downgrade_request(self, version: int, request: Any) -> Any:
        """`request` in the form of `version`. Raises `UnsupportedVersion` where it has no such form."""
        return request

    def upgrade_response(self, version: int, response: Any) -> Any:
        return response


class OrderApi(Api):
    """What a controller alone may send, over a listener where brokers command."""

    def request_decoder(self, version: int) -> DecodeBody:
        read = self.reader(version, "request")
        return lambda body: read(Cursor.of_trusted(body))
