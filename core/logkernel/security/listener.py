"""What protects a listener of a broker, by its settings: `contracts.ListenerSecurity`.

PLAINTEXT        nothing: it has none of this
SSL              TLS; a client is who its certificate says, or ANONYMOUS
SASL_PLAINTEXT   a client is who a mechanism found it to be
SASL_SSL         both; the certificate does not count
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from logkernel.config.definitions import PER_LISTENER
from logkernel.contracts import Login, PasswordChecker, ServerMechanism
from logkernel.errors import ConfigError, LogkernelError
from logkernel.security import jaas
from logkernel.vocabulary import ANONYMOUS, SASL_MECHANISMS, Principal, Secret

if TYPE_CHECKING:
    from logkernel.security.principals import PrincipalMapping
    from logkernel.security.repeats import Repeats
    from logkernel.security.sasl.scram import ScramCredential, ScramToken, UnknownUser
    from logkernel.security.tls import TlsSession, TlsSettings
    from logkernel.security.tls_contexts import ReloadingContext

log = logging.getLogger("logkernel.security")

CheckerOf = Callable[[str], PasswordChecker]
"""The name of a plugin → its checker; raises `LogkernelError`."""
CredentialOf = Callable[[str, str], "ScramCredential | None"]
"""(mechanism, user) → the keys of a SCRAM user."""
TokenOf = Callable[[str, str], "ScramToken | None"]
"""(mechanism, id) → a delegation token that has not expired."""
UnknownOf = Callable[[str], "UnknownUser"]
"""Mechanism → what a SCRAM user who does not exist is told."""
PLAIN_HANDLER: Final = "plain.sasl.server.callback.handler.class"
KAFKAS_PLAIN: Final = "PlainServerCallbackHandler"
"""Kafka's own, which has the users of sasl.jaas.config."""


