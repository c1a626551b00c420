"""The router's table and the handlers' own tables say the same."""

from __future__ import annotations

from logkernel.broker.router import CORE, FALLBACKS


def test_each_request_is_in_the_table_that_it_is_looked_for_in() -> None:
    for request, table in CORE.items():
        assert request in table(), request


def test_no_handler_is_left_out() -> None:
    assert {request for table in set(CORE.values()) for request in table()} == set(CORE)


def test_what_a_service_may_take_over_is_answered_without_one() -> None:
    assert set(CORE) >= FALLBACKS
