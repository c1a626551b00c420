"""Errors that a client raises itself: the problem, the value, and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import logkernel
from logkernel.errors import ConfigError, LogkernelError


def tried(work: Callable[[], Any]) -> str:
    """The text of the error that `work` raises."""
    with pytest.raises(LogkernelError) as caught:
        work()
    return str(caught.value)


def test_a_record_that_is_too_large_names_the_setting_to_raise() -> None:
    with logkernel.open() as log:
        log.create_topic("t")
        with log.producer(max_request_size=1000) as producer:
            text = tried(lambda: producer.send("t", bytes(5000)))
        assert text.endswith("exceeds max.request.size=1000; raise it, or send less")


def test_calls_that_need_a_setting_name_it() -> None:
    with logkernel.open() as log:
        log.create_topic("t")
        with log.producer() as producer:
            assert tried(producer.begin_transaction) == "transactions need a transactional.id; set it"
        with log.consumer("t") as consumer:
            assert tried(consumer.commit) == "this call needs a group; set group.id"
            unassigned = "u-0 is not assigned to this consumer; call assign or subscribe first"
            assert tried(lambda: consumer.seek(("u", 0), 1)) == unassigned


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"key_serializer": "avro"}, "there is no serializer 'avro'; use one of bytes, string"),
        ({"enable_idempotence": True, "acks": "1"}, "cannot be used with acks=1; change one of them"),
        ({"linger_ms": "x"}, "linger.ms='x': Not a number of type LONG; give a whole number, at least 0"),
        ({"linger": 1}, "linger: a producer has no such setting; did you mean linger.ms?"),
    ],
)
def test_a_bad_setting_names_the_remedy(settings: dict[str, object], text: str) -> None:
    with logkernel.open() as log, pytest.raises(ConfigError) as caught:
        log.producer(**settings)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"sasl_pasword": "x"}, "sasl.pasword: a client has no such setting; did you mean sasl.password?"),
        (
            {"security_protocol": "TLS"},
            "security.protocol='TLS': there is no such value; use one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        ({"security_protocol": "SASL_SLS"}, "there is no such value; did you mean SASL_SSL?"),
    ],
)
def test_a_bad_setting_of_a_connection_names_the_remedy(settings: dict[str, object], text: str) -> None:
    """It spoke of a producer, and repeated the words of Kafka's validator."""
    with pytest.raises(ConfigError) as caught:
        logkernel.connect("127.0.0.1:1", **settings)
    assert text in str(caught.value)


def test_an_unknown_topic_names_the_remedy() -> None:
    with logkernel.open(auto_create_topics_enable=False) as log, log.admin() as admin:
        text = tried(lambda: admin.describe_topics("nope"))
    assert text == "nope: there is no such topic or partition; check the name, or create the topic"
