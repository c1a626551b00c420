"""The client's side of one connection, without I/O.

    state         event                                                        next
    NEGOTIATING   VERSIONS: the peer listed its versions                       READY
    NEGOTIATING   VERSIONS_REFUSED: UNSUPPORTED_VERSION for ApiVersions        NEGOTIATING, asked again in one it lists
    any           UNREADABLE: bytes that are no response to what was asked     BROKEN, `feed` raises

`TRANSITIONS` is this table. In NEGOTIATING no request can be sent: no common version is known. In READY, `send` puts a
request into the output and `feed` hands out each response with its correlation id. BROKEN is final: the driver closes.

Responses come in the order of the requests; a correlation id out of turn is an error, as is anything
that cannot be read, and ends the connection. For each request the highest version is taken that both
sides know and that can carry it (`Api.ceiling`).
"""

from __future__ import annotations

from collections import deque
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from logkernel.contracts import Buffer
from logkernel.errors import UnsupportedVersion
from logkernel.requests.api_versions import ApiVersionsRequest, ApiVersionsResponse

from . import registry
from .api import Api
from .frames import MIN_REQUEST, REQUEST_FRAME_HEAD, client_part, skip_tags
from .wire import DECODE_ERRORS, I16, I32, WireError, fault

SOFTWARE_NAME: Final = "logkernel"
MAX_RESPONSE_BYTES: Final = 1 << 30
PRODUCE: Final = 0
FIRST_SERVED_PRODUCE: Final = 3
"""Produce 0 to 2 are advertised by brokers that refuse them."""

NEGOTIATING, READY, BROKEN = range(3)
VERSIONS, VERSIONS_REFUSED, UNREADABLE = range(3)

TRANSITIONS: Final = {
    (NEGOTIATING, VERSIONS): READY,
    (NEGOTIATING, VERSIONS_REFUSED): NEGOTIATING,
    (NEGOTIATING, UNREADABLE): BROKEN,
    (READY, UNREADABLE): BROKEN,
    (BROKEN, UNREADABLE): BROKEN,
}
"""(state, event) → next state. There is no other event."""


def software_version() -> str:
    try:
        return version(SOFTWARE_NAME)
    except PackageNotFoundError:
        return "0"


class ClientApiCodec:
    """One API at one version: how its requests are encoded and its responses decoded, and how its frames begin."""

    __slots__ = ("api", "client", "decode", "encode", "is_tagged", "version")

    def __init__(self, api: Api, version: int, client_id: str | None) -> None:
        flexible = version >= api.row.flexible_from
        self.api = api
        self.version = version
        self.encode = api.encode_request_parts(version)
        self.decode = api.decode_response(version)
        self.client = client_part(client_id, flexible)
        self.is_tagged = flexible and api.key != registry.API_VERSIONS_KEY
        """Whether the header of a response has tagged fields."""


