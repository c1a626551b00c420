"""The strategy keeps the contract of compaction strategies, and the highest revision."""

from typing import ClassVar

import logkernel
from logkernel.testing.contracts import CompactionStrategyContract

CONFIG = {"cleanup.policy": "compact", "compaction.strategy": "revision"}


class TestRevision(CompactionStrategyContract):
    name = "revision"
    settings: ClassVar = {"acme.revision.field": "a"}


def test_the_highest_revision_of_a_key_stays():
    with logkernel.open() as log:
        log.create_topic("products", config=CONFIG)
        for value in (b'{"rev": 2}', b'{"rev": 3}', b'{"rev": 1}', b"[]"):
            log.append("products", value, key=b"a")
        log.append("products", b"first", key=b"b")
        log.append("products", b"last", key=b"b")
        log.compact("products")
        assert [record.value for record in log.read("products")] == [b'{"rev": 3}', b"last"]
