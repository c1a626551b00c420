"""Loading kio's schemas, and compiling them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import field, make_dataclass
from pathlib import Path
from typing import Any

import pytest

from logkernel.plugins.transport.tcp import messages
from logkernel.plugins.transport.tcp.messages import reader, writer

LOAD = """
import sys
from logkernel.plugins.transport.tcp.messages import schema
schema("fetch", 12, "request", "FetchRequest")
assert not [name for name in sys.modules if name.startswith("hypothesis")], "it was loaded"
import hypothesis.strategies
"""


def test_hypothesis_is_not_loaded_with_the_schemas(tmp_path: Path) -> None:
    pytest.importorskip("hypothesis")
    subprocess.run([sys.executable, "-c", LOAD], cwd=tmp_path, check=True, timeout=300)


def test_another_thread_may_show_hypothesis_again_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "hypothesis", raising=False)
    monkeypatch.setattr(messages, "load_module", lambda name: sys.modules.pop("hypothesis"))
    messages._load_base_types.__wrapped__()
    assert "hypothesis" not in sys.modules


@pytest.mark.parametrize("compile_", [reader, writer])
def test_a_type_that_is_not_known_is_named(compile_: Callable[..., Any]) -> None:
    colour = ("colour", int, field(metadata={"kafka_type": "rgb"}))
    entity = make_dataclass("Entity", [colour], namespace={"__flexible__": True})
    with pytest.raises(TypeError, match=r"colour.*'rgb'"):
        compile_(entity, object)
