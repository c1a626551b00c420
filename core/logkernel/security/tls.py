"""TLS over memory: `TlsSession` takes ciphertext and gives plaintext, and the reverse. `TlsSettings` says how.

`logkernel.security.tls_contexts` makes the contexts. The standard library's ssl is imported with the first session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import attrs

from logkernel.contracts import Buffer
from logkernel.errors import SslAuthenticationException

if TYPE_CHECKING:
    import ssl

MAX_HANDSHAKE_BYTES = 262_144
"""What a peer may send before its handshake is over. OpenSSL takes 100 KiB of certificates."""
MAX_UNREAD_BYTES = 1_048_576
"""Ciphertext that may wait for `read_into`."""
MAX_HELD_BYTES = 1_048_576
"""Plaintext that may wait for the end of the handshake."""


@attrs.frozen
class TlsSettings:
    """Kafka's settings `ssl.*` of a client or listener; "" is not set. Secrets are not shown."""

    ssl_keystore_type: str = "JKS"
    """PEM, PKCS12 or JKS, which reads a PKCS#12 file as well."""
    ssl_keystore_location: str = ""
    ssl_keystore_password: str = attrs.field(default="", repr=False)
    ssl_keystore_key: str = attrs.field(default="", repr=False)
    """A private key in PEM, with the type PEM."""
    ssl_keystore_certificate_chain: str = attrs.field(default="", repr=False)
    """Its certificates in PEM, the own first."""
    ssl_key_password: str = attrs.field(default="", repr=False)
    ssl_truststore_type: str = "JKS"
    ssl_truststore_location: str = ""
    """Without one, and without `ssl_truststore_certificates`, the system's CAs are trusted."""
    ssl_truststore_password: str = attrs.field(default="", repr=False)
    ssl_truststore_certificates: str = attrs.field(default="", repr=False)
    """Trusted certificates in PEM, with the type PEM."""
    ssl_certificate_location: str = ""
    """librdkafka's: a PEM file of certificates whose key is in `ssl_key_location`."""
    ssl_key_location: str = ""
    ssl_protocol: str = "TLSv1.3"
    ssl_enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    ssl_cipher_suites: tuple[str, ...] = ()
    """By Java's names or OpenSSL's; () is the library's choice."""
    ssl_endpoint_identification_algorithm: str = "https"
    """"" lets a client accept a certificate for another host."""
    ssl_client_auth: str = "none"
    """Whether a listener asks for a client's certificate: none, requested, required."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that a context is made from."""
        named = (
            self.ssl_keystore_location,
            self.ssl_certificate_location,
            self.ssl_key_location,
            self.ssl_truststore_location,
        )
        return tuple(name for name in named if name)


class TlsSession:
    """One connection's TLS. It knows no socket: `receive` what came, send what `take` gives, after each call.

    A call that fails raises `SslAuthenticationException`. Then `take` has an alert that says why: send it, and close.
    """

    def __init__(
        self, context: ssl.SSLContext, *, server_side: bool, server_hostname: str | None = None, peer: str = ""
    ) -> None:
        """`server_hostname` is whom a client's context verifies. `peer` names the other side in errors."""
        import ssl

        self._ssl = ssl
        self._peer = peer or server_hostname or ("the client" if server_side else "the broker")
        self._server_side = server_side
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side, server_hostname)
        self._handshake_bytes = 0
        self._held: list[bytes] = []
        self._held_bytes = 0
        self.is_established = False
        """Whether the handshake is over: `peer_certificate`, `version` and `cipher` hold from then on."""
        self.closed = False
        """Whether the peer said that it sends no more (close_notify)."""
        if not server_side:
            self._shake_hands()

    def receive(self, data: Buffer) -> None:
        """Take ciphertext; it may end the handshake. Read all plaintext before the next call: what waits is bounded."""
        size = memoryview(data).nbytes
        if not self.is_established:
            if self._handshake_bytes > MAX_HANDSHAKE_BYTES:
                raise SslAuthenticationException(
                    f"{self._peer} sent {self._handshake_bytes} bytes without ending its TLS handshake; "
                    "check what is connected there"
                )
            self._handshake_bytes += size
        if self._incoming.pending + size > MAX_UNREAD_BYTES:
            raise BufferError(f"{self._incoming.pending} bytes of TLS wait to be read; call read_into before receive")
        self._incoming.write(data)
        if not self.is_established:
            self._shake_hands()

    def read_into(self, room: memoryview) -> int:
        """Fill `room` with plaintext as far as there is some, and return its bytes; 0 is nothing now."""
        if not self.is_established or self.closed:
            return 0
        filled, size, read = 0, len(room), self._object.read
        try:
            while filled < size:
                count = cast(int, read(size - filled, room[filled:]))
                if not count:
                    self.closed = True
                    break
                filled += count
        except self._ssl.SSLWantReadError:
            pass
        except self._ssl.SSLZeroReturnError:
            self.closed = True
        except self._ssl.SSLError as error:
            raise self._failure(error) from error
        return filled

    def write(self, data: Buffer) -> None:
        """Encrypt. Before the handshake is over, up to 1 MiB is held for its end."""
        view = memoryview(data).cast("B")
        if not self.is_established:
            self._held_bytes += len(view)
            if self._held_bytes > MAX_HELD_BYTES:
                raise BufferError(f"{self._held_bytes} bytes wait for {self._peer}'s TLS handshake; await it first")
            self._held.append(bytes(view))
            return
        try:
            written = self._object.write(view)
            while written < len(view):
                written += self._object.write(view[written:])
        except self._ssl.SSLError as error:
            raise self._failure(error) from error

    def take(self) -> bytes:
        """The ciphertext to send, each byte once."""
        return self._outgoing.read()

    def shut_down(self) -> None:
        """Say that no more will be sent (close_notify): `take` has it. Calling it again is allowed."""
        if self.is_established:
            try:
                self._object.unwrap()
            except (self._ssl.SSLError, ValueError):
                return  # the peer's own close_notify is not waited for

    @property
    def peer_certificate(self) -> bytes | None:
        """The verified certificate of the peer, in DER."""
        return self._object.getpeercert(True) if self.is_established else None

    @property
    def version(self) -> str | None:
        """Such as TLSv1.3."""
        return self._object.version() if self.is_established else None

    @property
    def cipher(self) -> str | None:
        """By OpenSSL's name, such as TLS_AES_256_GCM_SHA384."""
        cipher = self._object.cipher() if self.is_established else None
        return cipher[0] if cipher else None

    def _shake_hands(self) -> None:
        try:
            self._object.do_handshake()
        except self._ssl.SSLWantReadError:
            return
        except self._ssl.SSLError as error:
            raise self._failure(error) from error
        self.is_established = True
        held, self._held, self._held_bytes = self._held, [], 0
        for data in held:
            self.write(data)

    def _failure(self, error: ssl.SSLError) -> SslAuthenticationException:
        if isinstance(error, self._ssl.SSLCertVerificationError):
            return SslAuthenticationException(_distrust(self._peer, error, self._server_side))
        return SslAuthenticationException(_breakdown(self._peer, error.reason or "", self._server_side))


