"""The table of kinds: each row names a hook and a guard that exist, and promises what it hands out."""

import re

import pytest

from logkernel import hookspecs
from logkernel.guards.guard import Guard
from logkernel.kernel import Kernel, kinds
from logkernel.kernel.kinds import Kind

ROWS = {name: row for name, row in vars(kinds).items() if isinstance(row, Kind)}
NOT_BY_NAME = {"decoder"}
"""Asked for by topic."""
AS_ANOTHER = {"shared coordination"}
"""Provided by the hook of `coordination`."""


def test_there_is_a_row_for_each_kind_and_a_method_for_each_row() -> None:
    assert sorted(row.name for row in ROWS.values()) == sorted(set(hookspecs.KINDS) - NOT_BY_NAME - AS_ANOTHER)
    assert [name for name in ROWS if not callable(getattr(Kernel, name.lower(), None))] == []


@pytest.mark.parametrize("name", ROWS)
def test_a_row_promises_what_it_hands_out(name: str) -> None:
    row = ROWS[name]
    assert hasattr(hookspecs, row.hook)
    guard = row.guard()
    promised = re.fullmatch(r"Final\[Kind\[(\w+)\]\]", kinds.__annotations__[name])
    assert promised is not None
    if guard is None:
        assert promised[1] == row.contract.__name__
        return
    assert promised[1] in (row.contract.__name__, guard.__name__)
    assert issubclass(guard, Guard)
    (base,) = guard.__orig_bases__
    assert base.__args__ == (row.contract,), "it guards another contract"
