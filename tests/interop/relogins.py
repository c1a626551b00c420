"""Sessions that a broker limits, and clients that log in again on the connections that they have."""

from __future__ import annotations

from logkernel.client.producer.producer import Producer

SPANS = 10


def keeps_its_connections(producer: Producer, topic: str, span_ms: int) -> None:
    """It sends over the same connections for a span that is longer than the broker's limit. There are more spans to
    come where a busy machine held a request up until the session was over: without another login, each has a new
    connection."""
    for _ in range(SPANS):
        begun = producer.send(topic, b"first").result(180).timestamp_ms
        made = producer.metrics()["connection-creation-total"]
        while producer.send(topic, b"more").result(180).timestamp_ms < begun + span_ms:
            pass
        if producer.metrics()["connection-creation-total"] == made:
            return
    raise AssertionError(f"a new connection in each of {SPANS} spans of {span_ms} ms")
