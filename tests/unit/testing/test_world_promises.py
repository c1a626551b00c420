"""What the judge of the simulated world takes for lawful of a log that a power cut tore."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import attrs
import pytest

from logkernel.controller.image import Partition, Topic, partition_change
from logkernel.testing.simulation.world.promises import Promises
from logkernel.testing.simulation.world.stage import Stage
from logkernel.vocabulary import TopicPartition

TOPIC = Topic("t", UUID(int=1), [Partition(replicas=(1, 2), leader=1, leader_epoch=0, partition_epoch=0, isr=(1,))])


@pytest.mark.parametrize(("runs", "stays"), [(False, True), (True, False)])
def test_a_torn_log_is_whole_again_when_its_running_broker_joins_the_isr(runs: bool, stays: bool) -> None:
    """Seed 40633: one that is down was proposed before the power was cut. What it lost may be missing later."""
    processes: Any = {2: SimpleNamespace(broker=object() if runs else None)}
    promises = Promises(Stage(0), processes)
    promises.on_commit([TOPIC.change()])
    torn: Any = SimpleNamespace(end_offset=9, recovery_point=5)
    promises.on_power_cut(2, [(TOPIC.id, TopicPartition("t", 0), torn)])
    joined = attrs.evolve(TOPIC.partitions[0], isr=(1, 2), partition_epoch=1)
    promises.on_commit([partition_change("t", 0, joined)])
    assert promises.known((TOPIC.id, 0)).torn == ({2: 5} if stays else {})
