"""A producer's settings, and its machine in a world without faults."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from modelled import Faults, World

from logkernel.client.settings.producer import load_producer

CALM = Faults(longest_ms=0)
HERE = "host:1"


def world(faults: Faults = CALM, partitions: int = 1, **settings: Any) -> World:
    return World(1, faults, partitions, **settings)


def values(**settings: Any) -> dict[str, Any]:
    return load_producer({"bootstrap_servers": HERE, **settings})


def gaps(times: list[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(times)]
