"""What every produce interceptor promises to those who write to its topics."""

from __future__ import annotations

from hypothesis import strategies as st

from logkernel.attrs_lite import evolve
from logkernel.contracts import ProduceInterceptor, Refusal, RequestContext, WriteFacts
from logkernel.errors import KafkaError
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all, shown
from logkernel.vocabulary import Record

BYTES = st.none() | st.binary(max_size=20)
RECORDS = st.builds(
    Record,
    key=BYTES,
    value=BYTES | st.sampled_from([b"{}", b"[]", b'{"a": 1}', b"null", b"7", b"<a/>"]),
    headers=st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=3).map(tuple),
    timestamp_ms=st.just(-1) | st.integers(0, 2**63 - 1),
    offset=st.just(0),
)
WRITES = st.builds(
    WriteFacts,
    topic=st.just("t"),
    partition=st.integers(0, 5),
    client=st.builds(RequestContext, client_id=st.none() | st.text(max_size=5)),
    wall_ms=st.integers(1_700_000_000_000, 1_800_000_000_000),
    transactional=st.booleans(),
)


class ProduceInterceptorContract(Kit[ProduceInterceptor]):
    """`logkernel.contracts.ProduceInterceptor`. `settings` are the topic's."""

    kind = "produce interceptor"
    methods = ("on_record",)

    def provide(self, kernel: Kernel, name: str) -> ProduceInterceptor:
        return kernel.produce_interceptor(name, self.topic_settings.plugin)

    @for_all(80, record=RECORDS, write=WRITES)
    def test_any_record_gets_a_record_or_a_refusal(self, record: Record, write: WriteFacts) -> None:
        """Clients write what they like. A `KafkaError` refuses the batch, too."""
        self._answer(self.guarded(), record, write)

    @for_all(40, record=RECORDS, others=st.lists(RECORDS, max_size=5), write=WRITES)
    def test_equal_records_get_equal_answers(self, record: Record, others: list[Record], write: WriteFacts) -> None:
        """A producer's retry must not be judged by what came in between."""
        interceptor = self.guarded()
        first = self._answer(interceptor, record, write)
        for other in others:
            self._answer(interceptor, other, write)
        again = self._answer(interceptor, record, write)
        anew = self._answer(self.guarded(), record, write)
        if not first == again == anew:
            self.broken(
                f"on_record() answered {shown(first)} for {shown(record)}, then {shown(again)}, and a new object"
                f" {shown(anew)}; depend on the arguments only"
            )

    # ------------------------------------------------------------ steps

    def _answer(self, interceptor: ProduceInterceptor, record: Record, write: WriteFacts) -> Record | Refusal | str:
        with self.calling(f"on_record({shown(record)})", KafkaError):
            try:
                return interceptor.on_record(evolve(record), write)
            except KafkaError as error:
                return f"{type(error).__name__}: {error}"
