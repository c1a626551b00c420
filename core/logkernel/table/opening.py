"""Opens sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from logkernel.errors import ConfigError
from logkernel.table.source import EVERYTHING, Source


def open_source(
    *,
    path: str | Sequence[str] | None = None,
    bootstrap: str | None = None,
    settings: Mapping[str, Any] = EVERYTHING,
    patient: bool = False,
) -> Source:
    """Open a source: of a data directory (`path`, one or several), of a cluster (`bootstrap`), or of both: then records
    are read from the directory, and bounds come from the cluster.

    `settings` are a consumer's, by Kafka's names. If a cluster that was reached before cannot be reached, calls wait
    up to default.api.timeout.ms; with `patient` also before the first contact. Raises `ConfigError`, and
    `FileNotFoundError` for a missing directory.
    """
    if path is not None:
        from logkernel.table.folder import FolderSource

        return FolderSource(path, bootstrap, settings, patient)
    if bootstrap is not None:
        from logkernel.table.remote import RemoteSource

        return RemoteSource(bootstrap, settings, patient)
    raise ConfigError("a source needs a place; pass path or bootstrap")
