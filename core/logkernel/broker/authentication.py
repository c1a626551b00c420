"""How the broker's listeners learn who a client is: their settings, and the users that the cluster keeps."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from logkernel.broker.metadata_manager import MetadataManager
from logkernel.broker.runtime import Runtime
from logkernel.contracts import ListenerSecurity
from logkernel.errors import ConfigError, PluginError

if TYPE_CHECKING:
    from logkernel.broker.delegation_tokens import DelegationTokens
    from logkernel.broker.unknown_users import UnknownUsers
    from logkernel.config.broker import BrokerConfig
    from logkernel.security.repeats import Repeats
    from logkernel.security.sasl.scram import ScramCredential, ScramToken

log = logging.getLogger("logkernel.security")

SCRAM: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""Mechanism → its number in the cluster's metadata."""
MAX_EACH: Final = 20
"""Different failures of one client's host that are written in a window; a user's name is part of some."""
MAX_ALL: Final = 500


class _Protected:
    """A listener's security, and what it was made of."""

    __slots__ = ("config", "security", "settings")

    def __init__(self, config: BrokerConfig, settings: dict[str, str], security: ListenerSecurity) -> None:
        self.config = config
        self.settings = settings
        self.security = security


class Authentication:
    """Gives each listener its security."""

    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataManager,
        tokens: Callable[[], DelegationTokens],
        unknown: Callable[[], UnknownUsers],
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._tokens = tokens
        self._unknown = unknown
        self._protected: dict[str, _Protected] = {}
        self._repeats: Repeats | None = None
        """Counts logins that fail again; of all listeners."""

    def of(self, listener: str) -> ListenerSecurity | None:
        """What protects a listener, by the settings in force now; None: it speaks plain text and asks nothing.

        Raises `ConfigError`, which names the setting, or `PluginError`, at the first call. A change of a running broker
        that cannot be is logged, and what was before stays.
        """
        config = self._runtime.config
        known = self._protected.get(listener)
        if known is not None and known.config is config:
            return known.security
        protocol = config.security_protocol(listener)
        if protocol == "PLAINTEXT":
            return None
        settings = config.security_settings(listener)
        if known is not None:
            known.config = config
            if known.settings == settings:
                return known.security
        try:
            security = self._make(listener, protocol, settings)
        except (ConfigError, PluginError) as error:
            if known is None:
                raise
            log.error("security not changed: %s", error)
            return known.security
        self._protected[listener] = _Protected(config, settings, security)
        return security

    def close(self) -> None:
        """Log what was counted; the broker stops."""
        if self._repeats is not None:
            self._repeats.close()

    def _make(self, listener: str, protocol: str, settings: dict[str, str]) -> ListenerSecurity:
        from logkernel.security.listener import ListenerProtection
        from logkernel.security.repeats import Repeats

        runtime = self._runtime
        if self._repeats is None:
            label = "authentication failed: host"
            self._repeats = Repeats(log, label, runtime.after, max_each=MAX_EACH, max_all=MAX_ALL)
        try:
            return ListenerProtection(
                listener,
                protocol,
                settings,
                credential_of=self._credential,
                token_of=self._token,
                unknown_of=lambda mechanism: self._unknown().told(SCRAM[mechanism]),
                repeats=self._repeats,
                checker_of=lambda name: runtime.kernel.password_checker(name, runtime.config),
                wall_ms=runtime.clock.wall_ms,
            )
        except ConfigError as error:
            raise ConfigError(f"listener {listener}: {error}") from None

    def _credential(self, mechanism: str, user: str) -> ScramCredential | None:
        from logkernel.security.sasl.scram import ScramCredential

        kept = self._metadata.image.scram.get((user, SCRAM[mechanism]))
        if kept is None:
            return None
        salt, stored, server = (base64.b64decode(key) for key in (kept.salt, kept.stored_key, kept.server_key))
        return ScramCredential(salt, stored, server, kept.iterations)

    def _token(self, mechanism: str, token_id: str) -> ScramToken | None:
        return self._tokens().login(mechanism, token_id)
