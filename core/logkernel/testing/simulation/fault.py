"""A fault as data: a part of a list of them is a list of them, so that a failure can be made smaller."""

from __future__ import annotations

from typing import Final

from logkernel.attrs_lite import frozen

LEADER: Final = -1
CONTROLLER: Final = -2
"""Nodes of a fault that are found when it strikes: who leads, who is the controller."""


@frozen
class Fault:
    at_ms: int
    kind: str
    node: int = 0
    other: int = 0
    length_ms: int = 0
    value: int = 0

    def __str__(self) -> str:
        names = {"node": self.node, "other": self.other, "length_ms": self.length_ms, "value": self.value}
        roles = {LEADER: "leader", CONTROLLER: "controller"}
        told = " ".join(f"{name}={roles.get(value, value)}" for name, value in names.items() if value)
        return f"{self.at_ms:>6} ms  {self.kind} {told}".rstrip()