class ListenerProtection:
    """See the module."""

    def __init__(
        self,
        name: str,
        protocol: str,
        settings: Mapping[str, str],
        *,
        credential_of: CredentialOf,
        checker_of: CheckerOf,
        token_of: TokenOf,
        unknown_of: UnknownOf,
        repeats: Repeats,
        wall_ms: Callable[[], int],
    ) -> None:
        """`settings` are `BrokerConfig.security_settings` of the listener; `repeats` counts logins that fail again.
        Raises `ConfigError`."""
        self.name = name
        self.max_receive_bytes = int(settings["sasl.server.max.receive.size"])
        self.failure_delay_ms = int(settings["connection.failed.authentication.delay.ms"])
        self.timeout_ms = int(settings["logkernel.authentication.timeout.ms"])
        self.check_timeout_ms = int(settings["logkernel.password.check.timeout.ms"])
        self._max_reauth_ms = int(settings["connections.max.reauth.ms"])
        self._settings = settings
        self._credential_of = credential_of
        self._checker_of = checker_of
        self._token_of = token_of
        self._unknown_of = unknown_of
        self._repeats = repeats
        self._wall_ms = wall_ms
        self._context: ReloadingContext | None = None
        self._mapping: PrincipalMapping | None = None
        """From certificates to principals; None: clients show none."""
        self._makers: dict[str, Callable[[str], Any]] = {}
        """By the client's address."""
        if protocol in ("SSL", "SASL_SSL"):
            self._context = self._make_context()
            if settings["ssl.client.auth"] != "none":
                self._mapping = self._make_mapping()
                self._warn_of_anyones_certificate()
        if protocol in ("SASL_PLAINTEXT", "SASL_SSL"):
            self._makers = {mechanism: self._maker(mechanism) for mechanism in self._enabled()}
        self.mechanisms = tuple(self._makers)

    # ------------------------------------------------------------ contracts.ListenerSecurity

    def tls(self) -> TlsSession | None:
        if self._context is None:
            return None
        from logkernel.security.tls import TlsSession

        return TlsSession(self._context.current(), server_side=True)

    def mechanism(self, name: str, peer: str) -> ServerMechanism:
        return cast(ServerMechanism, self._makers[name](peer))

    def principal_of(self, certificate: bytes | None) -> Principal:
        return ANONYMOUS if self._mapping is None else self._mapping.principal(certificate)

    def lifetime_ms(self, expires_ms: int | None) -> int:
        left = [self._max_reauth_ms] if self._max_reauth_ms else []
        if expires_ms is not None:
            left.append(max(1, expires_ms - self._wall_ms()))
        return min(left, default=0)

    def rejected(self, peer: str, mechanism: str, error: BaseException) -> None:
        if mechanism == "OAUTHBEARER":
            from logkernel.security.sasl.oauthbearer import RefusalAcknowledged

            if isinstance(error, RefusalAcknowledged):
                return
        level, details = (logging.INFO, None) if isinstance(error, LogkernelError) else (logging.ERROR, error)
        known_here = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))  # clients are not told these
        what = f"listener={self.name} mechanism={mechanism}: {error}{known_here}"
        if self._repeats.is_new(peer.rpartition(":")[0], what):
            log.log(level, "authentication failed: peer=%s %s", peer, what, exc_info=details)

    # ------------------------------------------------------------ TLS

    def _make_context(self) -> ReloadingContext:
        from logkernel.security.tls_contexts import ReloadingContext

        if not self._settings.get("ssl.keystore.location") and not self._settings.get("ssl.keystore.key"):
            raise self._wrong(
                "ssl.keystore.location",
                "the listener speaks TLS and has no key",
                "name a file with key and certificate",
            )
        return ReloadingContext(tls_settings(self._settings))

    def _warn_of_anyones_certificate(self) -> None:
        if not self._settings.get("ssl.truststore.location") and not self._settings.get("ssl.truststore.certificates"):
            log.warning(
                "listener %s: ssl.client.auth=%s without a truststore lets in who has a certificate of any authority "
                "that this system trusts; name yours by ssl.truststore.location",
                self.name,
                self._settings["ssl.client.auth"],
            )

    def _make_mapping(self) -> PrincipalMapping:
        from logkernel.security.principals import PrincipalMapping

        return PrincipalMapping(self._settings["ssl.principal.mapping.rules"])

    # ------------------------------------------------------------ SASL

    def _enabled(self) -> list[str]:
        text = self._settings["sasl.enabled.mechanisms"]
        names = [name.strip().upper() for name in text.split(",") if name.strip()]
        known = ", ".join(SASL_MECHANISMS)
        if not names:
            raise self._wrong("sasl.enabled.mechanisms", "the listener asks for SASL by no mechanism", f"name {known}")
        for name in names:
            if name not in SASL_MECHANISMS:
                raise self._wrong("sasl.enabled.mechanisms", f"{name} is not served here", f"name some of {known}")
        return names

    def _maker(self, mechanism: str) -> Callable[[str], Any]:
        if mechanism == "PLAIN":
            return self._plain()
        if mechanism == "OAUTHBEARER":
            return self._oauthbearer()
        if mechanism == "GSSAPI":
            return self._gssapi()
        from logkernel.security.sasl.scram import ScramServer

        return lambda _: ScramServer(
            mechanism, partial(self._credential_of, mechanism), partial(self._token_of, mechanism),
            unknown=partial(self._unknown_of, mechanism),
        )  # fmt: skip

    def _plain(self) -> Callable[[str], Any]:
        from logkernel.security.sasl.plain import PlainServer

        handler = self._settings.get(PLAIN_HANDLER, "").strip()
        if handler and handler.rpartition(".")[2] != KAFKAS_PLAIN:
            return self._checked_by(handler)
        options = self._login("plain")
        if not options:
            raise self._wrong(
                f"{PER_LISTENER}{self.name.lower()}.plain.sasl.jaas.config",
                "PLAIN has no users",
                'give org.apache.kafka.common.security.plain.PlainLoginModule required user_NAME="PASSWORD";',
            )
        passwords = {
            option.removeprefix("user_"): text.encode()
            for option, text in options.items()
            if option.startswith("user_")
        }
        if not passwords:
            log.warning(
                "listener %s: nobody can log in by PLAIN, as %s%s.plain.sasl.jaas.config has no users; "
                'add user_NAME="PASSWORD"',
                self.name,
                PER_LISTENER,
                self.name.lower(),
            )

        def check(user: str, password: str) -> bool:
            known = passwords.get(user)
            same = hmac.compare_digest(password.encode(), known if known is not None else b"")
            return same and known is not None

        return lambda _: PlainServer(check)

    def _checked_by(self, name: str) -> Callable[[str], Any]:
        """PLAIN with the passwords of a plugin."""
        from logkernel.security.sasl.plain import PlainServer

        checker = self._checker_of(name)

        def server(peer: str) -> PlainServer:
            def check(user: str, password: str) -> bool | str:
                return checker.check(Login(user, Secret(password), self.name, peer.rpartition(":")[0]))

            return PlainServer(check, blocks=True)

        return server

    def _oauthbearer(self) -> Callable[[str], Any]:
        from logkernel.security.sasl.oauthbearer import OAuthBearerServer
        from logkernel.security.tokens.listener_keys import is_unsecured, validator_of

        settings = self._of("oauthbearer")
        validate = validator_of(settings, self._login("oauthbearer"), lambda: self._wall_ms() / 1000)
        if is_unsecured(settings):
            log.warning(
                "listener %s: OAUTHBEARER takes unsecured tokens, which anybody can make for any user; set "
                "sasl.oauthbearer.jwks.endpoint.url instead of the handler, except for a test", self.name,
            )  # fmt: skip
        elif not settings.get("sasl.oauthbearer.expected.audience", "").strip():
            log.warning(
                "listener %s: OAUTHBEARER takes tokens for any audience, so one for another service lets its owner in; "
                "set sasl.oauthbearer.expected.audience", self.name,
            )  # fmt: skip
        return lambda peer: OAuthBearerServer(validate, partial(self.rejected, peer, "OAUTHBEARER"))

    def _gssapi(self) -> Callable[[str], Any]:
        from logkernel.security.kerberos.logins import server_of

        settings = self._of("gssapi")
        new = server_of(settings.get(jaas.NAME), settings, self._wall_ms)
        return lambda _: new()

    def _of(self, mechanism: str) -> Mapping[str, str]:
        """The settings of one mechanism, its own above those of the listener."""
        prefix = f"{mechanism}."
        own = {name.removeprefix(prefix): text for name, text in self._settings.items() if name.startswith(prefix)}
        return {**self._settings, **own}

    def _login(self, mechanism: str) -> dict[str, str]:
        """The options of a mechanism's login module."""
        text = self._of(mechanism).get(jaas.NAME)
        return {name: secret.reveal() for name, secret in jaas.parse(text).options.items()} if text else {}

    @staticmethod
    def _wrong(setting: str, problem: str, remedy: str) -> ConfigError:
        return ConfigError(f"{setting}: {problem}; {remedy}")


def tls_settings(settings: Mapping[str, str]) -> TlsSettings:
    """Those of Kafka's settings that TLS has."""
    from logkernel.security.tls import TlsSettings

    given: dict[str, Any] = {}
    for name in (row.name for row in attrs.fields(TlsSettings)):
        text = settings.get(name.replace("_", "."))
        if text is not None:
            lists = name in ("ssl_enabled_protocols", "ssl_cipher_suites")
            given[name] = tuple(filter(None, map(str.strip, text.split(",")))) if lists else text
    return TlsSettings(**given)
