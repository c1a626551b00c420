"""Users that a broker has from its start, before anybody can log in to add them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from logkernel.contracts import RequestContext
from logkernel.errors import error_for
from logkernel.requests.access import AlterUserScramCredentialsRequest, ScramCredentialUpsertion

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker

SCRAM: Final[Mapping[str, tuple[int, str]]] = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
"""Mechanism → (its number in requests, its hash)."""
ITERATIONS: Final = 8_192
SALT_BYTES: Final = 32


def add_users(
    broker: Broker,
    users: Mapping[str, str],
    mechanisms: Iterable[str],
    iterations: int = ITERATIONS,
    *,
    anew: bool = False,
) -> Callable[[], bool]:
    """Give users (name → password) their SCRAM keys, where the broker does not know them, or `anew`.

    Called on the broker's thread. Returns what says whether the cluster has noted them; it raises what it was refused
    with.
    """
    answers: list[object] = []
    asked = 0
    for mechanism in mechanisms:  # a request names each user once
        number, hashed = SCRAM[mechanism]
        rows = [
            _upsertion(user, password, number, hashed, iterations, broker.runtime.random.bytes(SALT_BYTES))
            for user, password in users.items()
            if anew or (user, number) not in broker.metadata.image.scram
        ]
        if rows:
            asked += 1
            request = AlterUserScramCredentialsRequest([], rows)
            broker.submit(request, RequestContext(internal=True), answers.append)

    def noted() -> bool:
        for answer in answers:
            for result in getattr(answer, "results", []):
                if result.error_code:
                    raise error_for(result.error_code, result.error_message)
        return len(answers) == asked

    return noted


def _upsertion(
    user: str, password: str, number: int, hashed: str, iterations: int, salt: bytes
) -> ScramCredentialUpsertion:
    salted = hashlib.pbkdf2_hmac(hashed, password.encode(), salt, iterations)
    return ScramCredentialUpsertion(user, number, iterations, salt, salted)
