"""A server's validation of signed tokens by PyJWT, with keys from a JWKS (RFC 7517): Kafka's BrokerJwtValidator.

Keys come from the listener's own `sasl.oauthbearer.jwks.endpoint.url` alone. What a token's header names (`jku`,
`x5u`, `jwk`, `x5c`) is not read, and `kid` is compared with the ids of these keys, nothing else.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from logkernel.errors import ConfigError
from logkernel.security.tokens.claims import number_of, scope_of, text_of
from logkernel.security.tokens.verdict import MAX_TOKEN_CHARACTERS, TokenRefused, Validated

logger = logging.getLogger(__name__)

ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""By the kinds of keys. A symmetric key could be a public one that a client signed with; `none` is no signature."""
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth"})
MAX_KID_CHARACTERS = 1_000
MAX_KEYS = 1_000


@attrs.frozen
class VerificationKey:
    public: Any
    """As `cryptography` has it."""
    algorithms: tuple[str, ...]
    """What it may verify."""


Keys = Mapping[str, VerificationKey]
"""By their ids."""


def read_keys(text: bytes) -> Keys:
    """The public keys of a JWKS; one without an id has a made one. Others are passed over.

    Raises `ConfigError` where there is none.
    """
    try:
        from jwt import PyJWK
        from jwt.exceptions import PyJWTError
    except ImportError:
        raise ConfigError("a JWKS needs the package PyJWT; run pip install 'logkernel[security]'") from None
    found: dict[str, VerificationKey] = {}
    try:
        entries = json.loads(text)["keys"][:MAX_KEYS]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ConfigError("the JWKS is not JSON with a list of keys; check its URL") from None
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or entry.get("kty") not in ALGORITHMS or entry.get("use", "sig") != "sig":
            continue
        kind, named = entry["kty"], entry.get("alg")
        public = {name: value for name, value in entry.items() if name not in _PRIVATE}
        algorithms = ALGORITHMS[kind] if named is None else tuple(one for one in ALGORITHMS[kind] if one == named)
        try:
            key = VerificationKey(PyJWK(public).key, algorithms)
        except (PyJWTError, ValueError, TypeError, KeyError) as error:
            logger.warning(
                "key %d of the JWKS cannot be used (%s); it is passed over", number + 1, type(error).__name__
            )
        else:
            found[str(entry.get("kid") or f"\0{number}")] = key
    if not found:
        raise ConfigError("the JWKS has no public key for signatures; check its URL")
    return found


@attrs.frozen
class JwksValidator:
    """Call it with a token. It computes one signature, and waits for nothing."""

    keys: Callable[[], Keys]
    """The present keys."""
    missed: Callable[[], None] = lambda: None
    """Told when a token names a key that is not there: it may be new."""
    audience: tuple[str, ...] = ()
    """One of which a token has to name; () takes each."""
    issuer: str = ""
    skew_s: float = 30
    sub_claim: str = "sub"
    scope_claim: str = "scope"

    def __call__(self, token: str) -> Validated:
        """Raises `TokenRefused`."""
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise TokenRefused(f"the token has over {MAX_TOKEN_CHARACTERS} characters; ask for less in it")
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            claims = self._verified(token, header)
        except TokenRefused:
            raise
        except Exception as error:  # of a text that anyone may write: PyJWT lets some errors of its parts through
            raise TokenRefused(f"the token does not count ({_reason(error)}); {_remedy(error)}") from None
        return Validated(
            text_of(claims, self.sub_claim), int(number_of(claims, "exp") * 1000), scope_of(claims, self.scope_claim)
        )

    def _verified(self, token: str, header: Mapping[str, Any]) -> dict[str, Any]:
        import jwt

        algorithm = header.get("alg")
        if "crit" in header or header.get("b64", True) is not True:
            raise TokenRefused("the token has header fields that it calls critical; use a plain JWT")
        key = self._key(header.get("kid"), algorithm).public
        required = ["exp", "iat"] + (["iss"] if self.issuer else []) + (["aud"] if self.audience else [])
        claims: dict[str, Any] = jwt.decode(
            token,
            key=key,
            algorithms=[str(algorithm)],
            audience=list(self.audience) or None,
            issuer=self.issuer or None,
            leeway=self.skew_s,
            options={"require": required, "verify_aud": bool(self.audience), "verify_sub": False, "verify_jti": False},
        )
        return claims

    def _key(self, kid: object, algorithm: object) -> VerificationKey:
        """The key that a token names and may be signed by; without a `kid`, the only one for its algorithm."""
        keys = self.keys()
        if kid is None:
            fitting = [key for key in keys.values() if algorithm in key.algorithms]
            if len(fitting) != 1:
                raise TokenRefused("the token names no key by kid; have its provider name one")
            return fitting[0]
        if not isinstance(kid, str) or not 0 < len(kid) <= MAX_KID_CHARACTERS or kid[0] == "\0":
            raise TokenRefused("the token's kid is no key's id; check its provider")
        key = keys.get(kid)
        if key is None:
            self.missed()
            raise TokenRefused(
                "the token is signed by a key that is not in the JWKS, which is now read again; if tokens are refused"
                " after that, check their issuer and sasl.oauthbearer.jwks.endpoint.url"
            )
        if algorithm not in key.algorithms:
            raise TokenRefused("the token's algorithm is not that of its key; check its provider")
        return key


def _remedy(error: Exception) -> str:
    """For whoever runs the broker, who reads it in the log."""
    import jwt

    if isinstance(error, jwt.InvalidAudienceError):
        return "have it issued for one of sasl.oauthbearer.expected.audience, or correct that"
    if isinstance(error, jwt.InvalidIssuerError):
        return "have it issued by sasl.oauthbearer.expected.issuer, or correct that"
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"have its issuer add the claim {error.claim}"
    if isinstance(error, jwt.ExpiredSignatureError):
        return "have the client fetch another"
    if isinstance(error, jwt.ImmatureSignatureError | jwt.InvalidIssuedAtError):
        return "check the clocks, and the claims nbf and iat"
    if isinstance(error, jwt.InvalidSignatureError):
        return "it is forged or changed, or sasl.oauthbearer.jwks.endpoint.url has the keys of another issuer"
    if isinstance(error, jwt.DecodeError):
        return "check that the client sends a signed JWT, and nothing else, as its token"
    return "check its issuer"


def _reason(error: Exception) -> str:
    """PyJWT's texts name claims, not their values; others may quote the token."""
    import jwt

    return str(error) if isinstance(error, jwt.InvalidTokenError) and len(str(error)) < 100 else type(error).__name__
