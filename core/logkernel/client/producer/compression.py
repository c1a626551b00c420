"""Which codec a producer's batches are compressed with: `compression.type`, and the level that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logkernel.contracts import Codec
from logkernel.kernel import Kernel


def choose_codec(settings: Mapping[str, Any], kernel: Kernel) -> Codec | None:
    """The codec of all batches of a producer; None where they stay as they are. Raises `PluginError`."""
    name = settings["compression.type"]
    level = settings.get(f"compression.{name}.level")
    return None if name == "none" else kernel.codec(name, None if level == -1 else level)
