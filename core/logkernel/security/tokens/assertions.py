"""Assertions: JWTs by which a client shows a token endpoint who it is, instead of a secret (RFC 7521, 7523; KIP-1139).

One is in a file that another program keeps fresh, or it is signed here, with the claims of three places: settings, a
template, and those of the moment, in this order, as Kafka has them: a later one replaces an earlier one.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import attrs

from logkernel.errors import ConfigError, SaslAuthenticationFailed

PREFIX: Final = "sasl.oauthbearer.assertion."
FILE: Final = f"{PREFIX}file"
KEY_FILE: Final = f"{PREFIX}private.key.file"
KEY: Final = f"{PREFIX}private.key.pem"
TEMPLATE_FILE: Final = f"{PREFIX}template.file"
PASSPHRASE: Final = f"{PREFIX}private.key.passphrase"
ISSUER: Final = f"{PREFIX}claim.iss"
ALGORITHMS: Final = ("RS256", "ES256")
MAX_FILE_BYTES: Final = 524_288
_JWT: Final = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)


@attrs.frozen
class FileAssertion:
    """A JWT in a file, read for each request."""

    path: str

    def create(self, now_s: float) -> str:
        """Raises `SaslAuthenticationFailed` where the file has none."""
        text = _read(self.path, FILE).strip()
        if not _JWT.fullmatch(text):
            raise _failed(f"{self.path} has no JWT; check {FILE}")
        return text


@attrs.frozen
class SignedAssertion:
    """A JWT that is signed for each request, by a key that is read anew where it is in a file."""

    key_file: str = ""
    key: str = attrs.field(default="", repr=False)
    """The key itself, as PEM, instead of a file."""
    algorithm: str = "RS256"
    claims: Mapping[str, str] = attrs.field(factory=dict)
    """aud, iss and sub, as far as they are set."""
    template_file: str = ""
    passphrase: str = attrs.field(default="", repr=False)
    expires_s: int = 300
    valid_before_s: int = 60
    """For how long before now it is valid: clocks differ."""
    has_id: bool = False

    def __attrs_post_init__(self) -> None:
        if find_spec("jwt") is None or find_spec("cryptography") is None:
            raise ConfigError(
                f"{self._setting} needs the packages PyJWT and cryptography; run pip install 'logkernel[security]'"
            )

    def create(self, now_s: float) -> str:
        """`now_s`: Unix time. Raises `SaslAuthenticationFailed` where a file is missing or wrong."""
        import jwt

        header, payload = _template(self.template_file) if self.template_file else ({}, {})
        moment: dict[str, Any] = {"iat": int(now_s), "exp": int(now_s) + self.expires_s}
        moment["nbf"] = int(now_s) - self.valid_before_s
        if self.has_id:
            moment["jti"] = str(uuid.uuid4())
        key = self._private_key()
        try:
            return jwt.encode({**self.claims, **payload, **moment}, key, self.algorithm, {**header, "typ": "JWT"})
        except (TypeError, ValueError, jwt.exceptions.PyJWTError) as error:
            raise _failed(
                f"no assertion can be signed by {self.algorithm} with {self._shown} ({type(error).__name__}); check "
                f"{self._setting}, {PREFIX}algorithm and {TEMPLATE_FILE}"
            ) from None

    @property
    def _setting(self) -> str:
        return KEY if self.key else KEY_FILE

    @property
    def _shown(self) -> str:
        return "the key" if self.key else self.key_file

    def _private_key(self) -> Any:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        text = self.key or _read(self.key_file, KEY_FILE)
        try:
            return load_pem_private_key(text.encode(), self.passphrase.encode() or None)
        except Exception as error:  # ValueError and TypeError by its docs, UnsupportedAlgorithm and others by the file
            raise _failed(
                f"{self._shown} has no private key that can be read ({type(error).__name__}); check {self._setting} and"
                f" {PASSPHRASE}"
            ) from None


Assertion = FileAssertion | SignedAssertion


def assertion_of(values: Mapping[str, Any]) -> Assertion:
    """From settings, typed, by Kafka's names. Raises `ConfigError`."""
    if values.get(FILE):
        return FileAssertion(values[FILE])
    key_file, key = values.get(KEY_FILE) or "", values.get(KEY) or ""
    if key_file and key:
        raise ConfigError(f"{KEY_FILE} and {KEY} are both set; give one of them")
    if not key_file and not key:
        raise ConfigError(
            f"the assertion for OAUTHBEARER has no key to be signed with; set {KEY_FILE} or {KEY}, or {FILE}, which has"
            " a signed one"
        )
    claims = {name: values.get(f"{PREFIX}claim.{name}") for name in ("aud", "iss", "sub")}
    return SignedAssertion(
        key_file,
        key,
        str(values.get(f"{PREFIX}algorithm") or "RS256").upper(),
        {name: value for name, value in claims.items() if value is not None},
        values.get(TEMPLATE_FILE) or "",
        values.get(PASSPHRASE) or "",
        values.get(f"{PREFIX}claim.exp.seconds", 300),
        values.get(f"{PREFIX}claim.nbf.seconds", 60),
        bool(values.get(f"{PREFIX}claim.jti.include")),
    )


def _failed(text: str) -> SaslAuthenticationFailed:
    return SaslAuthenticationFailed(f"no token for OAUTHBEARER: {text}")


def _read(path: str, setting: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_FILE_BYTES).decode()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise _failed(f"{path} cannot be read ({reason}); check {setting}") from None


def _template(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and payload of a JSON object that may have both."""
    try:
        found = json.loads(_read(path, TEMPLATE_FILE))
        header, payload = found.get("header", {}), found.get("payload", {})
    except (ValueError, AttributeError, RecursionError):
        header = payload = None
    if not isinstance(header, dict) or not isinstance(payload, dict):
        raise _failed(
            f'{path} is not an object of JSON with objects "header", "payload" or both; check {TEMPLATE_FILE}'
        )
    return header, payload
