"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), as Kafka speaks them.

Kafka hashes passwords as they are, without SASLprep, takes salts of any size, and knows an extension, `tokenauth`
(KIP-48). `logkernel.security.sasl.scram_messages` reads the messages.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final

import attrs

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.sasl import scram_messages as messages
from logkernel.vocabulary import Principal

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MIN_ITERATIONS = 4096
MAX_ITERATIONS = 1_000_000
MAX_LOGGED = 100
"""Characters of a user's name that a log has."""
"""What a client derives a key with at most, which takes it a second. Kafka's brokers keep 4,096 to 16,384, but older
ones had no upper bound; a hostile server may name 2^31."""


@attrs.frozen
class ScramCredential:
    """What a server keeps of a password (RFC 5802, section 3). The password cannot be computed from it."""

    salt: bytes = attrs.field(repr=False)
    stored_key: bytes = attrs.field(repr=False)
    server_key: bytes = attrs.field(repr=False)
    iterations: int

    @classmethod
    def of(cls, password: str, mechanism: str, iterations: int = MIN_ITERATIONS, salt: bytes = b"") -> ScramCredential:
        """Derive it, which takes some ms; without a salt, make one."""
        algorithm = _algorithm(mechanism)
        salt = salt or secrets.token_bytes(32)
        salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)
        stored_key = hashlib.new(algorithm, _hmac(algorithm, salted, b"Client Key")).digest()
        return cls(salt, stored_key, _hmac(algorithm, salted, b"Server Key"), iterations)


@attrs.frozen
class ScramToken:
    """A delegation token: it authenticates as its owner (KIP-48), until `expires_ms` of the wall clock."""

    credential: ScramCredential
    owner: Principal
    expires_ms: int


@attrs.frozen
class UnknownUser:
    """What a user who does not exist is told: a salt made of a secret and the name, the same each time."""

    secret: bytes = attrs.field(repr=False)
    salt_bytes: int = 32
    """At most 64."""
    iterations: int = MIN_ITERATIONS

    def salt(self, mechanism: str, username: str) -> bytes:
        return hmac.digest(self.secret, f"{mechanism}:{username}".encode(), "sha512")[: self.salt_bytes]


THIS_PROCESS: Final = UnknownUser(secrets.token_bytes(32))


class ScramClient:
    """Proves that it knows the password, and asks the server to prove that it knows its keys."""

    def __init__(
        self, mechanism: str, username: str, password: str, *, tokenauth: bool = False, nonce: str = ""
    ) -> None:
        """With `tokenauth`, user name and password are the id and the HMAC of a delegation token. Without a nonce, it
        makes one. Raises `ConfigError` for an unknown mechanism, or without user or password."""
        if not username or not password or "\0" in username:
            raise ConfigError(f"the user name or password for {mechanism} is empty, or has a NUL; set both")
        self.name = mechanism
        self._algorithm = _algorithm(mechanism)
        self._password = password.encode()
        self._nonce = nonce or messages.new_nonce()
        self._first = messages.client_first(username, self._nonce, tokenauth)
        self._expected = b""
        self._next: Callable[[bytes], bytes | None] = self._begin

    def respond(self, challenge: bytes) -> bytes | None:
        return self._next(challenge)

    def _begin(self, challenge: bytes) -> bytes:
        self._next = self._prove
        return (messages.GS2_HEADER + self._first).encode()

    def _prove(self, challenge: bytes) -> bytes:
        first = messages.server_first(challenge)
        if not first.nonce.startswith(self._nonce) or len(first.nonce) == len(self._nonce):
            raise SaslAuthenticationFailed(
                f"the broker's {self.name} message has another's nonce; check what is in between"
            )
        if not MIN_ITERATIONS <= first.iterations <= MAX_ITERATIONS:
            raise SaslAuthenticationFailed(
                f"the broker asks for {first.iterations} iterations of {self.name}; this client computes "
                f"{MIN_ITERATIONS} to {MAX_ITERATIONS}: check that it is your broker, or create the user anew"
            )
        salted = hashlib.pbkdf2_hmac(self._algorithm, self._password, first.salt, first.iterations)
        client_key = _hmac(self._algorithm, salted, b"Client Key")
        stored_key = hashlib.new(self._algorithm, client_key).digest()
        final = f"c={messages.b64(messages.GS2_HEADER.encode())},r={first.nonce}"
        signed = f"{self._first},{first.text},{final}".encode()
        self._expected = _hmac(self._algorithm, _hmac(self._algorithm, salted, b"Server Key"), signed)
        self._next = self._verify
        proof = _xor(client_key, _hmac(self._algorithm, stored_key, signed))
        return f"{final},p={messages.b64(proof)}".encode()

    def _verify(self, challenge: bytes) -> None:
        if not hmac.compare_digest(messages.server_final(challenge), self._expected):
            raise SaslAuthenticationFailed(
                f"the broker could not prove by {self.name} that it knows the user; check that it is your broker"
            )
        self._next = self._end

    def _end(self, challenge: bytes) -> None:
        if challenge:
            raise SaslAuthenticationFailed(
                f"the broker goes on after {self.name} has ended; check that it is your broker"
            )


