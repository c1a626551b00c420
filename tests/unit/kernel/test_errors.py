"""What Kafka's error codes say to a caller."""

from __future__ import annotations

import pytest

from logkernel.errors import BY_CODE, KafkaError, UnknownServerError, UnknownTopicOrPartition, error_for


@pytest.mark.parametrize("kind", BY_CODE.values(), ids=lambda kind: kind.__name__)
def test_every_code_has_a_meaning(kind: type[KafkaError]) -> None:
    assert kind.__doc__ is not None
    assert kind.__doc__ != KafkaError.__doc__
    assert str(error_for(kind.code)) == kind.__doc__.removesuffix(".")


def test_a_broker_s_own_message_counts() -> None:
    error = error_for(3, "no topic t", about="t")
    assert isinstance(error, UnknownTopicOrPartition)
    assert str(error) == "no topic t"


def test_without_a_message_the_meaning_is_told_about_a_name() -> None:
    assert str(error_for(3, None, about="t-0")) == (
        "t-0: there is no such topic or partition; check the name, or create the topic"
    )
    assert isinstance(error_for(9999), UnknownServerError)
