"""The server's side of one connection, without I/O.

Bytes go in by `feed`, parts to send come out by `take`. A request whose frame is whole is decoded and
handed to the broker's door at once; its answer may come at once, later, or after that of a later request.
Each request holds a place in a queue, and answers leave in the order of the queue.

    state     event                                                           next
    OPEN      REFUSED: the bytes are no frame, or no known request            DRAINING, with one log line
    OPEN      UNANSWERABLE: the broker raised, or an answer is unencodable    DRAINING, with one log line
    OPEN      LAST_ANSWERED: a produce with acks=0 failed, or authentication  DRAINING, in its turn
    any       LOST: the driver lost or closed the socket                      CLOSED

`TRANSITIONS` is this table. In OPEN, requests are submitted and answers move to the output in their turn. In DRAINING
nothing more is read or answered; the driver sends what is in the output, then closes. In CLOSED later answers are
dropped.

Back-pressure: `feed` stops early, and `wants_data` is False, while `MAX_UNANSWERED` requests are unanswered,
`MAX_OUTPUT_BYTES` of output wait in memory, or the connection is muted: a quota holds the client back, whose answers
leave all the same (KIP-219). File slices are not in memory and do not count. `feed` stops early as well, with
`wants_data` True, after `MAX_A_TURN` requests: a flood of small ones, each answered at once, would hold up the other
connections.

Re-entrancy: an answer may be given inside `submit`, inside `feed`. It only moves to the output; `wake`,
which tells the driver to send, is not called while `feed` runs, as the driver sends after it anyhow.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import get_ident
from typing import Any, Final

from logkernel.contracts import BrokerDoor, ListenerSecurity, RequestContext
from logkernel.vocabulary import ANONYMOUS, FileSlice, Principal

from . import registry
from .codecs import OWN_KEYS, SASL_HANDSHAKE, ApiCodec, PendingResponse
from .frames import MIN_REQUEST, REQUEST_HEAD, diagnose, read_client_id, skip_tags
from .muting import QUOTA
from .refused import Refused, write, write_closed
from .releases import NEWEST, Release
from .sasl_gate import Offload
from .sasl_server import Pause, SaslConnection
from .versions import Versions
from .wire import DECODE_ERRORS, ENCODE_ERRORS, I32, Part, WireError, fault

log = logging.getLogger("logkernel.tcp")

MAX_UNANSWERED: Final = 100
MAX_OUTPUT_BYTES: Final = 1 << 20
SMALL_SLICE_BYTES: Final = 16 << 10
"""File slices below this size are read and joined with their neighbours, which costs less than sendfile."""

MAX_A_TURN: Final = 100
"""Requests that one connection may have handled before the others have their turn."""

OPEN, DRAINING, CLOSED = range(3)
REFUSED, UNANSWERABLE, LAST_ANSWERED, LOST = range(4)

TRANSITIONS: Final = {
    (OPEN, REFUSED): DRAINING,
    (OPEN, UNANSWERABLE): DRAINING,
    (OPEN, LAST_ANSWERED): DRAINING,
    (OPEN, LOST): CLOSED,
    (DRAINING, LOST): CLOSED,
    (CLOSED, LOST): CLOSED,
}
"""(state, event) → next state; an event that is not listed for a state changes nothing."""

REMEDY: Final = "use a client that asks by ApiVersions what is served"
MAX_STRAY_BYTES: Final = 4096
"""Of a request that strays into an authentication and is answered: to write that answer takes its names."""

PRODUCE: Final = 0
FETCH: Final = 1


def no_clock() -> int:
    return 0


class HoldBack:
    """`RequestContext.mute` and `reading_ns` of a connection, which it keeps only as long as that lives."""

    __slots__ = ("connection",)

    def __init__(self, connection: ServerConnection) -> None:
        self.connection: ServerConnection | None = connection

    def __call__(self, for_ms: int) -> None:
        if self.connection is not None:
            self.connection.hold_back(for_ms)

    def reading_ns(self) -> int:
        return 0 if self.connection is None else self.connection.reading_ns()


class ServerConnection:
    """See the module. Not thread-safe but for `answer`s, which `defer` brings to the owner's thread."""

    __slots__ = (
        "_client",
        "_client_host",
        "_closed",
        "_contexts",
        "_defer",
        "_feeding",
        "_gate",
        "_hold_back",
        "_limit",
        "_listener",
        "_mono_ns",
        "_most_unanswered",
        "_mute_for",
        "_muted",
        "_read_ns",
        "_refused",
        "_thread",
        "_times_reading",
        "_versions",
        "_wake",
        "client_id",
        "codecs",
        "door",
        "has_more",
        "id",
        "output",
        "output_bytes",
        "peer",
        "principal",
        "software",
        "state",
        "unanswered",
    )  # fmt: skip

    def __init__(
        self,
        door: BrokerDoor,
        codecs: dict[tuple[int, int], ApiCodec],
        *,
        connection_id: int,
        peer: str,
        client_host: str,
        listener: str,
        max_request_bytes: int,
        wake: Callable[[], None],
        mute: Callable[[int], None],
        defer: Callable[..., Any],
        release: Release = NEWEST,
        security: ListenerSecurity | None = None,
        refused: Refused = write,
        closed: Refused = write_closed,
        pause: Pause | None = None,
        offload: Offload | None = None,
        mono_ns: Callable[[], int] = no_clock,
    ) -> None:
        """`pause` and `offload` are needed where `security` has mechanisms. `mono_ns` is a monotonic clock: of how long
        requests are read, once a quota asks for that, and of when a client authenticates again."""
        self.door = door
        self._versions = Versions(door, listener, release)
        self.codecs = codecs
        self.peer = peer
        self.state = OPEN
        self.output: deque[Part] = deque()
        self.output_bytes = 0
        """Bytes of `output` that are in memory."""
        self.unanswered: deque[PendingResponse] = deque()
        self.id = connection_id
        self._client_host = client_host
        self._listener = listener
        self._refused = refused
        self._closed = closed
        self._limit = max_request_bytes
        """Of a request; below 0 every frame is a token of SASL."""
        self.principal: Principal | None = ANONYMOUS if security is None else None
        """Who the client is; None until that is known. No request but SASL's is taken before."""
        self._gate: SaslConnection | None = None
        if security is not None and security.mechanisms:
            assert pause is not None
            assert offload is not None
            self._gate = SaslConnection(self, security, max_request_bytes, pause, offload, mono_ns)
        self._wake = wake
        self._mute_for = mute
        self._hold_back = HoldBack(self)
        self._defer = defer
        self._thread = get_ident()
        self._mono_ns = mono_ns
        self._times_reading = False
        self._read_ns = 0
        """How long the last request took to be decoded."""
        self._feeding = False
        self._muted = 0
        """Why: reasons of `muting`."""
        self._most_unanswered = MAX_UNANSWERED
        """0 while it is muted."""
        self.has_more = False
        """Whether the last `feed` stopped before bytes that it could have handled."""
        self.software = ("", "")
        self._client = b""
        """The client id as the last request had it, with its length; `client_id` is what it says."""
        self.client_id: str | None = None
        self._contexts: dict[ApiCodec, RequestContext] = {}
        """Of that client."""

    @property
    def wants_data(self) -> bool:
        room = len(self.unanswered) < self._most_unanswered and self.output_bytes < MAX_OUTPUT_BYTES
        return self.state == OPEN and room and not (self.has_more and self._fetch_waits())

    @property
    def idle(self) -> bool:
        """Whether nothing is owed to the client."""
        return not self.unanswered and not self.output

    # ------------------------------------------------------------ in

    def feed(self, view: memoryview) -> int:
        """Handle the whole frames at the start of `view`; returns the bytes used.

        The rest is to be fed again, longer, or as it is once `wants_data` is True again. Once the
        connection ends, whatever comes is dropped.
        """
        pos, end = 0, len(view)
        if self.state != OPEN:
            return end
        self._feeding = True
        self.has_more = False
        left = MAX_A_TURN
        try:
            while end - pos >= 4:
                full = len(self.unanswered) >= self._most_unanswered or self.output_bytes >= MAX_OUTPUT_BYTES
                if left == 0 or full or self.state != OPEN or (self.unanswered and self._fetch_waits()):
                    self.has_more = True
                    break
                size = I32.unpack_from(view, pos)[0]
                if not MIN_REQUEST <= size <= self._limit:
                    used = self._feed_token(view[pos:], size)
                    if used:
                        pos += used
                        left -= 1
                        continue
                    break
                start = pos + 4
                if end - start < size:
                    break
                pos = start + size
                left -= 1
                self._on_request(view[start:pos])
        finally:
            self._feeding = False
        return pos if self.state == OPEN else end

    def _fetch_waits(self) -> bool:
        """Whether the last request is a Fetch that waits for records. What comes behind it is looked at when it is
        answered, as by Kafka: an end offset told by ListOffsets would be older than what the Fetch brings, and Kafka's
        consumer sets its watermark back by it."""
        last = self.unanswered[-1] if self.unanswered else None
        return last is not None and last.codec.key == FETCH and last.parts is None

    def _feed_token(self, view: memoryview, size: int) -> int:
        """A frame that is no request: a token of SASL after SaslHandshake v0, else refused. Returns the bytes used."""
        if self._limit >= 0 or self._gate is None or not 0 <= size <= self._gate.max_token_bytes:
            protocol = "PLAINTEXT" if self._gate is None else "SASL_PLAINTEXT"
            self.refuse(diagnose(bytes(view[:4]), size, *self._most_bytes(), protocol))
        elif len(view) >= 4 + size:
            self._gate.on_token(bytes(view[4 : 4 + size]))
            return 4 + size
        return 0

    def _most_bytes(self) -> tuple[int, str]:
        """The bytes that a frame may have, and the setting that says so."""
        if self._gate is not None and self.principal is None:
            return self._gate.max_token_bytes, "sasl.server.max.receive.size"
        return self._limit, "socket.request.max.bytes"

    def _on_request(self, body: memoryview) -> None:
        begun_ns = self._mono_ns() if self._times_reading else 0
        key, version, correlation_id = REQUEST_HEAD.unpack_from(body)
        if self.principal is None and self._turned_away_unread(key, len(body)):
            return
        try:
            codec = self.codecs.get((key, version)) or self._codec(key, version, correlation_id)
            if codec is None:
                return
            pos = MIN_REQUEST + len(self._client)
            if not self._client or body[MIN_REQUEST:pos] != self._client:
                pos = self._meet(body)
            if codec.flexible:
                pos = skip_tags(body, pos) if body[pos] else pos + 1
            request = codec.decode(body[pos:])
        except DECODE_ERRORS as error:
            name = registry.BY_KEY[key].name
            self.refuse(f"a {name} request of version {version} that is not one: {fault(error)}")
            return
        if begun_ns:
            self._read_ns = self._mono_ns() - begun_ns
        pending = PendingResponse(codec, correlation_id, key == PRODUCE and request.acks == 0)
        self.unanswered.append(pending)
        self.submit(pending, request)

    def _meet(self, body: memoryview) -> int:
        """Another client asks than before, as a rule the first one; returns where its id ends."""
        self.client_id, pos = read_client_id(body, MIN_REQUEST)
        self._client = bytes(body[MIN_REQUEST:pos])
        self._contexts.clear()
        return pos

    def submit(self, pending: PendingResponse, request: Any) -> None:
        """Have a decoded request answered, here or by the broker."""
        codec = pending.codec
        if codec.is_own and self._answers(pending, request):
            return
        context = self._contexts.get(codec) or self._context(codec)
        if context is None:
            self._turn_away(pending, request)
            return
        if codec.refusal is not None:
            refusal = codec.refusal(request)
            if refusal is not None:
                self.answer(pending, refusal)
                return
        try:
            self.door.submit(request, context, partial(self.answer, pending))
        except Exception:
            log.exception("connection failed peer=%s: the broker raised on %s", self.peer, codec.api.row.request_name)
            self._end(UNANSWERABLE)

    def _codec(self, key: int, version: int, correlation_id: int) -> ApiCodec | None:
        row = self._versions.row(key)
        if row is None:
            self.refuse(f"a request of API key {key}, version {version}, which is not served here; {REMEDY}")
        elif not row.min_version <= version <= row.max_version:
            if key == registry.API_VERSIONS_KEY:
                self._answer_unknown_api_versions(correlation_id)
            else:
                span = f"{row.min_version} to {row.max_version}"
                self.refuse(f"a {row.name} request of version {version}, and served are {span}; {REMEDY}")
        else:
            codec = self.codecs[key, version] = ApiCodec(registry.load(key), version)
            return codec
        return None

    def _answers(self, pending: PendingResponse, request: Any) -> bool:
        """Answer what is asked of the connection itself; False: it is asked of the broker."""
        key, gate = pending.codec.key, self._gate
        if key == registry.API_VERSIONS_KEY:
            if gate is None or gate.on_versions(pending, request):
                self.answer(pending, self._api_versions(pending.codec.version, request))
            return True
        if gate is None:
            return False
        return (
            gate.on_handshake(pending, request)
            if key == SASL_HANDSHAKE
            else gate.on_authenticate(pending, request.auth_bytes)
        )

    def _context(self, codec: ApiCodec) -> RequestContext | None:
        """What the broker is told of the client; None: it is not known who that is."""
        name, version = self.software
        if self.principal is None:
            return None
        commands = bool(self.door.commands(self._listener))
        context = self._contexts[codec] = RequestContext(
            self.client_id, self._client_host, self.id, self._listener, name, version, codec.capabilities,
            commands=commands, mute=self._hold_back, principal=self.principal, reading_ns=self._hold_back.reading_ns,
        )  # fmt: skip
        return context

    def _turned_away_unread(self, key: int, size: int) -> bool:
        """Whether a request, which came before it is known who the client is, was refused without a look at it: to
        read one costs many times what it costs to send."""
        gate = self._gate
        if gate is None or key in OWN_KEYS or (gate.is_exchanging and size <= MAX_STRAY_BYTES):
            return False
        row = registry.BY_KEY.get(key)
        gate.on_unread(f"a request of API key {key}" if row is None else row.name)
        return True

    def _turn_away(self, pending: PendingResponse, request: Any) -> None:
        """A request came before it is known who the client is."""
        if self._gate is None:
            self.refuse(f"{pending.codec.api.row.name} before its TLS handshake ended; connect again")
        else:
            self._gate.on_other(pending, request)

    # ------------------------------------------------------------ who the client is

    def identify(self, principal: Principal | None) -> None:
        """Take requests from `principal` from now on; None: take none until it is known again."""
        self.principal = principal
        self._contexts.clear()

    def limit_requests(self, limit: int) -> None:
        """The bytes that a request may have; -1: what comes are tokens of SASL, without Kafka's headers."""
        self._limit = limit

    # ------------------------------------------------------------ held back by a quota

    def reading_ns(self) -> int:
        """How long the present request took to be decoded; it is timed from the first call on."""
        self._times_reading = True
        return self._read_ns

    def hold_back(self, for_ms: int) -> None:
        """Read no request for so long."""
        if get_ident() != self._thread:
            self._defer(self.hold_back, for_ms)
        elif self.state == OPEN:
            self.mute(QUOTA)
            self._mute_for(for_ms)  # the driver unmutes it when the time is over

    def mute(self, reason: int) -> None:
        """Take no request, for one of the reasons of `muting`, until `unmute`."""
        self._muted |= reason
        self._most_unanswered = 0

    def unmute(self, reason: int) -> None:
        self._muted &= ~reason
        if not self._muted:
            self._most_unanswered = MAX_UNANSWERED

    # ------------------------------------------------------------ ApiVersions, answered here

    def _api_versions(self, version: int, request: Any) -> Any:
        response = self._versions.answer(version, request, self.hold_back)
        if version >= 3 and not response.error_code:
            self.software = (request.client_software_name, request.client_software_version)
            self._contexts.clear()
        if self._gate is not None and not response.error_code:
            self._gate.told_versions()
        return response

    def _answer_unknown_api_versions(self, correlation_id: int) -> None:
        from logkernel.requests.api_versions import ApiVersionsRequest

        key = registry.API_VERSIONS_KEY
        codec = self.codecs.get((key, 0)) or self._codec(key, 0, correlation_id)
        assert codec is not None
        pending = PendingResponse(codec, correlation_id, False)
        self.unanswered.append(pending)
        if self._gate is None or self._gate.on_versions(pending, ApiVersionsRequest()):
            self.answer(pending, self._versions.answer_unknown(self.hold_back))

    # ------------------------------------------------------------ out

    def answer(self, pending: PendingResponse, response: Any) -> None:
        if get_ident() != self._thread:
            self._defer(self.answer, pending, response)
            return
        if self.state != OPEN or pending.parts is not None:
            return
        try:
            self.encode(pending, response)
        except ENCODE_ERRORS:
            log.exception("connection failed peer=%s: cannot write %r", self.peer, type(response).__name__)
            self._end(UNANSWERABLE)
        unanswered = self.unanswered
        if (unanswered and unanswered[0] is pending) or self.state != OPEN:
            self.release()
            if not self._feeding:
                self._wake()

    def answer_token(self, token: bytes | None) -> None:
        """Answer a token of SASL that came without Kafka's headers; None: it has no answer, and reading goes on."""
        if token is not None:
            self.output.append(I32.pack(len(token)) + token)
            self.output_bytes += 4 + len(token)
        if not self._feeding:
            self._wake()

    def encode(self, pending: PendingResponse, response: Any) -> None:
        """Give a pending response its parts."""
        codec = pending.codec
        if pending.silent:
            from .apis.produce import failed

            pending.parts = []
            pending.last = failed(response)
            if pending.last:
                why = "a produce with acks=0 failed, and has no response"
                self._closed(self._listener, self.peer, self._client_host, why)
            return
        parts = codec.encode(response)
        if len(parts) == 1 and type(parts[0]) is not FileSlice:  # nearly always
            body: Any = parts[0]
            pending.parts = [codec.frame_head(len(body) + codec.head_bytes, pending.correlation_id) + body]
            return
        parts = [_read_small(part) for part in parts]
        size = codec.head_bytes
        for part in parts:
            size += part.size if type(part) is FileSlice else len(part)  # type: ignore[arg-type]
        pending.parts = [codec.frame_head(size, pending.correlation_id), *parts]

    def release(self) -> None:
        """Move the answers whose turn it is to the output."""
        unanswered = self.unanswered
        while self.state == OPEN and unanswered and (parts := unanswered[0].parts) is not None:
            pending = unanswered.popleft()
            self.output += parts
            for part in parts:
                if type(part) is not FileSlice:
                    self.output_bytes += len(part)  # type: ignore[arg-type]
            if pending.last:
                self._end(LAST_ANSWERED)

    def sent(self, part: Part) -> None:
        """The driver took `part` from the output, or that much of it."""
        if type(part) is not FileSlice:
            self.output_bytes -= len(part)  # type: ignore[arg-type]

    # ------------------------------------------------------------ the end

    def refuse(self, why: str) -> None:
        """End the connection; `why` says what the peer sent."""
        self.tell_refused(f"it sent {why}")
        self._end(REFUSED)
        if not self._feeding:
            self._wake()

    def tell_refused(self, why: str) -> None:
        """Log that the connection is ended for what the peer does."""
        self._refused(self._listener, self.peer, self._client_host, why)

    def _end(self, event: int) -> None:
        """Take a transition. What waits for its turn is dropped; what is in the output may still go out."""
        after = TRANSITIONS.get((self.state, event))
        if after is not None:
            self.state = after
            self.unanswered.clear()

    def lost(self) -> None:
        """The connection is gone."""
        self._end(LOST)
        self.output.clear()
        self.output_bytes = 0
        self._hold_back.connection = None  # contexts have it, and some are kept
        if self._gate is not None:
            self._gate.close()
            self._gate = None
        self._wake = self._mute_for = nobody  # the driver has us, and neither is to wait for the collector
        self.door.disconnected(self._listener, self.id)


def nobody(*arguments: Any) -> None:
    """Does nothing, in place of the callbacks of a closed connection."""


def _read_small(part: Part) -> Part:
    if type(part) is not FileSlice or (part.size >= SMALL_SLICE_BYTES and part.fd >= 0):
        return part
    data = part.read()
    if len(data) != part.size:
        raise WireError(f"a file slice of {part.size} bytes at {part.position} has {len(data)}")
    return data
