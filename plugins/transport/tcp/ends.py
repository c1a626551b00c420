"""What it means that the broker ended a connection before it answered a request: the likely cause, and the setting to
look at. The signs of a client whose `security.protocol` does not fit the listener, and what follows from each:

    sign                                      likely cause          here            Kafka's Java client
    a TLS alert in the place of a response    a listener with TLS   fatal           takes it for a response's size,
                                                                                    352,518,912 bytes, and waits for it
    WRONG_VERSION_NUMBER (of OpenSSL)         one without TLS       fatal           fatal: SslAuthenticationException
    ILLEGAL_SASL_STATE for SaslHandshake      one without SASL      fatal           fatal: IllegalSaslStateException
    an end in place of the TLS handshake's    one without TLS       connects again  connects again; warns that it was
                                                                                    "terminated during authentication"
    an end in place of the versions           one with TLS          connects again  connects again: "disconnected"
    an end at the first request after those   one with SASL         connects again  connects again: "disconnected"

A broker that restarts ends connections, too, so an end is not fatal: its cause is told by a warning, and in the text
of the time-out, as librdkafka tells it with each disconnect ("might be caused by incorrect security.protocol
configuration"). The Java client's time-outs do not name a cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .client import NEGOTIATING, READY, ClientConnection

if TYPE_CHECKING:
    from logkernel.security.tls import TlsSession

_AGAIN = "if it does so again,"


def why_ended(machine: ClientConnection, tls: TlsSession | None, error: OSError | None = None) -> str:
    """The text of the error. `error` is the system's, where the connection did not end in order: a listener that does
    not understand what came closes without reading the rest, and systems tell the peer of that by a reset."""
    told = "" if error is None else f" ({error.strerror or type(error).__name__})"
    has_sasl = machine.mechanism is not None
    if tls is not None and not tls.is_established:
        plain = "SASL_PLAINTEXT" if has_sasl else "PLAINTEXT"
        return (
            f"the broker closed the connection during the TLS handshake{told}, as a listener without TLS does; {_AGAIN}"
            f" use the port of one with TLS, or set security.protocol to {plain}, which encrypts nothing"
        )
    text = f"the broker closed the connection{told}"
    if machine.was_answered:
        return text
    if machine.state == NEGOTIATING and tls is None:
        wanted = "SASL_SSL" if has_sasl else "SSL, or SASL_SSL where it asks for a login"
        return f"{text} without an answer, as a listener with TLS does; {_AGAIN} set security.protocol to {wanted}"
    if machine.state == READY and not has_sasl:
        wanted = "SASL_PLAINTEXT" if tls is None else "SASL_SSL"
        return (
            f"{text} at the first request, as a listener with SASL does where no client logs in; {_AGAIN} set"
            f" security.protocol to {wanted}, and sasl.mechanism"
        )
    return f"{text} before it answered a request; {_AGAIN} see the broker's log, which says why"
