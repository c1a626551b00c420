"""What every compaction strategy promises to the policy that compacts by it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from logkernel.attrs_lite import evolve
from logkernel.contracts import Codec, CompactionStrategy
from logkernel.guards.compaction_strategy import GuardedCompactionStrategy
from logkernel.kernel import Kernel
from logkernel.plugin_faults import Origin, PluginFaults
from logkernel.record.batch import parse_header
from logkernel.record.encode import encode_batch
from logkernel.record.filtering import View, view_of
from logkernel.testing.contracts.kit import Kit, for_all
from logkernel.testing.contracts.produce_interceptor import RECORDS
from logkernel.vocabulary import Record

LATEST_MS = 2**62
"""A batch holds no timestamps further apart than an int64 can say."""
BATCHES = st.lists(
    RECORDS.map(lambda one: evolve(one, timestamp_ms=min(one.timestamp_ms, LATEST_MS))), min_size=1, max_size=5
)


class CompactionStrategyContract(Kit[CompactionStrategy]):
    """`logkernel.contracts.CompactionStrategy`. `settings` are the topic's."""

    kind = "compaction strategy"
    methods = ("versions",)

    def provide(self, kernel: Kernel, name: str) -> CompactionStrategy:
        return kernel.compaction_strategy(name, self.topic_settings.plugin)

    @for_all(80, records=BATCHES)
    def test_every_record_has_one_version(self, records: list[Record]) -> None:
        """Whatever clients wrote: a topic with a record that has none is never compacted again."""
        self._versions(self.make(), records)

    @for_all(60, records=BATCHES, others=BATCHES)
    def test_a_version_depends_on_the_record_only(self, records: list[Record], others: list[Record]) -> None:
        """Rewrites drop records of a batch; the next one must give those that are left the versions that they had."""
        strategy = self.make()
        together = self._versions(strategy, [*records, *others])
        apart = [version for record in [*records, *others] for version in self._versions(strategy, [record])]
        anew = self._versions(self.make(), [*records, *others])
        if not together == apart == anew:
            self.broken(
                f"versions() gave {together} in one batch, {apart} in batches of one record, and a new object {anew};"
                f" depend on the record only"
            )

    # ------------------------------------------------------------ steps

    def _versions(self, strategy: CompactionStrategy, records: Sequence[Record]) -> list[int]:
        guarded: Any = strategy
        if not isinstance(strategy, GuardedCompactionStrategy):
            name = self.name or type(self).__name__
            guarded = GuardedCompactionStrategy(strategy, name, PluginFaults(), lambda: Origin(name, "under test"))
        with self.calling("versions()"):
            return array("q", guarded.versions(_view(records))).tolist()


def _view(records: Sequence[Record]) -> View:
    data = encode_batch(records)
    return view_of(data, parse_header(data, 0), _no_codec)


def _no_codec(codec_id: int) -> Codec:
    raise AssertionError(f"the batch is not compressed (codec {codec_id})")