class ClientConnection:
    """See the module. `output` is what the driver has to send, in parts: none of them is empty, and those that are
    records lie where the request has them."""

    def __init__(self, client_id: str | None) -> None:
        self.state = NEGOTIATING
        self.peer = ApiVersionsResponse()
        """The ApiVersions response of the broker: its versions and features."""
        self.output: deque[Buffer] = deque()
        self._versions: dict[int, tuple[int, int]] = {}
        self._client_id = client_id
        self._next_id = 0
        self._codecs: dict[tuple[int, int], ClientApiCodec] = {}
        self._waiting: deque[tuple[int, ClientApiCodec]] = deque()
        """(correlation id, codec) of the requests without a response."""
        self._ask_versions(registry.BY_KEY[registry.API_VERSIONS_KEY].max_version)

    def send(self, request: Any, withheld: frozenset[str] = frozenset()) -> int | None:
        """Put `request` into the output. Return its correlation id, or None where there will be no response (acks=0).

        No version is used that has a capability of `withheld`. Raises `UnsupportedVersion` where no common
        version can carry the request.
        """
        row = registry.BY_REQUEST.get(type(request).__name__)
        if row is None:
            raise UnsupportedVersion(
                f"{type(request).__name__} has no form in Kafka's protocol; send it within a process"
            )
        api = registry.load(row.key)
        correlation_id = self._write(api, self.version_for(api, request, withheld), request)
        if api.key == PRODUCE and request.acks == 0:
            self._waiting.pop()
            return None
        return correlation_id

    @property
    def features(self) -> dict[str, int]:
        """Finalized feature → level, as the peer told it."""
        return {row.name: row.max_version_level for row in self.peer.finalized_features}

    def version_for(self, api: Api, request: Any, withheld: frozenset[str] = frozenset()) -> int:
        row = api.row
        low, high = self._versions.get(row.key, (0, -1))
        lowest = FIRST_SERVED_PRODUCE if row.key == PRODUCE else row.min_version
        chosen = min(high, row.max_version, api.ceiling(request))
        if withheld:
            chosen = min([chosen, *(first - 1 for name, first in api.capabilities if name in withheld)])
        if chosen < max(low, lowest):
            theirs = f"{low} to {high}" if high >= 0 else "no version"
            raise UnsupportedVersion(f"{row.name}: the broker serves {theirs}, this request needs {lowest} or later")
        return chosen

    def _write(self, api: Api, version: int, request: Any) -> int:
        codec = self._codecs.get((api.key, version))
        if codec is None:
            codec = self._codecs[api.key, version] = ClientApiCodec(api, version, self._client_id)
        correlation_id = self._next_id
        first, *rest = codec.encode(request)
        size = MIN_REQUEST + len(codec.client) + len(first)
        for part in rest:
            size += len(part)
        self.output.append(REQUEST_FRAME_HEAD.pack(size, api.key, version, correlation_id) + codec.client + first)
        self.output += filter(None, rest)
        self._next_id = (correlation_id + 1) & 0x7FFFFFFF
        self._waiting.append((correlation_id, codec))
        return correlation_id

    def feed(self, view: memoryview, least_kept: int = 0) -> tuple[int, list[tuple[int, Any]]]:
        """Handle the whole frames at the start of `view`: the bytes used, and (correlation_id, response) of each.

        The records of a response of at least `least_kept` bytes are a view of these bytes, which must not change as
        long as somebody has it; a smaller one is copied. Raises `WireError` where the peer does not speak the
        protocol; the connection is then of no use.
        """
        done: list[tuple[int, Any]] = []
        try:
            return self._frames(view, least_kept, done), done
        except WireError:
            self._take(UNREADABLE)
            raise

    def _frames(self, view: memoryview, least_kept: int, done: list[tuple[int, Any]]) -> int:
        """As `feed`; the bytes used."""
        if self.state == BROKEN:
            raise WireError("bytes after some that could not be read")
        pos, end = 0, len(view)
        while end - pos >= 4:
            size = I32.unpack_from(view, pos)[0]
            if not 4 <= size <= MAX_RESPONSE_BYTES:
                raise WireError(f"a response of {size} bytes")
            if end - pos - 4 < size:
                break
            body = view[pos + 4 : pos + 4 + size].toreadonly()
            if size < least_kept:
                body = memoryview(bytes(body))
            pos += 4 + size
            try:
                self._on_response(body, done)
            except DECODE_ERRORS as error:
                raise WireError(f"a response that cannot be read: {fault(error)}") from error
        return pos

    def _take(self, event: int) -> None:
        self.state = TRANSITIONS[self.state, event]

    def _on_response(self, body: memoryview, done: list[tuple[int, Any]]) -> None:
        if not self._waiting:
            raise WireError("a response to no request")
        correlation_id, codec = self._waiting.popleft()
        got = I32.unpack_from(body)[0]
        if got != correlation_id:
            raise WireError(f"correlation id {got} where {correlation_id} is due")
        if self.state == NEGOTIATING:
            self._on_versions(codec.api, codec.version, body[4:])
            return
        pos = 4
        if codec.is_tagged:
            pos = skip_tags(body, 4) if body[4] else 5
        done.append((correlation_id, codec.decode(body[pos:])))

    # ------------------------------------------------------------ versions

    def _ask_versions(self, version: int) -> None:
        request = ApiVersionsRequest(SOFTWARE_NAME, software_version())
        self._write(registry.load(registry.API_VERSIONS_KEY), version, request)

    def _on_versions(self, api: Api, version: int, body: memoryview) -> None:
        refused = I16.unpack_from(body)[0] == UnsupportedVersion.code
        response = api.decode_response(0 if refused else version)(body)
        if refused and version > 0:
            self._take(VERSIONS_REFUSED)
            listed = [row.max_version for row in response.api_keys if row.api_key == api.key]
            self._ask_versions(min(version - 1, max(listed, default=0)))
            return
        if response.error_code:
            raise WireError(f"ApiVersions was answered with error {response.error_code}")
        self.peer = response
        self._versions = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
        self._take(VERSIONS)
