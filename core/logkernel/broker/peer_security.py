"""How this broker connects to the inter-broker listeners of others, by the settings in force."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from logkernel.broker.runtime import Runtime
from logkernel.errors import ConfigError
from logkernel.vocabulary import PLAINTEXT

if TYPE_CHECKING:
    from logkernel.config.broker import BrokerConfig

log = logging.getLogger("logkernel.security")

NOTHING: Final[Mapping[str, Any]] = {}


class PeerSecurity:
    """A client's settings for each inter-broker listener. Files that they name are read at each connection."""

    def __init__(self, runtime: Runtime, listeners: Sequence[str]) -> None:
        """Raises `ConfigError` where brokers cannot reach one another so."""
        self._runtime = runtime
        self._config = runtime.config
        self._settings = {listener: _settings(self._config, listener) for listener in listeners}

    def settings(self, listener: str) -> Mapping[str, Any]:
        """What a connection to `listener` of another broker needs beside an address; nothing for PLAINTEXT.

        A change of the running broker that cannot be is logged, and what was before stays.
        """
        config = self._runtime.config
        if config is not self._config:
            self._config = config
            for name in self._settings:
                try:
                    self._settings[name] = _settings(config, name)
                except ConfigError as error:
                    log.error("security between brokers not changed: %s", error)
        return self._settings.get(listener, NOTHING)


def _settings(config: BrokerConfig, listener: str) -> Mapping[str, Any]:
    protocol = config.security_protocol(listener)
    if protocol == PLAINTEXT:
        return NOTHING
    from logkernel.config.inter_broker import MECHANISM
    from logkernel.security.between_brokers import client_settings

    return client_settings(listener, protocol, config.security_settings(listener), config.get(MECHANISM))
