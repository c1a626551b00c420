"""What protects a client's connections, and who the client is there: `ClientSecurity`, from Kafka's settings."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import attrs

from logkernel.config.definitions import Setting
from logkernel.config.sources import wanted_text
from logkernel.errors import ConfigError
from logkernel.security.client_table import CLIENT_SECURITY, IN_CAPITALS, PROTOCOL, SYNONYMS
from logkernel.security.login import NewMechanism, login_of
from logkernel.security.tls import TlsSettings
from logkernel.vocabulary import Secret

if TYPE_CHECKING:
    import ssl

    from logkernel.security.sasl.mechanism import ClientMechanism

_TABLE: Final[Mapping[str, Setting]] = {setting.name: setting for setting in CLIENT_SECURITY}
NAMES: Final = frozenset({*_TABLE, *SYNONYMS})
"""Settings that `ClientSecurity.of` reads."""
KEPT: Final = 64
"""Different securities of a process that are kept, with their contexts and tokens."""
PLAINTEXT: Final = "PLAINTEXT"
_OF_TLS: Final = frozenset(field.name for field in attrs.fields(TlsSettings))


class ClientSecurity:
    """What protects a client's connections; made by `of`. Clients with the same settings share one, and its tokens."""

    def __init__(
        self,
        protocol: str,
        tls: TlsSettings | None = None,
        *,
        verifies: bool = True,
        mechanism_name: str | None = None,
        new_mechanism: NewMechanism | None = None,
    ) -> None:
        self.protocol = protocol
        self.tls = tls
        """None: the connection is in plain text."""
        self.mechanism_name = mechanism_name
        """As in SaslHandshake; None: the broker does not ask who the client is."""
        self._verifies = verifies
        self._new_mechanism = new_mechanism
        self._context: ssl.SSLContext | None = None
        self._stamps: list[Any] = []
        self._lock = threading.Lock()

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> ClientSecurity | None:
        """Return the security that settings ask for, by Kafka's names or librdkafka's; None for PLAINTEXT.

        Values are typed, or text. Other settings are ignored. Raises `ConfigError`.
        """
        protocol = settings.get(PROTOCOL)
        if protocol is None or str(protocol).upper() == PLAINTEXT:
            return None
        return _made(tuple((name, _hashable(settings[name])) for name in sorted(NAMES & settings.keys())))

    @property
    def checks_host(self) -> bool:
        """Whether the broker's certificate has to be for the host that the client connects to."""
        return self._verifies and self.tls is not None and bool(self.tls.ssl_endpoint_identification_algorithm)

    def context(self) -> ssl.SSLContext:
        """Return the context of a new connection; its files are read again when they change. Raises `ConfigError`
        where one is missing or wrong."""
        assert self.tls is not None
        with self._lock:
            stamps = [_stamp(name) for name in self.tls.files]
            if self._context is None or stamps != self._stamps:
                self._context = _new_context(self.tls, verifies=self._verifies)
                self._stamps = stamps
            return self._context

    def mechanism(self, host: str) -> ClientMechanism:
        """Return the client's half of one authentication with the broker at `host`."""
        assert self._new_mechanism is not None
        return self._new_mechanism(host)

    def __repr__(self) -> str:
        return f"<ClientSecurity {self.protocol} {self.mechanism_name or ''}>"


@lru_cache(KEPT)
def _made(given: tuple[tuple[str, Any], ...]) -> ClientSecurity:
    values = {setting.name: _default(setting) for setting in CLIENT_SECURITY}
    values.update((name, typed(_TABLE[name], value)) for name, value in by_kafkas_names(dict(given)).items())
    protocol = values[PROTOCOL]
    tls = _tls(values) if protocol.endswith("SSL") else None
    verifies = values["enable.ssl.certificate.verification"]
    if not protocol.startswith("SASL"):
        return ClientSecurity(protocol, tls, verifies=verifies)
    return ClientSecurity(
        protocol,
        tls,
        verifies=verifies,
        mechanism_name=values["sasl.mechanism"],
        new_mechanism=login_of(values),
    )


def _tls(values: Mapping[str, Any]) -> TlsSettings:
    given = {name.replace(".", "_"): _revealed(value) for name, value in values.items() if value is not None}
    algorithm = given["ssl_endpoint_identification_algorithm"].lower()
    given["ssl_endpoint_identification_algorithm"] = "" if algorithm == "none" else algorithm
    found = TlsSettings(**{name: given[name] for name in given.keys() & _OF_TLS})
    for prefix, apart in (("ssl.keystore", "key"), ("ssl.truststore", "certificates")):
        if values[f"{prefix}.location"] and values[f"{prefix}.{apart}"]:
            raise ConfigError(f"{prefix}.location and {prefix}.{apart} are both set; give one of them")
    if bool(values["ssl.keystore.key"]) != bool(values["ssl.keystore.certificate.chain"]):
        raise ConfigError("only one of ssl.keystore.key and ssl.keystore.certificate.chain is set; set both")
    return found


def _new_context(tls: TlsSettings, *, verifies: bool) -> ssl.SSLContext:
    import ssl

    from logkernel.security.tls_contexts import client_context

    context = client_context(tls)
    if not verifies:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _stamp(name: str) -> tuple[int, ...] | None:
    """What changes with a file, also behind a symbolic link; None where it is not there."""
    try:
        facts = os.stat(name)
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino


def is_secret(name: str) -> bool:
    """Whether the value of a client's setting is not to be shown."""
    setting = _TABLE.get(SYNONYMS.get(name, name))
    return setting is not None and setting.sensitive


def by_kafkas_names(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with Kafka's names for librdkafka's. Raises `ConfigError` where both are given and differ."""
    found = dict(given)
    for name, kafkas in SYNONYMS.items():
        if name not in found:
            continue
        value = found.pop(name)
        known = found.setdefault(kafkas, value)
        if _revealed(known) != _revealed(value):
            raise ConfigError(f"{name} and {kafkas} mean the same, and differ; give one of them")
        store = ".".join(kafkas.split(".")[:2])
        if store in ("ssl.truststore", "ssl.keystore"):  # librdkafka reads PEM there, and has no setting to say so
            found.setdefault(f"{store}.type", "PEM")
    return found


def typed(setting: Setting, value: Any) -> Any:
    """Return the value of a setting, secrets as `Secret`. Raises `ConfigError`, which shows no secret."""
    if value is None:
        return _default(setting)
    if setting.sensitive:
        return value if isinstance(value, Secret) else Secret(str(value))
    if not isinstance(value, str):
        return value
    try:
        return setting.typed(value.upper() if setting.name in IN_CAPITALS else value)
    except ValueError as error:
        wanted = wanted_text(setting.type, setting.validator)
        raise ConfigError(f"{setting.name}={value!r}: {error}; give {wanted}") from None


def _default(setting: Setting) -> Any:
    return None if setting.default is None else setting.parsed(setting.default)


def _revealed(value: Any) -> Any:
    return value.reveal() if isinstance(value, Secret) else value


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
