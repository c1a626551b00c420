"""How fast connections may come (KIP-612)."""

from __future__ import annotations

import pytest

from logkernel.broker.quotas.connections import ConnectionRates
from logkernel.broker.quotas.limits import AddressLimits
from logkernel.broker.quotas.windows import Window
from logkernel.contracts import ADMITTED, Admission

NAME = "connection_creation_rate"
NOW_MS = 5_000


@pytest.fixture
def rates() -> ConnectionRates:
    return ConnectionRates(Window(11, 1_000))


def came(rates: ConnectionRates, times: int, now_ms: int = NOW_MS, **given: object) -> list[Admission]:
    how = {"listener": "PLAINTEXT", "host": "10.0.0.1", "broker_rate": None, "listener_rate": None, **given}
    return [rates.admit(now_ms=now_ms, **how) for _ in range(times)]


def test_without_rates_all_are_let_in(rates: ConnectionRates) -> None:
    assert came(rates, 10_000) == [ADMITTED] * 10_000


def test_beyond_ten_seconds_worth_each_waits_for_its_share(rates: ConnectionRates) -> None:
    assert came(rates, 20, broker_rate=2) == [ADMITTED] * 20
    assert came(rates, 1, broker_rate=2) == [Admission(500)]
    assert came(rates, 1, now_ms=NOW_MS + 500, broker_rate=2) == [Admission(500)]


def test_nothing_waits_for_longer_than_a_sample(rates: ConnectionRates) -> None:
    assert came(rates, 15, broker_rate=1)[-1] == Admission(1_000)
    assert came(rates, 1, listener_rate=0) == [Admission(1_000)]


def test_listeners_have_rates_of_their_own_beside_the_brokers(rates: ConnectionRates) -> None:
    came(rates, 10, listener_rate=1)
    assert came(rates, 1, listener_rate=1)[0].wait_ms == 1_000
    assert came(rates, 1, listener="INSIDE", listener_rate=1) == [ADMITTED]
    came(rates, 30, listener="OTHER", broker_rate=3)
    assert came(rates, 1, broker_rate=3, listener_rate=100) == [Admission(333)]


def test_an_address_that_comes_too_fast_is_closed_and_others_are_not(rates: ConnectionRates) -> None:
    rates.configure({(("ip", "10.0.0.1"),): {NAME: 1.0}})
    assert came(rates, 10) == [ADMITTED] * 10
    assert came(rates, 3) == [Admission(0, 1_000)] * 3, "those that are closed do not count"
    assert came(rates, 100, host="10.0.0.2") == [ADMITTED] * 100
    assert came(rates, 1, now_ms=NOW_MS + 11_000) == [ADMITTED]


def test_the_default_is_for_each_address_without_its_own(rates: ConnectionRates) -> None:
    rates.configure({(("ip", None),): {NAME: 1.0}, (("ip", "10.0.0.1"),): {NAME: 2.0}})
    assert came(rates, 20)[-1] == ADMITTED
    for host in ("10.0.0.2", "10.0.0.3"):
        assert came(rates, 11, host=host) == [*[ADMITTED] * 10, Admission(0, 1_000)]


@pytest.mark.parametrize(
    ("named", "host"),
    [("10.0.0.1", "::ffff:10.0.0.1"), ("2001:db8:0:0::1", "2001:db8::1"), ("::1", "0:0:0:0:0:0:0:1")],
)
def test_an_address_is_known_however_it_is_written(rates: ConnectionRates, named: str, host: str) -> None:
    rates.configure({(("ip", named),): {NAME: 1.0}})
    assert came(rates, 11, host=host)[-1].close_ms == 1_000


def test_what_is_no_address_has_the_default() -> None:
    limits = AddressLimits({(("ip", None),): {NAME: 3.0}, (("user", "ann"),): {"producer_byte_rate": 1.0}}, NAME)
    assert (limits.of("pipe"), bool(limits)) == (3.0, True)
