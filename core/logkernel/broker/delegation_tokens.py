"""The cluster's delegation tokens as this broker uses them (KIP-48): with the HMACs by which their owners prove that
they have them, computed under `delegation.token.secret.key`."""

from __future__ import annotations

import base64
import hmac
from typing import TYPE_CHECKING, Final

from logkernel.broker.metadata_manager import MetadataManager
from logkernel.broker.runtime import Runtime
from logkernel.controller.effects import ControllerResult
from logkernel.controller.token import Token
from logkernel.controller.tokens import Limits, without_expired
from logkernel.vocabulary import Principal, format_id

if TYPE_CHECKING:
    from logkernel.security.sasl.scram import ScramCredential, ScramToken

HASH: Final = "sha512"
"""Kafka's: HmacSHA512."""
SALT_BYTES: Final = 32


class DelegationTokens:
    """See the module. Its maps follow the image's tokens, when they are asked."""

    def __init__(self, runtime: Runtime, metadata: MetadataManager) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._key = str(runtime.config.get("delegation.token.secret.key") or "").encode()
        self._changes = 0
        """`Tokens.changes` that the maps know of."""
        self._hmacs: dict[str, bytes] = {}
        self._ids: dict[bytes, str] = {}
        """By HMAC."""
        self._credentials: dict[str, dict[str, ScramCredential]] = {}
        """Token id → mechanism → keys, of those that logged in: to derive one takes some ms."""

    def __repr__(self) -> str:
        return f"DelegationTokens(enabled={self.is_enabled})"

    @property
    def is_enabled(self) -> bool:
        return bool(self._key)

    @property
    def limits(self) -> Limits:
        get = self._runtime.config.get
        return Limits(int(get("delegation.token.max.lifetime.ms")), int(get("delegation.token.expiry.time.ms")))

    def new_id(self) -> str:
        return format_id(self._runtime.random.uuid())

    def hmac(self, token_id: str) -> bytes:
        """The token's secret, in 64 bytes; a client's password is their base64."""
        return hmac.digest(self._key, token_id.encode(), HASH)

    def all(self) -> list[Token]:
        return list(self._metadata.image.tokens.values())

    def by_hmac(self, wanted: bytes) -> Token | None:
        self._follow()
        return self._metadata.image.tokens.get(self._ids.get(wanted, ""))

    def login(self, mechanism: str, token_id: str) -> ScramToken | None:
        """What checks a client's proof that it has the token; None for one that is not there or has expired."""
        token = self._metadata.image.tokens.get(token_id)
        if not self.is_enabled or token is None or token.is_expired(self._runtime.clock.wall_ms()):
            return None
        from logkernel.security.sasl.scram import ScramCredential, ScramToken

        self._follow()
        known = self._credentials.setdefault(token_id, {})
        if mechanism not in known:
            password = base64.b64encode(self._hmacs[token_id]).decode()
            # not by chance: brokers that told different salts would tell that there is a token
            salt = hmac.digest(self._key, f"salt:{mechanism}:{token_id}".encode(), HASH)[:SALT_BYTES]
            known[mechanism] = ScramCredential.of(password, mechanism, salt=salt)
        return ScramToken(known[mechanism], Principal(*token.owner), token.expires_ms)

    def without_expired(self) -> ControllerResult:
        return without_expired(self.all(), self._runtime.clock.wall_ms())

    def _follow(self) -> None:
        tokens = self._metadata.image.tokens
        if self._changes == tokens.changes:
            return
        for token_id in self._hmacs.keys() - tokens.keys():
            del self._ids[self._hmacs.pop(token_id)]
            self._credentials.pop(token_id, None)
        for token_id in tokens.keys() - self._hmacs.keys():
            self._hmacs[token_id] = made = self.hmac(token_id)
            self._ids[made] = token_id
        self._changes = tokens.changes
