"""All histories of two brokers, a few records and few faults keep every promise; a broken rule is found at once."""

from __future__ import annotations

import pytest
from mutants import MUTANTS

from logkernel.kernel import Kernel
from logkernel.testing.simulation.protocol import Violation
from logkernel.testing.simulation.protocol.small_scope import Scope, explore

SCOPES = {
    "three records, a lost message": (Scope(3, 0, 1, 0, 0), 150),
    "three records, a lag": (Scope(3, 0, 0, 1, 0), 900),
    "three records, a death": (Scope(3, 1, 0, 0, 0), 8_000),
    "a record, a death, a lag": (Scope(1, 1, 0, 1, 0), 8_000),
}
"""Each with fewer states than it had when this was written: a scope that collapses walks nothing."""
CAUGHT = {
    "an_expansion_counts_only_when_it_is_confirmed": Scope(1, 0, 0, 1, 0),
    "who_is_behind_the_watermark_joins": Scope(2, 0, 0, 1, 0),
}


@pytest.mark.longest
@pytest.mark.parametrize("name", SCOPES)
def test_every_history_of_a_small_scope_keeps_its_promises(name: str) -> None:
    scope, fewest = SCOPES[name]
    assert explore(scope, Kernel().election("clean", {})).states > fewest


@pytest.mark.parametrize("name", CAUGHT)
def test_a_broken_rule_is_found_in_the_smallest_scope(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    with pytest.raises(Violation):
        explore(CAUGHT[name], Kernel().election("clean", {}))
