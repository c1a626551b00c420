"""Transactions where the cluster has not turned their second version on: partitions are added by a request first."""

from __future__ import annotations

import logkernel


def test_what_is_waited_for_is_sent_though_nothing_else_happens() -> None:
    """A partition's first record waits until the partition is added, for which nobody but the sender itself asks."""
    with logkernel.open() as log, log.admin() as admin:
        admin.update_features({"transaction.version": 0}, upgrade_type="unsafe-downgrade")
        log.create_topic("a", 2)
        with logkernel.connect(log.listen()) as remote, remote.producer(transactional_id="t", linger_ms=0) as producer:
            producer.init_transactions()
            for number in range(2):
                producer.begin_transaction()
                assert producer.send("a", b"v", partition=number).result(120).offset == 0
                producer.commit_transaction()
        assert [log.end_offset("a", partition) for partition in (0, 1)] == [2, 2]
