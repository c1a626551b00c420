"""The built-in partitioners keep the contract."""

from __future__ import annotations

from logkernel.testing.contracts import PartitionerContract


class TestDefault(PartitionerContract):
    name = "default"


class TestKeyed(PartitionerContract):
    name = "keyed"


class TestRoundRobin(PartitionerContract):
    name = "round_robin"
