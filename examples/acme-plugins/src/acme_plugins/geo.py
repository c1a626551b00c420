"""Partitioner `geo`: records of one region stay in partitions of their own.

A key is `region/rest`. The partitions are cut into one range a region, in the order of the setting
`acme.geo.regions`; the rest of the key picks one of the range. Unknown regions and null keys use all.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from logkernel.config.definitions import TOPIC, Setting
from logkernel.config.values import LIST, Each
from logkernel.contracts import Partitioner
from logkernel.hookspecs import hookimpl

REGIONS_SETTING = "acme.geo.regions"
DEFAULT_REGIONS = ("eu", "us", "ap")


class GeoPartitioner:
    """One topic's partitioner; `regions` in the order of their ranges."""

    def __init__(self, regions: Sequence[str], seed: int) -> None:
        self._rank = {region.encode(): rank for rank, region in enumerate(regions)}
        self._chance = random.Random(seed)

    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> int:
        if key is None:
            return self._chance.choice(available or range(partitions))
        region, _, rest = key.partition(b"/")
        rank = self._rank.get(region)
        if rank is None or partitions < len(self._rank):
            return zlib.crc32(key) % partitions
        first = rank * partitions // len(self._rank)
        end = (rank + 1) * partitions // len(self._rank)
        return first + zlib.crc32(rest) % (end - first)

    def on_batch_full(self, partition: int) -> None:
        """Nothing sticks here."""


@hookimpl
def logkernel_partitioner(name: str, settings: Mapping[str, Any], seed: int) -> Partitioner | None:
    if name != "geo":
        return None
    return GeoPartitioner(settings.get(REGIONS_SETTING) or DEFAULT_REGIONS, seed)


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("partitioner", "geo")]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    doc = "Regions that keys begin with, one range of partitions each."
    return [Setting(REGIONS_SETTING, LIST, ",".join(DEFAULT_REGIONS), Each(empty=False), doc, scope=TOPIC)]
