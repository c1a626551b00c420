"""Settings of listeners, right and wrong: `record.py` gives them to Apache Kafka, `test_listener_settings.py` to us.

Each row is (the case's name, the settings). Settings that a row does not have are left to their defaults, but for
`listeners`, which `BASE` gives: the defaults of Kafka and of logkernel differ in the host.
"""

from __future__ import annotations

from typing import Final

BASE: Final = {"listeners": "PLAINTEXT://127.0.0.1:9092"}
TWO: Final = {
    "listeners": "IN://127.0.0.1:9092,OUT://127.0.0.1:9093",
    "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT",
}
BY_NAME: Final = {**TWO, "inter.broker.listener.name": "IN"}
SASL: Final = {
    "listeners": "IN://127.0.0.1:9092",
    "listener.security.protocol.map": "IN:SASL_PLAINTEXT",
    "inter.broker.listener.name": "IN",
    "listener.name.in.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' username="me" password="secret" user_me="secret";',
}

CASES: Final[dict[str, dict[str, str]]] = {
    # listeners
    "one": {},
    "two names": BY_NAME,
    "lower case": {"listeners": "plaintext://127.0.0.1:9092"},
    "an address without a name": {"listeners": "127.0.0.1:9092"},
    "every interface": {"listeners": "PLAINTEXT://:9092"},
    "every interface of IPv4": {"listeners": "PLAINTEXT://0.0.0.0:9092"},
    "no listener": {"listeners": ""},
    "a comma at the end": {"listeners": "PLAINTEXT://127.0.0.1:9092,"},
    "a blank behind a comma": {"listeners": "PLAINTEXT://127.0.0.1:9092, SSL://127.0.0.1:9093"},
    "a port above 65535": {"listeners": "PLAINTEXT://127.0.0.1:99999"},
    "a port below 0": {"listeners": "PLAINTEXT://127.0.0.1:-1"},
    "no port": {"listeners": "PLAINTEXT://127.0.0.1"},
    "a free port": {"listeners": "PLAINTEXT://127.0.0.1:0"},
    "one name twice": {"listeners": "PLAINTEXT://127.0.0.1:9092,PLAINTEXT://127.0.0.1:9093"},
    "one name in two cases": {"listeners": "PLAINTEXT://127.0.0.1:9092,plaintext://127.0.0.1:9093"},
    "one port twice": {"listeners": "PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.1:9092"},
    "one port of two hosts": {"listeners": "PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.2:9092"},
    "one port of IPv4 and IPv6": {"listeners": "PLAINTEXT://127.0.0.1:9092,SSL://[::1]:9092"},
    "a free port twice": {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"},
    "a name that no protocol has": {"listeners": "PLAINTEXT://127.0.0.1:9092,OUT://127.0.0.1:9093"},
    # advertised.listeners
    "advertised": {"advertised.listeners": "PLAINTEXT://broker.example:19092"},
    "advertised in lower case": {"advertised.listeners": "plaintext://broker.example:19092"},
    "advertised as every interface": {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"},
    "advertised by no name that listens": {"advertised.listeners": "PLAINTEXT://a.example:1,SSL://b.example:2"},
    "advertised by another name alone": {"advertised.listeners": "SSL://b.example:2"},
    "advertised in part": {**BY_NAME, "advertised.listeners": "IN://a.example:1"},
    "advertised without the brokers' listener": {**BY_NAME, "advertised.listeners": "OUT://a.example:1"},
    "advertised at one address": {**BY_NAME, "advertised.listeners": "IN://a.example:1,OUT://a.example:1"},
    "advertised twice": {**BY_NAME, "advertised.listeners": "IN://a.example:1,IN://b.example:2"},
    "advertised as nothing": {"advertised.listeners": ""},
    "advertised without a port": {"advertised.listeners": "PLAINTEXT://a.example"},
    "advertised with every interface to listen on": {
        "listeners": "PLAINTEXT://0.0.0.0:9092",
        "advertised.listeners": "PLAINTEXT://a.example:9092",
    },
    # listener.security.protocol.map
    "a protocol that is none": {"listener.security.protocol.map": "PLAINTEXT:TLS"},
    "a name without a protocol": {"listener.security.protocol.map": "PLAINTEXT"},
    "a name with an empty protocol": {"listener.security.protocol.map": "PLAINTEXT:"},
    "an empty name": {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,:SSL"},
    "an empty map": {"listener.security.protocol.map": ""},
    "a name with two protocols": {"listener.security.protocol.map": "PLAINTEXT:SSL,PLAINTEXT:PLAINTEXT"},
    "a name with two protocols, in two cases": {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,plaintext:SSL"},
    "a map in lower case": {"listener.security.protocol.map": "plaintext:plaintext"},
    "a map without the listener": {"listener.security.protocol.map": "OUT:PLAINTEXT"},
    "a map with more than listens": {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,MORE:SSL"},
    # inter.broker.listener.name
    "brokers by name": {"inter.broker.listener.name": "PLAINTEXT"},
    "brokers by a name in lower case": {**TWO, "inter.broker.listener.name": "in"},
    "brokers by a name that nobody has": {"inter.broker.listener.name": "NONE"},
    "brokers by a name that only the map has": {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,NONE:PLAINTEXT",
        "inter.broker.listener.name": "NONE",
    },
    "brokers by an empty name": {"inter.broker.listener.name": ""},
    "brokers by a name and a protocol": {
        "inter.broker.listener.name": "PLAINTEXT",
        "security.inter.broker.protocol": "PLAINTEXT",
    },
    "brokers by nothing, and no listener is called PLAINTEXT": TWO,
    # security.inter.broker.protocol
    "brokers by protocol": {"security.inter.broker.protocol": "PLAINTEXT"},
    "brokers by a protocol in lower case": {"security.inter.broker.protocol": "plaintext"},
    "brokers by an empty protocol": {"security.inter.broker.protocol": ""},
    "brokers by a protocol that is none": {"security.inter.broker.protocol": "TLS"},
    "brokers by a protocol without a listener": {"security.inter.broker.protocol": "SASL_SSL"},
    "brokers by a protocol whose name speaks another": {
        "listeners": "SSL://127.0.0.1:9092",
        "listener.security.protocol.map": "SSL:PLAINTEXT",
        "security.inter.broker.protocol": "SSL",
    },
    "brokers by a protocol that another name speaks": {
        **TWO,
        "listener.security.protocol.map": "IN:SSL,OUT:PLAINTEXT",
        "security.inter.broker.protocol": "SSL",
    },
    # sasl.mechanism.inter.broker.protocol
    "brokers by a mechanism": {
        **SASL,
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    },
    "brokers by a mechanism in lower case": {
        **SASL,
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "plain",
    },
    "brokers by a mechanism that is off": {
        **SASL,
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
    },
    "brokers by the default mechanism, which is off": {**SASL, "sasl.enabled.mechanisms": "PLAIN"},
    "brokers by a mechanism that only their listener has": {
        **SASL,
        "listener.name.in.sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    },
    "a mechanism of brokers in plain text": {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"},
    # control.plane.listener.name
    "orders by a listener": {**BY_NAME, "control.plane.listener.name": "OUT"},
    "orders by a listener in lower case": {**BY_NAME, "control.plane.listener.name": "out"},
    "orders by the brokers' listener": {**BY_NAME, "control.plane.listener.name": "IN"},
    "orders by a name that nobody has": {**BY_NAME, "control.plane.listener.name": "NONE"},
    "orders by an empty name": {**BY_NAME, "control.plane.listener.name": ""},
    "orders by a listener that is not advertised": {
        **BY_NAME,
        "control.plane.listener.name": "OUT",
        "advertised.listeners": "IN://a.example:1",
    },
    # early.start.listeners
    "early": {**BY_NAME, "early.start.listeners": "IN"},
    "early in lower case": {**BY_NAME, "early.start.listeners": "in"},
    "early by a name that nobody has": {**BY_NAME, "early.start.listeners": "NONE"},
    "early by nothing": {**BY_NAME, "early.start.listeners": ""},
}
