"""From Kafka's settings to contexts of the standard library's ssl, which is imported by the first one.

As Kafka does, every certificate in a truststore is trusted by itself, also one that is no CA's root.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from logkernel.errors import ConfigError
from logkernel.security import cipher_suites, stores

if TYPE_CHECKING:
    import ssl

    from logkernel.security.tls import TlsSettings

logger = logging.getLogger(__name__)

CLIENT_AUTH = ("none", "requested", "required")
PROTOCOLS = ("TLSv1.2", "TLSv1.3")
OLD_PROTOCOLS = ("TLS", "SSL", "SSLv2", "SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
"""Older ones, which Java no longer speaks either though it takes their names; and names of no version."""
TOO_WEAK = ("CA_MD_TOO_WEAK", "CA_KEY_TOO_SMALL", "EE_KEY_TOO_SMALL")
"""OpenSSL's reasons at its security level, which distributions set to 1 or 2: a hash such as SHA-1, or a short key."""


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """Verifies the broker, and its name unless `ssl.endpoint.identification.algorithm` is empty. Raises
    `ConfigError`."""
    import ssl

    algorithm = settings.ssl_endpoint_identification_algorithm
    if algorithm.lower() not in ("https", ""):
        raise ConfigError(f"ssl.endpoint.identification.algorithm is {algorithm!r}; use https, or nothing")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(algorithm)
    _set_common(context, settings)
    if not _load_trusted(context, settings):
        context.load_default_certs()
    _load_identity(context, settings)
    return context


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Shows the listener's certificate, and asks for a client's as `ssl.client.auth` says. Raises `ConfigError`."""
    import ssl

    if settings.ssl_client_auth not in CLIENT_AUTH:
        raise ConfigError(f"ssl.client.auth is {settings.ssl_client_auth!r}; use one of {', '.join(CLIENT_AUTH)}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _set_common(context, settings)
    # No session outlives its connection: each client shows its certificate anew, to the present truststore.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_CIPHER_SERVER_PREFERENCE
    if not _load_identity(context, settings):
        raise ConfigError("a TLS listener has no certificate; set ssl.keystore.location, or the PEM settings")
    if not _load_trusted(context, settings):
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    modes = (ssl.CERT_NONE, ssl.CERT_OPTIONAL, ssl.CERT_REQUIRED)
    context.verify_mode = modes[CLIENT_AUTH.index(settings.ssl_client_auth)]
    return context


class ReloadingContext:
    """A listener's context, made anew when one of its files changes. Not for threads."""

    def __init__(self, settings: TlsSettings, now: Callable[[], float] = time.monotonic, check_s: float = 1.0) -> None:
        """Raises `ConfigError` if the files are not good from the start."""
        self._settings = settings
        self._now = now
        self._check_s = check_s
        self._stamps = self._look()
        self._context = server_context(settings)
        self._next_check = now() + check_s
        _warn_of_time(settings)

    def current(self) -> ssl.SSLContext:
        """The context for a new connection. Files that cannot be used are logged, and the one before them is kept."""
        now = self._now()
        if now >= self._next_check:
            self._next_check = now + self._check_s
            if (stamps := self._look()) != self._stamps:
                self._reload(stamps)
        return self._context

    def _reload(self, stamps: list[tuple[int, ...] | None]) -> None:
        self._stamps = stamps
        files = ", ".join(self._settings.files)
        try:
            self._context = server_context(self._settings)
        except ConfigError as error:
            logger.error("the listener keeps its certificate, as the changed files cannot be used: %s", error)
        else:
            logger.info("the listener has new certificates or a new truststore, from %s", files)
            _warn_of_time(self._settings)

    def _look(self) -> list[tuple[int, ...] | None]:
        """Of each file what changes with it, also behind a symbolic link; None where it is not there."""
        return [_stamp(Path(file)) for file in self._settings.files]


