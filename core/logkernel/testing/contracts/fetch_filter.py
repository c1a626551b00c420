"""What every fetch filter promises to the readers of its topics."""

from __future__ import annotations

from hypothesis import strategies as st

from logkernel.attrs_lite import evolve
from logkernel.contracts import FetchFilter, ReadFacts, RequestContext
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all, shown
from logkernel.testing.contracts.produce_interceptor import RECORDS
from logkernel.vocabulary import Record

READS = st.builds(
    ReadFacts,
    topic=st.just("t"),
    partition=st.integers(0, 5),
    client=st.builds(
        RequestContext,
        client_id=st.none() | st.text(max_size=5) | st.sampled_from(["billing-1", "a/b", "*"]),
        internal=st.booleans(),
    ),
    rack_id=st.text(max_size=5),
)


class FetchFilterContract(Kit[FetchFilter]):
    """`logkernel.contracts.FetchFilter`. `settings` are the topic's."""

    kind = "fetch filter"
    methods = ("passes",)

    def provide(self, kernel: Kernel, name: str) -> FetchFilter:
        return kernel.fetch_filter(name, self.topic_settings.plugin)

    @for_all(80, record=RECORDS, read=READS)
    def test_every_record_passes_or_not_for_every_reader(self, record: Record, read: ReadFacts) -> None:
        """A reader that an error keeps waiting at a record never gets past it."""
        self._answer(self.guarded(), record, read)

    @for_all(40, record=RECORDS, read=READS, others=st.lists(st.tuples(RECORDS, READS), max_size=5))
    def test_equal_questions_get_equal_answers(
        self, record: Record, read: ReadFacts, others: list[tuple[Record, ReadFacts]]
    ) -> None:
        """A consumer that reads again from an older offset gets the same records, whoever read in between."""
        fetch_filter = self.guarded()
        first = self._answer(fetch_filter, record, read)
        for other in others:
            self._answer(fetch_filter, *other)
        again = self._answer(fetch_filter, record, read)
        anew = self._answer(self.guarded(), record, read)
        if not first == again == anew:
            self.broken(
                f"passes() answered {first} for {shown(record)}, then {again}, and a new object {anew}; depend on the"
                f" arguments only"
            )

    # ------------------------------------------------------------ steps

    def _answer(self, fetch_filter: FetchFilter, record: Record, read: ReadFacts) -> bool:
        with self.calling(f"passes({shown(record)})"):
            return fetch_filter.passes(evolve(record), read)
