"""All histories of two brokers, a few records and few faults keep every promise; a broken rule is found at once."""

from __future__ import annotations

import pytest
from mutants import MUTANTS

from logkernel.kernel import Kernel
from logkernel.testing.simulation.protocol import Violation
from logkernel.testing.simulation.protocol.small_scope import Scope, explore

SCOPES = {
    "a death": Scope(records=1, deaths=1, drops=0, lags=1, flushes=0),
}
CAUGHT = {
    "an_expansion_counts_only_when_it_is_confirmed": Scope(1, 0, 0, 1, 0),
    "who_is_behind_the_watermark_joins": Scope(2, 0, 0, 1, 0),
}


@pytest.mark.longest
@pytest.mark.parametrize("name", SCOPES)
def test_every_history_of_a_small_scope_keeps_its_promises(name: str) -> None:
    found = explore(SCOPES[name], Kernel().election("clean"))
    assert found.states > 1_000


@pytest.mark.parametrize("name", CAUGHT)
def test_a_broken_rule_is_found_in_the_smallest_scope(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    with pytest.raises(Violation):
        explore(CAUGHT[name], Kernel().election("clean"))
