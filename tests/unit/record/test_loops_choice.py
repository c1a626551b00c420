"""Which inner loops are used."""

import subprocess
import sys
from types import ModuleType

import pytest

import logkernel.record
from logkernel.record import loops


def test_an_extension_built_from_other_sources_is_left_aside_and_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stale = ModuleType("logkernel.record._loops")
    stale.walk = None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, stale.__name__, stale)
    monkeypatch.setattr(logkernel.record, "_loops", stale, raising=False)
    monkeypatch.delenv("LOGKERNEL_PURE", raising=False)
    assert loops._load() is None
    assert "OffsetMap" in caplog.text


@pytest.mark.skipif(not loops.COMPILED, reason="the compiled codec is not in use")
def test_a_start_with_the_compiled_codec_loads_nothing_of_plain_python() -> None:
    code = (
        "import sys, logkernel.cli.serve, logkernel.broker.broker\n"
        "from logkernel.record import loops\n"
        "builder = loops.BatchBuilder(100, 0)\n"
        "builder.append(0, None, b'v', ())\n"
        "print([name for name in sys.modules if 'record.pure' in name])\n"
        "builder.append(0, None, b'v', (('h', b'1'),))\n"
        "print([name for name in sys.modules if 'record.pure' in name])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.split("\n")[:2] == ["[]", "['logkernel.record.pure_encode']"]
