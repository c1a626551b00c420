"""What a SASL mechanism is to the connection that runs it (RFC 4422). Messages are bytes, without Kafka's framing."""

from __future__ import annotations

from typing import Protocol

from logkernel.vocabulary import Principal


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


class ServerMechanism(Protocol):
    """The server's half of one authentication; made anew for each."""

    name: str
    blocks: bool
    """Whether `evaluate` may wait for others, or compute for long: it is then called on a thread, else on the loop."""

    def evaluate(self, message: bytes) -> bytes:
        """Return the challenge that answers a client's message; empty where there is nothing to say.

        Raises `SaslAuthenticationFailed`, whose text is sent to the client: it does not say whether a user exists.
        """
        ...

    @property
    def principal(self) -> Principal | None:
        """Who the client is; None until it has proved that."""
        ...

    @property
    def expires_ms(self) -> int | None:
        """When what the client showed expires, in wall-clock ms; None: never."""
        ...
