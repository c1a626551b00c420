"""A broker as a client of other brokers: from the settings of their listener to those of a client's connection.

As in Kafka 3.9, a listener's settings hold for both halves: it shows one key to clients and to brokers, its truststore
says whom it believes as either, and a mechanism's login has the listener's users (PLAIN) as well as `username` and
`password` of the broker itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from logkernel.config.inter_broker import ENABLED, check_mechanism
from logkernel.errors import ConfigError
from logkernel.security import jaas
from logkernel.security.client_table import CLIENT_SECURITY, PROTOCOL
from logkernel.security.settings import ClientSecurity

_NAMES: Final = frozenset(setting.name for setting in CLIENT_SECURITY)
_MODULES: Final = {family: module for module, family in jaas.MODULES.items()}
_OPTIONS: Final = {"OAUTHBEARER": "", "GSSAPI": ' useKeyTab=true keyTab="FILE" principal="NAME/HOST@REALM"'}
_USER: Final = ' username="NAME" password="PASSWORD"'


def client_settings(listener: str, protocol: str, settings: Mapping[str, str], mechanism: str) -> dict[str, Any]:
    """Return a client's settings, by Kafka's names, for connections to a listener that speaks TLS or has SASL.

    `settings` are `BrokerConfig.security_settings` of the listener, `mechanism` is the value of
    `inter_broker.MECHANISM`. Raises `ConfigError` where they contradict each other, as Kafka refuses to start, and
    where a file or a login is missing.
    """
    found: dict[str, Any] = {name: text for name, text in settings.items() if name in _NAMES and name != jaas.NAME}
    found[PROTOCOL] = protocol
    if protocol.startswith("SASL"):
        mechanism = mechanism.upper()
        check_mechanism(listener, settings[ENABLED], mechanism)
        prefix = f"{mechanism.lower()}."
        own = {name.removeprefix(prefix): text for name, text in settings.items() if name.startswith(prefix)}
        found |= {name: text for name, text in own.items() if name in _NAMES}
        found["sasl.mechanism"] = mechanism
        if jaas.NAME not in found:
            raise ConfigError(_without_login(listener, mechanism))
    try:
        security = ClientSecurity.of(found)
        if security is not None and security.tls is not None:
            security.context()
    except ConfigError as error:
        raise ConfigError(f"to reach other brokers over listener {listener}: {error}") from None
    return found


def _without_login(listener: str, mechanism: str) -> str:
    module, options = _MODULES.get(mechanism, _MODULES["SCRAM"]), _OPTIONS.get(mechanism, _USER)
    return (
        f"listener.name.{listener.lower()}.{mechanism.lower()}.{jaas.NAME} is not set, by which this broker says to"
        f" others who it is; set it to: {module} required{options};"
    )
