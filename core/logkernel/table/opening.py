"""The one place where sources are made."""

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
    """The source of a broker's folder (`path`: one log.dir, or several), of a cluster (`bootstrap`), or of both: then
    records are read from the folder, and bounds are asked of the cluster.

    `settings` are a consumer's, by Kafka's names. A cluster that was reached once and cannot be reached now is waited
    for, for default.api.timeout.ms; with `patient` from the first time on. Raises `ConfigError`, `FileNotFoundError`
    for no folder.
    """
    if path is not None:
        from logkernel.table.folder import FolderSource

        return FolderSource(path, bootstrap, settings, patient)
    if bootstrap is not None:
        from logkernel.table.remote import RemoteSource

        return RemoteSource(bootstrap, settings, patient)
    raise ConfigError("a source needs a path or a bootstrap server")
