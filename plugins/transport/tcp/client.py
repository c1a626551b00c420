"""The client's side of one connection, without I/O.

    state           event                                                      next
    NEGOTIATING     VERSIONS: the peer listed its versions                     READY
    NEGOTIATING     VERSIONS_OF_SASL: it did, and SASL is to follow            CHOOSING, with SaslHandshake
    NEGOTIATING     VERSIONS_REFUSED: UNSUPPORTED_VERSION for ApiVersions      NEGOTIATING, asked again in one it lists
    CHOOSING        CHOSEN: the peer takes the mechanism                       AUTHENTICATING, with a `challenge`
    AUTHENTICATING  CHALLENGED: it answered the mechanism's message            AUTHENTICATING, with a `challenge`
    AUTHENTICATING  AUTHENTICATED: the mechanism has nothing left to say       READY
    READY           REAUTHENTICATE: the session's end comes near (KIP-368)     CHOOSING, with SaslHandshake
    CHOOSING        REFUSED: the peer does not take the mechanism              BROKEN, `feed` raises
    AUTHENTICATING  REFUSED: it does not take what the client shows            BROKEN, `feed` raises
    any             UNREADABLE: bytes that are no response to what was asked   BROKEN, `feed` raises

`TRANSITIONS` is this table. In NEGOTIATING no request can be sent: no common version is known. In READY, `send` puts a
request into the output and `feed` hands out each response with its correlation id. What is sent while a client
authenticates again leaves when it has. BROKEN is final: the driver closes.

A mechanism may wait or compute, so the driver runs it: where `challenge` is not None it calls `ClientMechanism.respond`
with it, and hands the result to `respond`.

Responses come in the order of the requests; a correlation id out of turn is an error, as is anything
that cannot be read, and ends the connection. For each request the highest version is taken that both
sides know and that can carry it (`Api.ceiling`).
"""

from __future__ import annotations

from collections import deque
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from logkernel.contracts import Buffer
from logkernel.errors import (
    IllegalSaslState,
    KafkaError,
    SslAuthenticationException,
    UnsupportedSaslMechanism,
    UnsupportedVersion,
    error_for,
)
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

TLS_ALERT: Final = 0x1503
"""How an alert of TLS begins: its type, and the major version."""
SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36

NEGOTIATING, CHOOSING, AUTHENTICATING, READY, BROKEN = range(5)
VERSIONS, VERSIONS_OF_SASL, VERSIONS_REFUSED, UNREADABLE = range(4)
CHOSEN, CHALLENGED, AUTHENTICATED, REAUTHENTICATE, REFUSED = range(4, 9)

