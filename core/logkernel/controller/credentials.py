"""SCRAM users: the keys that check their passwords (RFC 5802) are stored and described.

A client sends the salted password. The controller stores only the two keys that a server needs, StoredKey and
ServerKey. Nobody can log in with these; with the salted password that would be possible.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections import Counter

from logkernel.contracts import MetadataChange
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.controller.image import ClusterImage, Scram, scram_change
from logkernel.errors import (
    DuplicateResource,
    KafkaError,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
)
from logkernel.requests.access import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

HASHES = {1: "sha256", 2: "sha512"}
"""Mechanism → the hash of SCRAM-SHA-256, SCRAM-SHA-512."""
MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384
MAX_USER_CHARACTERS = 1_000
MAX_SALT_BYTES = 1_024


def alter(request: AlterUserScramCredentialsRequest, image: ClusterImage) -> ControllerResult:
    """All changes of a user are made, or none. A request may name a user once."""
    out = ControllerResult([], AlterUserScramCredentialsResponse(), Effects())
    results: dict[str, AlterUserScramCredentialsResult] = {}
    changes: dict[str, MetadataChange] = {}
    given: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [*request.deletions, *request.upsertions]
    for row in given:
        result = results.setdefault(row.name, AlterUserScramCredentialsResult(row.name))
        if result.error_code:
            continue
        try:
            if changes.pop(row.name, None) is not None:
                raise DuplicateResource("a request alters a user once; send another request for the rest")
            changes[row.name] = _change(row, image)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, str(error)
    out.response.results = list(results.values())
    out.changes.extend(changes.values())
    return out


def _change(row: ScramCredentialDeletion | ScramCredentialUpsertion, image: ClusterImage) -> MetadataChange:
    if not row.name:
        raise UnacceptableCredential("the user has no name; give one")
    if row.mechanism not in HASHES:
        raise UnsupportedSaslMechanism(f"mechanism {row.mechanism} is not known; use 1 SCRAM-SHA-256, 2 SCRAM-SHA-512")
    if isinstance(row, ScramCredentialDeletion):
        if (row.name, row.mechanism) not in image.scram:
            raise ResourceNotFound(f"user {row.name!r} has no such credential; there is nothing to delete")
        return scram_change(row.name, row.mechanism, None)
    return scram_change(row.name, row.mechanism, _credential(row))


def _credential(row: ScramCredentialUpsertion) -> Scram:
    if not MIN_ITERATIONS <= row.iterations <= MAX_ITERATIONS:
        raise UnacceptableCredential(
            f"{row.iterations} iterations are too {'few' if row.iterations < MIN_ITERATIONS else 'many'};"
            f" use {MIN_ITERATIONS} to {MAX_ITERATIONS}"
        )
    if len(row.name) > MAX_USER_CHARACTERS or len(row.salt) > MAX_SALT_BYTES:
        raise UnacceptableCredential(
            f"a user's name may have {MAX_USER_CHARACTERS} characters, a salt {MAX_SALT_BYTES} bytes; shorten it"
        )
    name = HASHES[row.mechanism]
    client_key = hmac.digest(row.salted_password, b"Client Key", name)
    server_key = hmac.digest(row.salted_password, b"Server Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    return Scram(row.iterations, _text(row.salt), _text(stored_key), _text(server_key))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def describe(request: DescribeUserScramCredentialsRequest, image: ClusterImage) -> DescribeUserScramCredentialsResponse:
    """Describe the named users in the order of the request, or all users. The answer never holds a key."""
    known: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), credential in sorted(image.scram.items(), key=lambda item: item[0]):
        known.setdefault(user, []).append(CredentialInfo(mechanism, credential.iterations))
    response = DescribeUserScramCredentialsResponse()
    asked = Counter(user.name for user in request.users or ())
    for name in asked or known:
        row = DescribeUserScramCredentialsResult(name)
        error: KafkaError | None = None
        if asked[name] > 1:
            error = DuplicateResource(f"the request names user {name!r} more than once; name it once")
        elif name not in known:
            error = ResourceNotFound(f"user {name!r} has no credential; check the name")
        if error is not None:
            row.error_code, row.error_message = error.code, str(error)
        else:
            row.credential_infos = known[name]
        response.results.append(row)
    return response
