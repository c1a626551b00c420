"""Adapters: outside clients that write two records and read them back over a secure listener.

`Login` has what they need, and each translates it into its own settings.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from attrs import evolve, frozen

VALUES = [b"one", b"two"]
WAIT_S = 180
LOGINS = "org.apache.kafka.common.security"


class Refused(Exception):
    """The client says that it was not let in; the text is its own."""


@frozen
class Login:
    protocol: str
    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    keytab: str = ""
    ca: str = ""
    """Files of PEM: the CA, and the client's own key with its certificate, in one file and in two."""
    own: str = ""
    key: str = ""
    certificate: str = ""

    def by(self, **others: str) -> Login:
        return evolve(self, **others)


Write = Callable[[str, Login, str], list[bytes]]
"""(bootstrap, login, topic) → what was read. Raises `Refused`."""


def confluent(bootstrap: str, login: Login, topic: str, oidc: Mapping[str, str] | None = None) -> list[bytes]:
    """librdkafka; it gets its token by the settings `oidc`, or `login` has it."""
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

    errors: list[KafkaError] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "security.protocol": login.protocol,
        "error_cb": errors.append,
    }
    if oidc is not None:
        settings |= {"sasl.mechanism": login.mechanism, **oidc}
    elif login.mechanism == "OAUTHBEARER":
        settings |= {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda config: (login.token, 4e9)}
    elif login.mechanism:
        settings |= {"sasl.mechanism": login.mechanism, "sasl.username": login.user, "sasl.password": login.password}
    if login.ca:
        settings["ssl.ca.location"] = login.ca
    if login.own:
        settings |= {"ssl.certificate.location": login.certificate, "ssl.key.location": login.key}
    producer = Producer(settings)
    deadline_s = time.monotonic() + WAIT_S
    while True:
        try:
            producer.list_topics(timeout=3)
            break
        except KafkaException as error:
            producer.poll(0)
            if errors or time.monotonic() > deadline_s:  # else the machine is slow
                raise Refused([error, *errors]) from error
    for value in VALUES:
        producer.produce(topic, value, partition=0)
    assert producer.flush(WAIT_S) == 0
    consumer = Consumer({**settings, "group.id": "unused"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        found = consumer.consume(len(VALUES), WAIT_S)
    finally:
        consumer.close()
    return [message.value() for message in found]


def kafka_python(bootstrap: str, login: Login, topic: str) -> list[bytes]:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.errors import KafkaError
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):
        def token(self) -> str:
            return login.token

    settings: dict[str, Any] = {
        "bootstrap_servers": bootstrap,
        "security_protocol": login.protocol,
        "sasl_mechanism": login.mechanism or None,
        "sasl_plain_username": login.user or None,
        "sasl_plain_password": login.password or None,
        "sasl_oauth_token_provider": Provider() if login.token else None,
        "sasl_kerberos_service_name": "kafka",
        "ssl_cafile": login.ca or None,
        "ssl_certfile": login.own or None,
    }
    try:
        try:
            producer = KafkaProducer(bootstrap_timeout_ms=1_000, **settings)
        except KafkaError:  # it does not say whether it was refused, or the machine is slow
            producer = KafkaProducer(bootstrap_timeout_ms=30_000, **settings)
    except KafkaError as error:
        raise Refused(error) from error
    for value in VALUES:
        producer.send(topic, value, partition=0).get(WAIT_S)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=WAIT_S * 1000, **settings)
    found = [message.value for _, message in zip(VALUES, consumer, strict=False)]
    consumer.close()
    return found


