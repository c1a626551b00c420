"""Which inner loops are used."""

import sys
from types import ModuleType

import pytest

import logkernel.record
from logkernel.record import codec


def test_an_extension_built_from_other_sources_is_left_aside_and_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stale = ModuleType("logkernel.record._codec")
    stale.walk = None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, stale.__name__, stale)
    monkeypatch.setattr(logkernel.record, "_codec", stale, raising=False)
    monkeypatch.delenv("LOGKERNEL_PURE", raising=False)
    assert codec._load() is None
    assert "OffsetMap" in caplog.text
