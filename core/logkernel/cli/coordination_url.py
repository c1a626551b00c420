"""`--coordination NAME://WHERE` as settings. `logkernel serve` imports it, so it imports nothing."""

from __future__ import annotations


def settings_of(url: str) -> list[str]:
    """`zookeeper://h1:2181/chroot` → coordination=zookeeper and zookeeper.connect=h1:2181/chroot."""
    name, separator, where = url.partition("://")
    return [f"coordination={name}", f"{name}.connect={where}"] if separator else [f"coordination={url}"]
