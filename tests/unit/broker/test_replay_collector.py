"""What loading shards asks of the garbage collector."""

from __future__ import annotations

import gc

import pytest

from logkernel.broker.service_host import replay


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked of the collector, in order."""
    found: list[str] = []
    monkeypatch.setattr(replay, "_keeps_frozen", False)
    for name in ("freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, lambda name=name: found.append(name))
    return found


def load(times: int) -> None:
    for _ in range(times):
        with replay.no_collector():
            assert not gc.isenabled()
        assert gc.isenabled()


def test_what_a_server_froze_stays_so_and_is_counted_once(monkeypatch: pytest.MonkeyPatch, asked: list[str]) -> None:
    monkeypatch.setattr(gc, "get_freeze_count", lambda: asked.append("count") or 7)
    load(3)
    assert asked == ["count", "freeze", "freeze", "freeze"]


def test_nothing_stays_frozen_where_nothing_was(monkeypatch: pytest.MonkeyPatch, asked: list[str]) -> None:
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 0)
    load(2)
    assert asked == ["freeze", "unfreeze"] * 2
