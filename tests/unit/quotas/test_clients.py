"""What is kept of clients that were measured."""

from __future__ import annotations

import tracemalloc

from logkernel.broker.quotas.clients import ClientQuotas
from logkernel.broker.quotas.windows import Window
from logkernel.vocabulary import Principal

ANN = Principal("User", "ann")
WINDOW = Window(11, 1_000)
LONG = 30_000


def of_each_client_id() -> ClientQuotas:
    """The default quota, which each client id has for itself."""
    quotas = ClientQuotas(WINDOW, WINDOW)
    quotas.configure({(("client-id", None),): {"producer_byte_rate": 1_000.0, "controller_mutation_rate": 1.0}})
    return quotas


def throttled_ms(quotas: ClientQuotas, client_id: str, amount: int) -> int:
    applied = quotas.applied(ANN, client_id)
    assert applied is not None
    assert applied.written is not None
    return quotas.written.use(applied.written, amount, 1)


def test_clients_fill_no_memory_by_long_client_ids() -> None:
    """A client may name another id with each request: 50,000 meters kept 1.6 GB of them."""
    quotas = of_each_client_id()
    throttled_ms(quotas, "first", 1)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(200):
            client_id = str(number).ljust(LONG, "x")
            throttled_ms(quotas, client_id, 1)
            assert quotas.mutations(ANN, client_id, 1, strict=True) is not None
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 200 * LONG / 4


def test_long_client_ids_have_quotas_of_their_own() -> None:
    quotas = of_each_client_id()
    greedy, modest = ("x" * LONG + end for end in "ab")
    assert throttled_ms(quotas, greedy, 1_000_000) > 0
    assert throttled_ms(quotas, modest, 1) == 0
    assert throttled_ms(quotas, greedy, 1) > 0