def _warn_of_time(settings: TlsSettings) -> None:
    """Log that the listener's certificate has expired or is not valid yet. It is used, as in Kafka."""
    import ssl

    from logkernel.security import pem, validity

    identity = stores.identity(settings)
    assert identity is not None
    own = next(block for label, block in pem.blocks(identity.chain) if label == "CERTIFICATE")
    wrong = validity.wrong_now(ssl.PEM_cert_to_DER_cert(own), datetime.now(UTC))
    if wrong is not None:
        files = ", ".join(settings.files) or "ssl.keystore.certificate.chain"
        logger.warning("clients refuse the listener's certificate, as it %s (%s); renew it", wrong, files)


def _stamp(file: Path) -> tuple[int, ...] | None:
    try:
        facts = file.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino


def _set_common(context: ssl.SSLContext, settings: TlsSettings) -> None:
    import ssl

    versions = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
    enabled = _enabled(settings)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if settings.ssl_cipher_suites:
        older, has_tls13 = cipher_suites.by_openssl(settings.ssl_cipher_suites)
        enabled = tuple(one for one in enabled if (has_tls13 if one == "TLSv1.3" else older))
        if not enabled:
            raise ConfigError("no suite of ssl.cipher.suites belongs to a version of ssl.enabled.protocols; add one")
        _set_ciphers(context, older)
    context.minimum_version, context.maximum_version = versions[enabled[0]], versions[enabled[-1]]


def _enabled(settings: TlsSettings) -> tuple[str, ...]:
    """The versions to speak, the lowest first."""
    given = settings.ssl_enabled_protocols or (settings.ssl_protocol,)
    if unknown := [one for one in (*given, settings.ssl_protocol) if one not in PROTOCOLS + OLD_PROTOCOLS]:
        raise ConfigError(f"the TLS version {unknown[0]!r} is unknown; use {' or '.join(PROTOCOLS)}")
    enabled = tuple(one for one in PROTOCOLS if one in given)
    if not enabled:
        raise ConfigError(f"ssl.enabled.protocols has only {', '.join(given)}; add {' or '.join(PROTOCOLS)}")
    return enabled


def _set_ciphers(context: ssl.SSLContext, names: list[str]) -> None:
    import ssl

    if not names:
        return
    try:
        context.set_ciphers(":".join(names))
    except ssl.SSLError:
        raise ConfigError(f"OpenSSL has none of ssl.cipher.suites ({', '.join(names)}); choose others") from None


def _load_trusted(context: ssl.SSLContext, settings: TlsSettings) -> bool:
    import ssl

    certificates = stores.trusted(settings)
    if certificates is None:
        return False
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError) as error:
        source = settings.ssl_truststore_location or "ssl.truststore.certificates"
        raise ConfigError(f"a certificate in {source} cannot be read ({_reason(error)}); check the file") from None
    return True


def _load_identity(context: ssl.SSLContext, settings: TlsSettings) -> bool:
    import ssl

    identity = stores.identity(settings)
    if identity is None:
        return False
    source = settings.ssl_keystore_location or settings.ssl_key_location or "ssl.keystore.key"
    try:
        with _private_file((identity.key + identity.chain).encode()) as path:
            context.load_cert_chain(path, password=identity.password)
    except (ssl.SSLError, ValueError) as error:
        reason = _reason(error)
        if "KEY_VALUES_MISMATCH" in reason:
            remedy = "the key and its certificate are not a pair: give both of one issue, the own certificate first"
        elif reason in TOO_WEAK:
            remedy = "OpenSSL here refuses it as too weak: have it issued with SHA-256 and a key of 2,048 bits or more"
        else:
            remedy = "check ssl.key.password, and that it has a key and certificates"
        raise ConfigError(f"the key or certificate in {source} cannot be used ({reason}); {remedy}") from None
    return True


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or type(error).__name__)


@contextmanager
def _private_file(data: bytes) -> Iterator[str]:
    """The path of a file with `data`, in memory where the system has that: ssl takes a key from a file only."""
    memory = -1
    if hasattr(os, "memfd_create"):
        with suppress(OSError):
            memory = os.memfd_create("tls")
    if memory >= 0 and Path("/proc/self/fd").is_dir():
        try:
            os.write(memory, data)
            yield f"/proc/self/fd/{memory}"
        finally:
            os.close(memory)
        return
    with TemporaryDirectory() as folder:  # its mode is 0700
        path = Path(folder) / "identity.pem"
        path.write_bytes(data)
        yield str(path)
