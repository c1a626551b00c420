"""`--coordination NAME://WHERE` as settings. `logkernel serve` imports it, so it imports nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logkernel.config.sources import RawSetting


def settings_of(url: str) -> list[RawSetting]:
    """`zookeeper://h1:2181/chroot` → coordination=zookeeper and zookeeper.connect=h1:2181/chroot."""
    from logkernel.config.sources import RawSetting

    place = f"--coordination {url}"
    name, separator, where = url.partition("://")
    named = [RawSetting("coordination", name, place)]
    return [*named, RawSetting(f"{name}.connect", where, place)] if separator else named
