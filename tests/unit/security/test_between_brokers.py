"""From the settings of an inter-broker listener to those of a client, and the contradictions that end a start."""

from __future__ import annotations

from pathlib import Path

import authorities
import pytest

from logkernel.config.broker import BrokerConfig
from logkernel.config.inter_broker import MECHANISM
from logkernel.errors import ConfigError, SslAuthenticationException
from logkernel.security.between_brokers import client_settings
from logkernel.security.sasl.plain import PlainServer
from logkernel.security.settings import ClientSecurity
from logkernel.security.tls import TlsSession
from logkernel.security.tls_contexts import server_context
from logkernel.vocabulary import Principal

IN = "listener.name.in."
PLAIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' username="broker" password="of brokers" user_broker="of brokers" user_ann="hers";'
)
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="broker" password="of brokers";'


def made(protocol: str, **settings: str) -> ClientSecurity:
    """Names with `__` for a dot, as `_` stands in some."""
    given = {name.replace("__", "."): value for name, value in settings.items()}
    config = BrokerConfig.load(
        None, {"listeners": "IN://:1", "listener.security.protocol.map": f"IN:{protocol}"} | given
    )
    found = client_settings("IN", protocol, config.security_settings("IN"), config.get(MECHANISM))
    security = ClientSecurity.of(found)
    assert security is not None
    return security


def test_plain_takes_user_and_password_of_the_listeners_login() -> None:
    """As in Kafka, the entry that has the listener's users."""
    security = made(
        "SASL_PLAINTEXT",
        listener__name__in__sasl__enabled__mechanisms="PLAIN,SCRAM-SHA-512",
        listener__name__in__plain__sasl__jaas__config=PLAIN,
        sasl__mechanism__inter__broker__protocol="PLAIN",
    )
    server = PlainServer(lambda user, password: (user, password) == ("broker", "of brokers"))
    message = security.mechanism("h").respond(b"")
    assert message is not None
    server.evaluate(message)
    assert (security.mechanism_name, security.tls, server.principal) == ("PLAIN", None, Principal("User", "broker"))


def test_one_key_is_shown_to_clients_and_to_brokers() -> None:
    certificate = authorities.certified("broker1.test")
    security = made(
        "SSL",
        listener__name__in__ssl__keystore__type="PEM",
        listener__name__in__ssl__keystore__key=certificate.key,
        listener__name__in__ssl__keystore__certificate__chain=certificate.chain,
        ssl__truststore__type="PEM",
        ssl__truststore__certificates=authorities.ca_pem(),
    )
    listener = server_context(authorities.settings(certificate, "ours", ssl_client_auth="required"))

    def meet(host: str) -> bool:
        client = TlsSession(security.context(), server_side=False, server_hostname=host)
        server = TlsSession(listener, server_side=True)
        authorities.exchange(client, server)
        return client.is_established and server.is_established

    assert meet("broker1.test")
    with pytest.raises(SslAuthenticationException, match=r"broker2\.test"):
        meet("broker2.test")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {},
            "sasl.mechanism.inter.broker.protocol=GSSAPI: listener IN does not take it; add it to"
            " sasl.enabled.mechanisms, or name one of PLAIN",
        ),
        ({MECHANISM: "SCRAM-SHA-512"}, "=SCRAM-SHA-512: listener IN does not take it; .* one of PLAIN"),
        (
            {MECHANISM: "PLAIN"},
            "listener.name.in.plain.sasl.jaas.config is not set.* set it to: .*PlainLoginModule required username=",
        ),
        (
            {MECHANISM: "plain", f"{IN}plain.sasl.jaas.config": PLAIN.replace("username", "user_name")},
            "over listener IN: .*username",
        ),
        (
            {MECHANISM: "PLAIN", f"{IN}plain.sasl.jaas.config": SCRAM},
            "over listener IN: sasl.jaas.config is a login for SCRAM, but sasl.mechanism is PLAIN",
        ),
    ],
    ids=["Kafka's default", "another", "no login", "no user", "another's login"],
)
def test_a_contradiction_ends_the_start(settings: dict[str, str], said: str) -> None:
    mapped = {"listener.security.protocol.map": "IN:SASL_PLAINTEXT"}
    config = BrokerConfig.load(None, mapped | {f"{IN}sasl.enabled.mechanisms": "PLAIN"} | settings)
    with pytest.raises(ConfigError, match=said) as refused:
        client_settings("IN", "SASL_PLAINTEXT", config.security_settings("IN"), config.get(MECHANISM))
    assert "of brokers" not in str(refused.value)


def test_a_truststore_that_is_missing_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"to reach other brokers over listener IN: .*nowhere"):
        made("SSL", ssl__truststore__type="PEM", ssl__truststore__location=str(tmp_path / "nowhere.pem"))