def aiokafka(bootstrap: str, login: Login, topic: str) -> list[bytes]:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.abc import AbstractTokenProvider
    from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError

    class Provider(AbstractTokenProvider):
        async def token(self) -> str:
            return login.token

    context = ssl.create_default_context(cafile=login.ca) if login.ca else None
    if context is not None and login.own:
        context.load_cert_chain(login.own)

    async def go() -> list[bytes]:
        settings: dict[str, Any] = {
            "bootstrap_servers": bootstrap,
            "request_timeout_ms": 40_000,
            "security_protocol": login.protocol,
            "ssl_context": context,
            "sasl_mechanism": login.mechanism or "PLAIN",
            "sasl_plain_username": login.user or None,
            "sasl_plain_password": login.password or None,
            "sasl_oauth_token_provider": Provider() if login.token else None,
        }
        producer = AIOKafkaProducer(**settings)
        try:
            await producer.start()
        except KafkaError as error:
            await producer.stop()
            raise Refused(error) from error
        try:
            for value in VALUES:
                await producer.send_and_wait(topic, value, partition=0)
        except UnknownTopicOrPartitionError as error:
            # It takes no note of a refused token: its Metadata is answered ILLEGAL_SASL_STATE, as by Kafka.
            raise Refused(error) from error
        finally:
            await producer.stop()
        consumer = AIOKafkaConsumer(topic, auto_offset_reset="earliest", group_id=None, **settings)
        await consumer.start()
        try:
            return [(await asyncio.wait_for(consumer.getone(), WAIT_S)).value for _ in VALUES]
        finally:
            await consumer.stop()

    return asyncio.run(go())


class Java:
    """Kafka's console producer and consumer."""

    def __init__(self, apache_kafka: ModuleType, folder: Path) -> None:
        self._apache_kafka = apache_kafka
        self._folder = folder

    def __call__(self, bootstrap: str, login: Login, topic: str) -> list[bytes]:
        file = self._folder / f"{topic}.properties"
        file.write_text("".join(f"{name}={_escaped(value)}\n" for name, value in self._settings(login).items()))
        common = ["--bootstrap-server", bootstrap, "--topic", topic, "--command-config", str(file)]
        self._run("ConsoleProducer", *common, stdin=b"\n".join(VALUES) + b"\n")
        read = self._run(
            "consumer.ConsoleConsumer", *common, "--from-beginning", "--max-messages", "2", "--timeout-ms", "180000"
        )
        return read.split()

    def _settings(self, login: Login) -> dict[str, str]:
        found = {
            "security.protocol": login.protocol,
            "delivery.timeout.ms": "180000",
            "request.timeout.ms": "60000",
            "max.block.ms": "180000",
        }
        if login.mechanism == "OAUTHBEARER":
            module = f"{LOGINS}.oauthbearer.OAuthBearerLoginModule"
            found["sasl.jaas.config"] = f'{module} required unsecuredLoginStringClaim_sub="{login.user}";'
        elif login.mechanism == "GSSAPI":
            found["sasl.kerberos.service.name"] = "kafka"
            found["sasl.jaas.config"] = (
                "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
                f' keyTab="{login.keytab}" principal="{login.user}";'
            )
        elif login.mechanism:
            module = "plain.Plain" if login.mechanism == "PLAIN" else "scram.Scram"
            found["sasl.jaas.config"] = (
                f'{LOGINS}.{module}LoginModule required username="{login.user}" password="{_quoted(login.password)}";'
            )
        if login.mechanism:
            found["sasl.mechanism"] = login.mechanism
        if login.ca:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": login.ca}
        if login.own:
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": login.own}
        return found

    def _run(self, tool: str, *arguments: str, stdin: bytes = b"") -> bytes:
        command = self._apache_kafka.java(f"org.apache.kafka.tools.{tool}", *arguments)
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=300)
        said = (done.stdout + done.stderr).decode(errors="replace")
        if done.returncode != 0 or "uthenticationException" in said:
            raise Refused(said)
        return done.stdout


def _escaped(value: str) -> str:
    """As a properties file has it, which is Latin-1 to Java."""
    return "".join(f"\\u{ord(one):04x}" if ord(one) > 126 or one == "\\" else one for one in value)


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
