"""The faults of a broker in another process. They outlive it: each life is asked for them again."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final, Self

from logkernel.testing.child.control import ControlClient
from logkernel.testing.kafka.faults import COUNTS, CUT_ANSWER, DELAY, ERROR, NAMES, FaultCalls
from logkernel.testing.server.rows import REGEX

FLAGS: Final = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x", re.ASCII: "a"}
MOST_FITTED: Final = 1_000_000
"""The most that a new broker is told."""
ARGUMENTS: Final = {DELAY: "wait_ms", CUT_ANSWER: "part"}
"""Kind of a fault → the field that is its argument."""


class FaultOverControl:
    """`kafka.faults.AskedFault`."""

    def __init__(self, faults: FaultsOverControl, row: dict[str, Any]) -> None:
        self.row = row
        self.id = -1
        """Its number on the control port."""
        self.removed = False
        self.text, self.last_fitted, self.last_struck = "", 0, 0
        """What the broker last said of it."""
        self._faults = faults

    @property
    def fitted(self) -> int:
        """Requests that it fitted."""
        self._faults.note()
        return self.last_fitted

    @property
    def struck(self) -> int:
        """Requests that it struck."""
        self._faults.note()
        return self.last_struck

    def remove(self) -> None:
        """Strike no more. Requests that stall are carried out."""
        self._faults.remove(self)

    def learn(self, said: dict[str, Any]) -> None:
        self.id, self.text = said["id"], said["fault"]
        self.last_fitted, self.last_struck = said["fitted"], said["struck"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()

    def __str__(self) -> str:
        self._faults.note()
        return self.text or str(self.row)


class FaultsOverControl(FaultCalls[FaultOverControl]):
    """See the module."""

    def __init__(self, seed: int, apis: Collection[str], control: ControlClient) -> None:
        super().__init__(seed, apis)
        self._control = control
        self._made: list[FaultOverControl] = []

    def _add(self, fields: dict[str, Any]) -> FaultOverControl:
        fault = FaultOverControl(self, _row(fields))
        if self._control.reaches:
            fault.learn(self._control.call("POST", "faults", body=fault.row))
        self._made.append(fault)
        return fault

    @property
    def made(self) -> list[FaultOverControl]:
        return self._made

    @property
    def active(self) -> list[FaultOverControl]:
        return [fault for fault in self._made if not fault.removed]

    def remove(self, fault: FaultOverControl) -> None:
        """See `FaultOverControl.remove`; a second call does nothing."""
        if not fault.removed:
            fault.removed = True
            if self._control.reaches:
                fault.learn(self._control.call("DELETE", "faults", str(fault.id)))

    def clear(self) -> None:
        self.note()
        for fault in self._made:
            fault.removed = True
        self._made.clear()
        if self._control.reaches:
            self._control.call("DELETE", "faults")

    def note(self) -> None:
        """Ask the broker how often they struck, if there is one."""
        if self._control.reaches and self._made:
            said = {row["id"]: row for row in self._control.call("GET", "faults")}
            for fault in self._made:
                if fault.id in said:
                    fault.learn(said[fault.id])

    def begin_again(self) -> None:
        """Ask a new broker for them, in the order in which they were asked for first: that decides what is drawn."""
        if not self._made:
            return
        rows = [
            {**each.row, "fitted": min(each.last_fitted, MOST_FITTED), "struck": min(each.last_struck, MOST_FITTED)}
            for each in self._made
        ]
        for fault, said in zip(self._made, self._control.call("POST", "faults", body=rows), strict=True):
            fault.learn(said)
            if fault.removed:
                self._control.call("DELETE", "faults", str(fault.id))


def _row(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a `Fault` in the words of the YAML file."""
    kind, conditions = fields["kind"], fields["conditions"]
    argument = NAMES[type(fields["error"])] if kind == ERROR else fields.get(ARGUMENTS.get(kind, ""), True)
    row: dict[str, Any] = {kind: argument}
    row |= {name: fields[name] for name in COUNTS if name in fields}
    client_id = conditions.client_id
    if isinstance(client_id, re.Pattern):
        flags = "".join(letter for flag, letter in FLAGS.items() if client_id.flags & flag)
        client_id = {REGEX: f"(?{flags}){client_id.pattern}" if flags else client_id.pattern}
    named = {"api": conditions.api, "client_id": client_id, "topic": conditions.topic}
    named |= {"partition": conditions.partition, "broker": conditions.broker}
    return row | {name: value for name, value in named.items() if value is not None}
