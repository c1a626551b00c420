"""Which quota applies: the eight levels of KIP-55."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkernel.broker.quotas.limits import Limits
from logkernel.contracts import ClientLimit
from logkernel.controller.image import Entity

NAME = "producer_byte_rate"


def entity(user: str | None = "", client_id: str | None = "") -> Entity:
    """None is the default; without an argument the entity has no such part."""
    parts = (("client-id", client_id), ("user", user))
    return tuple(part for part in parts if part[1] != "")


LEVELS = [
    (entity("ann", "shop"), ("ann", "shop")),
    (entity("ann", None), ("ann", "shop")),
    (entity("ann"), ("ann", None)),
    (entity(None, "shop"), ("ann", "shop")),
    (entity(None, None), ("ann", "shop")),
    (entity(None), ("ann", None)),
    (entity(client_id="shop"), (None, "shop")),
    (entity(client_id=None), (None, "shop")),
]
"""(entity, who share its quota with ann's client `shop`), the first counts most."""
OTHERS = [entity("bob", "shop"), entity("bob", None), entity("bob"), entity(None, "till"), entity(client_id="till")]


@given(st.sets(st.sampled_from(range(8))), st.sets(st.sampled_from(range(len(OTHERS)))))
def test_the_first_level_that_there_is_counts(levels: set[int], others: set[int]) -> None:
    quotas = {LEVELS[level][0]: {NAME: 1.0 + level} for level in sorted(levels, reverse=True)}
    quotas |= {OTHERS[other]: {NAME: 99.0} for other in others}
    found = Limits(quotas, NAME).of("ann", "shop")
    assert found == (ClientLimit(1.0 + min(levels), LEVELS[min(levels)][1]) if levels else None)


def test_a_level_that_has_another_quota_only_is_passed_over() -> None:
    quotas = {entity("ann"): {"consumer_byte_rate": 5.0}, entity(None): {NAME: 6.0}}
    assert Limits(quotas, NAME).of("ann", "shop") == ClientLimit(6.0, ("ann", None))
    assert not Limits(quotas, "request_percentage")


@pytest.mark.parametrize("quotas", [{entity(client_id=None): {NAME: 5.0}}, {entity(None, None): {NAME: 5.0}}])
def test_a_client_without_a_name_has_the_default(quotas: dict[Entity, dict[str, float]]) -> None:
    assert Limits(quotas, NAME).of("ANONYMOUS", "").quota == 5.0


def test_addresses_are_no_clients() -> None:
    assert not Limits({(("ip", None),): {"connection_creation_rate": 5.0}}, NAME)