_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG")
"""OpenSSL's reasons where plain text came."""
_CERTIFICATE_ALERTS = ("BAD_CERTIFICATE", "UNKNOWN_CA", "CERTIFICATE_UNKNOWN", "REVOKED")
_USAGE = "whose extended key usage has {}, or which has none; a broker's needs serverAuth and clientAuth"
_HOSTNAME_MISMATCH, _IP_MISMATCH, _NOT_YET_VALID, _EXPIRED, _PURPOSE = 62, 64, 9, 10, 26
"""X509_V_ERR_… of OpenSSL."""


def _distrust(peer: str, error: ssl.SSLCertVerificationError, server_side: bool) -> str:
    if error.verify_code in (_HOSTNAME_MISMATCH, _IP_MISMATCH):
        remedy = "connect by a name in it, or set ssl.endpoint.identification.algorithm to nothing if any will do"
    elif error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        remedy = "renew it, or set the clock right"
    elif error.verify_code == _PURPOSE:
        remedy = f"issue one {_USAGE.format('clientAuth' if server_side else 'serverAuth')}"
    else:
        remedy = f"put the CA of {'its certificate' if server_side else 'the broker'} into ssl.truststore.location"
    return f"the certificate of {peer} is not trusted: {error.verify_message}; {remedy}"


def _breakdown(peer: str, reason: str, server_side: bool) -> str:
    words = reason.lower().replace("_", " ")
    if reason in _NOT_TLS:
        remedy = (
            "set its security.protocol to SSL or SASL_SSL"
            if server_side
            else "use the port of a TLS listener, or security.protocol PLAINTEXT or SASL_PLAINTEXT"
        )
        return f"{peer} does not speak TLS; {remedy}"
    if "_ALERT_" in reason:
        if "CERTIFICATE_REQUIRED" in reason:
            remedy = "give a client's certificate by ssl.keystore.location"
        elif reason.endswith("CERTIFICATE_EXPIRED"):
            remedy = "renew your certificate, or set the clock of that side right"
        elif reason.endswith("UNSUPPORTED_CERTIFICATE"):
            remedy = f"use a certificate {_USAGE.format('serverAuth' if server_side else 'clientAuth')}"
        elif reason.endswith(_CERTIFICATE_ALERTS):
            remedy = "have it trust the CA of your certificate, or use one that it trusts"
            if server_side:
                remedy += ", for the host that it connects to"
            if reason.endswith("CERTIFICATE_UNKNOWN"):  # what Java says of any fault
                usage = "serverAuth" if server_side else "clientAuth"
                remedy += (
                    f"; or it has expired, or its extended key usage lacks {usage}: the log of that side says more"
                )
        else:
            remedy = "compare ssl.enabled.protocols, ssl.cipher.suites and the certificates of both sides"
        return f"{peer} refused TLS ({words}); {remedy}"
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return f"{peer} showed no certificate, which ssl.client.auth=required asks for; set its ssl.keystore.location"
    return (
        f"TLS with {peer} failed ({words or 'no reason given'}); "
        "compare ssl.enabled.protocols, ssl.cipher.suites and the certificates of both sides"
    )
