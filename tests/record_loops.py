"""Both sets of inner loops, and the codecs, for the tests of the record room."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from logkernel.contracts import Codec
from logkernel.errors import UnsupportedCompressionType
from logkernel.plugins.compression import gzip, lz4, snappy, zstd
from logkernel.record import loops, pure_decode, pure_encode, pure_hash

LOOPS = {
    "walk": pure_decode,
    "decode_records": pure_decode,
    "encode_records": pure_encode,
    "columns": pure_decode,
    "murmur2": pure_hash,
}
PLUGINS: dict[int, tuple[str, ModuleType]] = {
    1: ("gzip", gzip),
    2: ("snappy", snappy),
    3: ("lz4", lz4),
    4: ("zstd", zstd),
}


@pytest.fixture(params=["pure", "compiled"], autouse=True)
def chosen_loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything runs on plain Python and on the compiled codec."""
    modules: dict[str, ModuleType] = LOOPS
    if request.param == "compiled":
        compiled = pytest.importorskip(
            "logkernel.record._loops", reason="the compiled codec was not built", exc_type=ImportError
        )
        modules = dict.fromkeys(LOOPS, compiled)
    for name, module in modules.items():
        monkeypatch.setattr(loops, name, getattr(module, name))


@pytest.fixture
def codec_for() -> Callable[[int], Codec]:
    def find(codec_id: int) -> Codec:
        if codec_id not in PLUGINS:
            raise UnsupportedCompressionType(str(codec_id))
        name, plugin = PLUGINS[codec_id]
        made: Codec = plugin.logkernel_codec(name, None)
        return made

    return find
