"""The two checksums: CRC-32C over v2 batches, CRC-32 over legacy messages.

`import crc32c` reads its distribution's metadata, which costs more than the rest of our start-up;
its extension module alone loads in a few milliseconds, so that is what we load.
"""

from __future__ import annotations

import importlib
import logging
import zlib
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any, Protocol, cast

from logkernel.contracts import Buffer


class Crc(Protocol):
    def __call__(self, data: Buffer, value: int = 0, /) -> int: ...


log = logging.getLogger("logkernel.record")


def _load_extension() -> Any | None:
    """The `_crc32c` extension of package crc32c, without running the package; None where it is not found."""
    package = PathFinder.find_spec("crc32c")
    if package is None or package.submodule_search_locations is None:
        return None
    spec = PathFinder.find_spec("_crc32c", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_crc32c() -> tuple[Crc, str]:
    """Return (the fastest CRC-32C function that is installed, its package)."""
    try:
        module = _load_extension() or importlib.import_module("crc32c")
        return cast(Crc, module.crc32c), "crc32c"
    except ImportError:
        import crcmod.predefined

        log.warning(
            "package crc32c cannot be loaded: every batch is checked by crcmod, 50 times slower with its "
            "extension and thousands of times without; install crc32c"
        )
        return cast(Crc, crcmod.predefined.mkCrcFun("crc-32c")), "crcmod"


crc32c, IMPLEMENTATION = _load_crc32c()
"""CRC-32C (Castagnoli) of `data`, continued from `value`."""


_crc32: Crc | None = None


def crc32(data: Buffer, value: int = 0) -> int:
    """CRC-32 (as zlib's) of `data`, continued from `value`; only magic 0 and 1 use it, so it loads when first asked."""
    global _crc32
    if _crc32 is None:
        _crc32 = _load_crc32()
    return _crc32(data, value)


def _load_crc32() -> Crc:
    """crcmod's where it has its extension; zlib's otherwise, as crcmod's tables in Python are far slower."""
    try:
        from crcmod import _crcfunext  # noqa: F401
        from crcmod.predefined import mkCrcFun
    except ImportError:
        return zlib.crc32
    return cast(Crc, mkCrcFun("crc-32"))
