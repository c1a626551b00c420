"""The messages of SCRAM (RFC 5802, section 7): read with bounds, and written.

What cannot be read raises `SaslAuthenticationFailed`. Errors quote no value of a message.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from typing import NamedTuple

from logkernel.errors import SaslAuthenticationFailed

GS2_HEADER = "n,,"
"""Of our client: no channel binding, and it acts for its own user."""
MAX_MESSAGE_BYTES = 16_384
MAX_ITERATIONS_DIGITS = 10
_NAME = re.compile(r"(?:[^\0=,]|=2C|=3D)+")
_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_EXTENSION = re.compile(r"[A-Za-z]+=[^\0,]+")
_TOKEN = "tokenauth=true"


class ClientFirst(NamedTuple):
    header: str
    """The GS2 header with its last comma: what `c=` has to repeat."""
    bare: str
    authzid: str
    username: str
    nonce: str
    by_token: bool


class ServerFirst(NamedTuple):
    text: str
    nonce: str
    salt: bytes
    iterations: int


class ClientFinal(NamedTuple):
    without_proof: str
    channel_binding: bytes
    nonce: str
    proof: bytes


def new_nonce() -> str:
    return secrets.token_urlsafe(24)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def client_first(username: str, nonce: str, by_token: bool) -> str:
    """The first message of a client without its header."""
    escaped = username.replace("=", "=3D").replace(",", "=2C")
    return f"n={escaped},r={nonce}" + (f",{_TOKEN}" if by_token else "")


def client_first_of(message: bytes) -> ClientFirst:
    fields = _fields(message, "client's first")
    if len(fields) < 4:
        raise _malformed("client's first", "too few fields")
    flag, authzid, name, nonce, *extensions = fields
    if flag not in ("n", "y"):
        raise SaslAuthenticationFailed(
            "the client asks for a SCRAM mechanism with channel binding; use one without -PLUS"
        )
    _check_extensions(extensions, "client's first")
    return ClientFirst(
        f"{flag},{authzid},",
        ",".join(fields[2:]),
        _name(authzid, "a=") if authzid else "",
        _name(name, "n="),
        _nonce(nonce, "client's first"),
        _TOKEN in extensions,
    )


def server_first(message: bytes) -> ServerFirst:
    """Raises also where the server says that it refuses (`e=`)."""
    fields = _fields(message, "server's first")
    _raise_refusal(fields)
    if len(fields) < 3 or not fields[2].startswith("i="):
        raise _malformed("server's first", "no nonce, salt and iterations")
    nonce, salt, iterations, *extensions = fields
    _check_extensions(extensions, "server's first")
    digits = iterations[2:]
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_ITERATIONS_DIGITS):
        raise _malformed("server's first", "iterations that are no number")
    return ServerFirst(
        ",".join(fields), _nonce(nonce, "server's first"), _unb64(salt, "s=", "server's first"), int(digits)
    )


def client_final_of(message: bytes) -> ClientFinal:
    fields = _fields(message, "client's final")
    if len(fields) < 3:
        raise _malformed("client's final", "too few fields")
    binding, nonce, *extensions, proof = fields
    _check_extensions(extensions, "client's final")
    return ClientFinal(
        ",".join(fields[:-1]),
        _unb64(binding, "c=", "client's final"),
        _nonce(nonce, "client's final"),
        _unb64(proof, "p=", "client's final"),
    )


def server_final(message: bytes) -> bytes:
    """The server's signature. Raises also where it refuses (`e=`)."""
    verifier, *extensions = _fields(message, "server's final")
    _raise_refusal([verifier])
    _check_extensions(extensions, "server's final")
    return _unb64(verifier, "v=", "server's final")


def _fields(message: bytes, which: str) -> list[str]:
    if len(message) > MAX_MESSAGE_BYTES:
        raise _malformed(which, f"{len(message)} bytes, of at most {MAX_MESSAGE_BYTES}")
    try:
        return message.decode().split(",")
    except UnicodeDecodeError:
        raise _malformed(which, "bytes that are not UTF-8") from None


def _raise_refusal(fields: list[str]) -> None:
    if fields[0].startswith("e="):
        raise SaslAuthenticationFailed(f"the broker refuses by SCRAM ({fields[0][2:66]!r}); check user and password")


def _check_extensions(extensions: list[str], which: str) -> None:
    """Unknown ones are passed over (RFC 5802, section 5.1), but for `m=`, which says that they must not be."""
    for extension in extensions:
        if not _EXTENSION.fullmatch(extension) or extension.startswith("m="):
            raise _malformed(which, "an extension that is not supported")


def _name(field: str, key: str) -> str:
    if not field.startswith(key) or not _NAME.fullmatch(field, len(key)):
        raise _malformed("client's first", "no user name, or one with wrong escapes")
    return field[len(key) :].replace("=2C", ",").replace("=3D", "=")


def _nonce(field: str, which: str) -> str:
    if not field.startswith("r=") or not _NONCE.fullmatch(field, 2):
        raise _malformed(which, "no nonce of printable characters")
    return field[2:]


def _unb64(field: str, key: str, which: str) -> bytes:
    try:
        data = base64.b64decode(field.removeprefix(key), validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not field.startswith(key) or not data:
        raise _malformed(which, f"no base64 data as {key}")
    return data


def _malformed(which: str, what: str) -> SaslAuthenticationFailed:
    return SaslAuthenticationFailed(f"the {which} SCRAM message has {what}; send it as RFC 5802 says")
