"""TLS to an identity provider, set by options `ssl.…` of the login module, as in Kafka: `sasl.jaas.config` of a client
for its token endpoint, and that of a listener's mechanism for its JWKS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logkernel.errors import ConfigError

if TYPE_CHECKING:
    import ssl

_LISTS = ("ssl.enabled.protocols", "ssl.cipher.suites")


def endpoint_context(url: str, options: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the context for a URL of https, None for others. Without such options, it trusts the system's CAs. Raises
    `ConfigError`."""
    if not url.startswith("https:"):
        return None
    from logkernel.security.tls import TlsSettings
    from logkernel.security.tls_contexts import client_context

    given = {
        name.replace(".", "_"): tuple(filter(None, map(str.strip, text.split(",")))) if name in _LISTS else text
        for name, text in options.items()
        if name.startswith("ssl.")
    }
    try:
        settings = TlsSettings(**given)  # type: ignore[arg-type]
    except TypeError:
        raise ConfigError(
            "an option ssl.… of sasl.jaas.config is unknown; use those of keystores and truststores"
        ) from None
    return client_context(settings)