TRANSITIONS: Final = {
    (NEGOTIATING, VERSIONS): READY,
    (NEGOTIATING, VERSIONS_OF_SASL): CHOOSING,
    (NEGOTIATING, VERSIONS_REFUSED): NEGOTIATING,
    (CHOOSING, CHOSEN): AUTHENTICATING,
    (AUTHENTICATING, CHALLENGED): AUTHENTICATING,
    (AUTHENTICATING, AUTHENTICATED): READY,
    (READY, REAUTHENTICATE): CHOOSING,
    **{(state, UNREADABLE): BROKEN for state in range(5)},
    (CHOOSING, REFUSED): BROKEN,
    (AUTHENTICATING, REFUSED): BROKEN,
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

    def __init__(self, client_id: str | None, mechanism: str | None = None, *, is_tls: bool = False) -> None:
        """`mechanism` names that of SASL by which the client says who it is. `is_tls`: it speaks TLS."""
        self.state = NEGOTIATING
        self.peer = ApiVersionsResponse()
        """The ApiVersions response of the broker: its versions and features."""
        self.output: deque[Buffer] = deque()
        self.challenge: bytes | None = None
        """What the client's mechanism has to answer now, empty the first time."""
        self.was_answered = False
        """Whether the broker answered a request, not only that for its versions."""
        self.lifetime_ms = 0
        """How long the session lasts that the last authentication began; 0: it does not end."""
        self.mechanism = mechanism
        self._is_tls = is_tls
        self._held: deque[Buffer] = deque()
        """Requests that came while the client authenticates again ..."""
        self._held_waiting: deque[tuple[int, ClientApiCodec]] = deque()
        """... which then become a part of `_waiting`."""
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
            (self._held_waiting or self._waiting).pop()
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
        output, waiting = self.output, self._waiting
        if self.state in (CHOOSING, AUTHENTICATING) and api.key not in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            output, waiting = self._held, self._held_waiting
        output.append(REQUEST_FRAME_HEAD.pack(size, api.key, version, correlation_id) + codec.client + first)
        output += filter(None, rest)
        self._next_id = (correlation_id + 1) & 0x7FFFFFFF
        waiting.append((correlation_id, codec))
        return correlation_id

    def feed(self, view: memoryview, least_kept: int = 0) -> tuple[int, list[tuple[int, Any]]]:
        """Handle the whole frames at the start of `view`: the bytes used, and (correlation_id, response) of each.

        The records of a response of at least `least_kept` bytes are a view of these bytes, which must not change as
        long as somebody has it; a smaller one is copied. Raises `WireError` where the peer does not speak the
        protocol, `SaslAuthenticationFailed` and `UnsupportedSaslMechanism` where it refuses the client; the connection
        is then of no use.
        """
        done: list[tuple[int, Any]] = []
        try:
            return self._frames(view, least_kept, done), done
        except (WireError, SslAuthenticationException):
            self._take(UNREADABLE)
            raise
        except KafkaError:
            self._take(REFUSED)
            raise

    def _frames(self, view: memoryview, least_kept: int, done: list[tuple[int, Any]]) -> int:
        """As `feed`; the bytes used."""
        if self.state == BROKEN:
            raise WireError("bytes after some that could not be read")
        pos, end = 0, len(view)
        while end - pos >= 4:
            size = I32.unpack_from(view, pos)[0]
            if size >> 16 == TLS_ALERT and self.state == NEGOTIATING and not self._is_tls:
                wanted = "SSL or SASL_SSL" if self.mechanism is None else "SASL_SSL"
                raise SslAuthenticationException(f"the broker speaks TLS; set security.protocol to {wanted}")
            if not 4 <= size <= MAX_RESPONSE_BYTES:
                raise WireError(f"a response of {size} bytes; check that Kafka's protocol is spoken at this port")
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
        response = codec.decode(body[pos:])
        if self.state != READY and codec.api.key in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            self._on_sasl(response)
        else:
            self.was_answered = True
            done.append((correlation_id, response))

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
        if self.mechanism is None:
            self._take(VERSIONS)
        else:
            self._take(VERSIONS_OF_SASL)
            self._choose(self.mechanism)

    # ------------------------------------------------------------ who we are

    def _choose(self, mechanism: str) -> None:
        low, high = self._versions.get(SASL_AUTHENTICATE, (0, -1))
        if high < low:
            raise UnsupportedSaslMechanism("the broker knows no SaslAuthenticate; use one of Kafka 1.0 or later")
        from logkernel.requests.access import SaslHandshakeRequest

        self._write_sasl(SaslHandshakeRequest(mechanism))

    def _write_sasl(self, request: Any) -> None:
        api = registry.load(registry.BY_REQUEST[type(request).__name__].key)
        self._write(api, self.version_for(api, request), request)

    def _on_sasl(self, response: Any) -> None:
        if self.state == CHOOSING:
            if response.error_code:
                offered = ", ".join(response.mechanisms) or "none"
                if response.error_code == UnsupportedSaslMechanism.code:
                    said = f"the broker does not take sasl.mechanism={self.mechanism}; it takes {offered}"
                elif response.error_code == IllegalSaslState.code:
                    said = (
                        "this listener of the broker has no SASL; use the port of one that has it, or set"
                        f" security.protocol to {'SSL' if self._is_tls else 'PLAINTEXT'}"
                    )
                else:
                    said = f"the broker refused SaslHandshake: {error_for(response.error_code)}"
                raise UnsupportedSaslMechanism(said)
            self._take(CHOSEN)
            self.challenge = b""
            return
        if response.error_code:
            said = response.error_message
            if self.mechanism == "OAUTHBEARER" and said and said.startswith("{"):
                said = (
                    f"the broker refuses the token ({said}); check its issuer, audience and lifetime: the broker's log"
                )
                said += " says why"
            raise error_for(response.error_code, said)
        self._take(CHALLENGED)
        self.lifetime_ms = response.session_lifetime_ms
        self.challenge = response.auth_bytes

    def respond(self, message: bytes | None) -> None:
        """Take what the mechanism says to `challenge`; None: it is satisfied, and so is the broker."""
        self.challenge = None
        if message is not None:
            from logkernel.requests.access import SaslAuthenticateRequest

            self._write_sasl(SaslAuthenticateRequest(message))
            return
        self._take(AUTHENTICATED)
        self.output += self._held
        self._waiting += self._held_waiting
        self._held.clear()
        self._held_waiting.clear()

    def reauthenticate(self) -> None:
        """Say again who we are, behind what was sent before; what is sent from now on waits for it."""
        assert self.mechanism is not None
        self._take(REAUTHENTICATE)
        self._choose(self.mechanism)
