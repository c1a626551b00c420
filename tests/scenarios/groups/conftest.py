"""Fixtures of the groups machine in a host without a broker; the tests may import the parts beside this file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from group_host import OLD
from group_world import World, subscription


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def make_world() -> Callable[..., World]:
    return World


@pytest.fixture
def subscribe() -> Callable[..., bytes]:
    return subscription


@pytest.fixture
def old() -> frozenset[str]:
    """Capabilities of a client that does not know MEMBER_ID_REQUIRED."""
    return OLD
