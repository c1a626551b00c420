"""What the client's half of a SASL mechanism is to the connection that runs it (RFC 4422). Messages are bytes, without
Kafka's framing. The server's half is `contracts.ServerMechanism`."""

from __future__ import annotations

from typing import Protocol


class ClientMechanism(Protocol):
    """The client's half of one authentication; made anew for each."""

    name: str
    """As in SaslHandshake, e.g. SCRAM-SHA-256."""

    def respond(self, challenge: bytes) -> bytes | None:
        """Return the next message. The first call has an empty challenge; each further one what the server sent.
        None: the server proved itself, and nothing is left to send.

        Raises `SaslAuthenticationFailed` where the server is not who it must be, or refused. It may wait, e.g. for a
        token or for the derivation of a key: a driver on an event loop calls it on a thread.
        """
        ...
