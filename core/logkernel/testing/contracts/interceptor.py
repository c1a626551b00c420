"""What every producer interceptor promises: a record for a record, and no errors, as nobody hears of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from logkernel.client.producer.outgoing import ProducerRecord
from logkernel.contracts import Interceptor
from logkernel.errors import NotLeaderOrFollower
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all, shown
from logkernel.vocabulary import RecordMetadata

TOPIC = "orders"
RECORDS = st.builds(
    ProducerRecord,
    topic=st.just(TOPIC),
    value=st.sampled_from([None, b"", b"value", "text", "téxt", 7, 1.5, {"a": [1]}]),
    key=st.sampled_from([None, b"", b"key", "key", 7]),
    headers=st.sampled_from([(), (("h", b"1"), ("h", None)), {"h": b"1"}]),
    partition=st.none() | st.integers(0, 5),
    timestamp_ms=st.none() | st.integers(0, 2**40),
)
"""Keys and values of any type: they are not serialized yet."""


class InterceptorContract(Kit[Interceptor]):
    """`logkernel.contracts.Interceptor`. `settings` are the producer's."""

    kind = "interceptor"
    methods = ("on_send", "on_acknowledgement", "close")

    def provide(self, kernel: Kernel, name: str) -> Interceptor:
        return kernel.interceptor(name, self.settings)

    @for_all(40, records=st.lists(RECORDS, max_size=5))
    def test_each_record_becomes_one_record(self, records: list[ProducerRecord]) -> None:
        """An error is logged, and the record sent as it was: nobody would miss what was not done."""
        interceptor = self.make()
        for record in records:
            text = shown(record)
            with self.calling(f"on_send() of {text}"):
                found: Any = interceptor.on_send(record)
            if not isinstance(found, ProducerRecord):
                self.broken(f"on_send() returned {shown(found)}; return the ProducerRecord to send")
            if not isinstance(found.topic, str) or not found.topic:
                self.broken(f"on_send() returned a record for the topic {found.topic!r}; name a topic")
        interceptor.close()

    @for_all(15, offset=st.integers(0, 2**40), partition=st.integers(0, 100))
    def test_it_takes_every_outcome(self, offset: int, partition: int) -> None:
        """Records that were refused before they had a partition have an error alone."""
        interceptor = self.make()
        outcomes: list[tuple[RecordMetadata | None, Exception | None]] = [
            (RecordMetadata(TOPIC, partition, offset, 1), None),
            (None, NotLeaderOrFollower("the leader has moved")),
        ]
        for metadata, error in outcomes:
            with self.calling(f"on_acknowledgement({shown(metadata)}, {error!r})"):
                interceptor.on_acknowledgement(metadata, error)
        interceptor.close()

    def test_it_is_closed_after_any_number_of_records(self) -> None:
        for count in (0, 1, 100):
            interceptor = self.make()
            for number in range(count):
                with self.calling("on_send()"):
                    interceptor.on_send(ProducerRecord(TOPIC, b"%d" % number))
            with self.calling(f"close() after {count} records"):
                interceptor.close()

    def test_a_producer_sends_through_it(self) -> None:
        import logkernel

        interceptor = self.make()
        with logkernel.open() as log:
            log.create_topic(TOPIC, partitions=2)
            with self.calling("a producer with it"), log.producer(interceptor_classes=[interceptor]) as producer:
                sent = [producer.send(TOPIC, b"value %d" % number, key=b"key") for number in range(20)]
                for delivery in sent:
                    delivery.result(10)