class ScramServer:
    """Checks a client's proof by the keys of its user: three HMACs, no derivation."""

    blocks: bool = False

    def __init__(
        self,
        mechanism: str,
        credential_of: Callable[[str], ScramCredential | None],
        token_of: Callable[[str], ScramToken | None] | None = None,
        *,
        unknown: Callable[[], UnknownUser] = lambda: THIS_PROCESS,
        nonce: str = "",
    ) -> None:
        """`credential_of` is asked by user, `token_of` by token id where a client says `tokenauth`. An unknown one is
        told what `unknown` says, and is refused at the end, as one with a wrong password is. Without a nonce, it makes
        one."""
        self.name = mechanism
        self.principal: Principal | None = None
        self.expires_ms: int | None = None
        self._algorithm = _algorithm(mechanism)
        self._credential_of = credential_of
        self._token_of = token_of
        self._unknown = unknown
        self._nonce = nonce or messages.new_nonce()
        self._claimed: Principal | None = None
        self._claimed_until: int | None = None
        self._next: Callable[[bytes], bytes] = self._begin

    def evaluate(self, message: bytes) -> bytes:
        step, self._next = self._next, self._refuse
        return step(message)

    def _begin(self, message: bytes) -> bytes:
        first = messages.client_first_of(message)
        self._credential = self._look_up(first)
        self._clients_nonce = first.nonce
        self._nonce = first.nonce + self._nonce
        self._header = first.header
        self._username, self._by_token = first.username, first.by_token
        credential = self._credential
        answer = f"r={self._nonce},s={messages.b64(credential.salt)},i={credential.iterations}"
        self._signed = f"{first.bare},{answer}"
        self._next = self._check
        return answer.encode()

    def _look_up(self, first: messages.ClientFirst) -> ScramCredential:
        """The keys, and who a right proof makes of the client."""
        if first.authzid not in ("", first.username):
            raise SaslAuthenticationFailed(f"a {self.name} client asks to act for another user; leave that id empty")
        if first.by_token:
            token = self._token_of(first.username) if self._token_of is not None else None
            if token is not None:
                self._claimed = Principal(token.owner.kind, token.owner.name, by_token=True)
                self._claimed_until = token.expires_ms
                return token.credential
        elif (credential := self._credential_of(first.username)) is not None:
            self._claimed = Principal("User", first.username)
            return credential
        return self._credential_of_nobody(first)

    def _credential_of_nobody(self, first: messages.ClientFirst) -> ScramCredential:
        told = self._unknown()
        if first.by_token:  # every token has a salt and iterations of this size
            told = UnknownUser(told.secret)
        key = secrets.token_bytes(hashlib.new(self._algorithm).digest_size)
        return ScramCredential(told.salt(self.name, first.username), key, key, told.iterations)

    def _check(self, message: bytes) -> bytes:
        final = messages.client_final_of(message)
        credential, algorithm = self._credential, self._algorithm
        signed = f"{self._signed},{final.without_proof}".encode()
        key = _xor(final.proof, _hmac(algorithm, credential.stored_key, signed))
        is_proved = hmac.compare_digest(hashlib.new(algorithm, key).digest(), credential.stored_key)
        is_ours = hmac.compare_digest(final.nonce.encode(), self._nonce.encode())
        if not (is_ours and final.channel_binding == self._header.encode() and is_proved and self._claimed is not None):
            error = SaslAuthenticationFailed(f"invalid user name or password for {self.name}; check both")
            error.add_note(self._for_the_log() if is_ours else self._of_nonce(final.nonce))
            raise error
        self.principal, self.expires_ms = self._claimed, self._claimed_until
        return f"v={messages.b64(_hmac(algorithm, credential.server_key, signed))}".encode()

    def _for_the_log(self) -> str:
        """Why the client failed; it is not told."""
        if self._claimed is not None and self._by_token:
            return (
                f"wrong password of delegation token {self._username[:MAX_LOGGED]!r}; if it is right at another broker,"
                " or was so before, delegation.token.secret.key differs: set the same on every broker"
            )
        if self._claimed is not None:
            return f"wrong password of {str(self._claimed)!r}"
        if self._by_token:
            return "no such delegation token, or it has expired, or delegation.token.secret.key is not set here"
        if self._token_of is not None and self._token_of(self._username) is not None:
            return 'the user name is the id of a delegation token; set tokenauth="true" in the login of the client'
        return f"there is no {self.name} password of user {self._username[:MAX_LOGGED]!r}"

    def _of_nonce(self, sent: str) -> str:
        """What is wrong with the nonce of the client's final message."""
        if sent == self._clients_nonce + self._nonce:
            return "the client repeats its nonce in its final message, as librdkafka before 2.6.1 does; update it"
        return "the final message of the client has another nonce than was agreed; check the client"

    def _refuse(self, message: bytes) -> bytes:
        raise SaslAuthenticationFailed(f"{self.name} has ended, and the client goes on; open a new connection")


def _algorithm(mechanism: str) -> str:
    try:
        return HASHES[mechanism]
    except KeyError:
        raise ConfigError(f"{mechanism!r} is no SCRAM mechanism; use one of {', '.join(HASHES)}") from None


def _hmac(algorithm: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, algorithm)


def _xor(one: bytes, other: bytes) -> bytes:
    """Of one size; empty where they are not, which no key's hash equals."""
    if len(one) != len(other):
        return b""
    return (int.from_bytes(one) ^ int.from_bytes(other)).to_bytes(len(one))
