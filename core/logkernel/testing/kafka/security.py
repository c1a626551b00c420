"""How clients log in to a tested broker: its listener's settings, and what a client sets. Certificates and passwords
are made for the broker, in a folder that ends with it.

PLAINTEXT        nobody is asked
SSL              TLS; with users, each shows a certificate of its own
SASL_PLAINTEXT   users log in with a password, by PLAIN or SCRAM
SASL_SSL         both
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from logkernel.broker.first_users import add_users
from logkernel.config.listeners import PROTOCOLS
from logkernel.errors import ConfigError
from logkernel.security.development import Development, obtain

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker

Users = Mapping[str, str] | Iterable[str]

FIRST_USER: Final = "user"
SPELLINGS: Final = ("kafka", "librdkafka")
MECHANISMS: Final[Mapping[str, str]] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""Mechanism → what a Java client calls its login."""
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT: Final = "SCRAM-SHA-512"
ITERATIONS: Final = 4_096
"""Of SCRAM: the fewest that Kafka takes, for tests log in often."""
RULES: Final = "RULE:^CN=([^,]+)$/$1/,DEFAULT"
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class ListenerSecurity:
    """See the module. `close` removes the folder, if it made that."""

    def __init__(self, protocol: str, users: Users, hosts: Iterable[str], folder: str | None = None) -> None:
        """`users` are name → password, or names; who has no password gets one. Certificates that are in `folder` are
        used, others made there. Raises `ConfigError`."""
        if protocol not in PROTOCOLS:
            raise ConfigError(f"there is no security_protocol={protocol!r}; use one of {', '.join(PROTOCOLS)}")
        self.protocol = protocol
        self.users = _users(users)
        if self.is_sasl and not self.users:
            self.users = _users([FIRST_USER])
        if protocol == "PLAINTEXT" and self.users:
            raise ConfigError("users log in by SSL or SASL; set security_protocol to SASL_SSL, or leave out users")
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._made: Development | None = None
        if self.is_tls:
            if folder is None:
                self._scratch = tempfile.TemporaryDirectory(prefix="logkernel-tls-", ignore_cleanup_errors=True)
                folder = self._scratch.name
            shown = () if self.is_sasl else self.users
            self._made = obtain(folder, hosts, shown)
        self.folder = folder if self.is_tls else None

    @property
    def is_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def is_sasl(self) -> bool:
        return self.protocol.startswith("SASL")

    def close(self) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()

    # ------------------------------------------------------------ the broker

    def settings(self) -> dict[str, Any]:
        """Of a broker whose listener is called after the protocol; what a test sets itself goes before."""
        found: dict[str, Any] = {}
        if self._made is not None:
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self._made.broker)}
            if self.users and not self.is_sasl:
                found |= {
                    "ssl.client.auth": "required", "ssl.truststore.type": "PEM",
                    "ssl.truststore.location": str(self._made.ca), "ssl.principal.mapping.rules": RULES,
                }  # fmt: skip
        if self.is_sasl:
            options = " ".join(f"user_{name}={_quoted(password)}" for name, password in self.users.items())
            login = f"listener.name.{self.protocol.lower()}.plain.sasl.jaas.config"
            found["sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
            found[login] = f"{MECHANISMS['PLAIN']} required {options};"
        return found

    def add_users(self, broker: Broker) -> Callable[[], bool]:
        """Have the cluster keep the users' SCRAM keys; see `first_users.add_users`."""
        mechanisms = [name for name in SCRAM if self.is_sasl]
        return add_users(broker, self.users, mechanisms, ITERATIONS)

    # ------------------------------------------------------------ clients

    def client(
        self, bootstrap: str, user: str | None, mechanism: str | None, password: str | None, spelling: str
    ) -> dict[str, str]:
        """What a client sets. Raises `ConfigError` for a user without a password, or a mechanism that is none."""
        if spelling not in SPELLINGS:
            raise ConfigError(f"there is no spelling={spelling!r}; use one of {', '.join(SPELLINGS)}")
        rows = {"bootstrap.servers": bootstrap, "security.protocol": self.protocol}
        is_kafka = spelling == "kafka"
        if self._made is not None:
            rows |= (
                {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self._made.ca)}
                if is_kafka
                else {"ssl.ca.location": str(self._made.ca)}
            )
        if self.is_sasl:
            rows |= self._login(user, mechanism, password, is_kafka=is_kafka)
        elif mechanism is not None or password is not None:
            raise ConfigError(f"{self.protocol} asks for no password; open the broker with security_protocol=SASL_SSL")
        elif self.users and self._made is not None:
            shown = str(self._made.user_file(self._known(user)))
            rows |= (
                {"ssl.keystore.type": "PEM", "ssl.keystore.location": shown}
                if is_kafka
                else {"ssl.certificate.location": shown, "ssl.key.location": shown}
            )
        elif user is not None:
            raise ConfigError(f"user={user!r}: this broker asks nobody who he is; open it with users=")
        return rows

    def login(self) -> dict[str, str]:
        """What the test's own clients set, which log in as the first user: without the address."""
        found = self.client("", None, None, None, "kafka")
        del found["bootstrap.servers"]
        return found

    def _login(
        self, user: str | None, mechanism: str | None, password: str | None, *, is_kafka: bool
    ) -> dict[str, str]:
        mechanism = mechanism or DEFAULT
        if mechanism not in MECHANISMS:
            raise ConfigError(f"mechanism={mechanism!r}: there are {', '.join(MECHANISMS)}")
        if password is None:
            user = self._known(user)
            password = self.users[user]
        elif user is None:
            user = next(iter(self.users))
        rows = {"sasl.mechanism": mechanism}
        if not is_kafka:
            return rows | {"sasl.username": user, "sasl.password": password}
        login = f"{MECHANISMS[mechanism]} required username={_quoted(user)} password={_quoted(password)};"
        return rows | {"sasl.jaas.config": login}

    def _known(self, user: str | None) -> str:
        if user is None:
            return next(iter(self.users))
        if user not in self.users:
            known = ", ".join(self.users)
            raise ConfigError(
                f"user={user!r} is not one of {known}; give it in users=, or pass password= to be refused"
            )
        return user


def _users(given: Users) -> dict[str, str]:
    if isinstance(given, str):
        given = [given]
    rows = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given, "")
    for name, password in rows.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(f"users: {name!r} is no name; write letters, digits, '.', '_' and '-'")
        if not isinstance(password, str) or "\0" in password:
            raise ConfigError(f"users: the password of {name} is no text; write one, or leave it out to have one made")
    return {name: password or secrets.token_urlsafe(12) for name, password in rows.items()}


def _quoted(text: str) -> str:
    """As a string of a login module."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r").replace("\n", "\\n")
    return f'"{escaped}"'
