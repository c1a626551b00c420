"""Fetch filter `tenant`: a reader with the client id `ann/…` gets the records of the tenant `ann`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from logkernel.config.definitions import TOPIC, Setting
from logkernel.config.values import STRING, NonEmpty
from logkernel.contracts import FetchFilter, ReadFacts
from logkernel.hookspecs import hookimpl
from logkernel.vocabulary import Record

HEADER = "acme.tenant.header"


class TenantFilter:
    """`logkernel.contracts.FetchFilter`; one object for each partition."""

    def __init__(self, header: str) -> None:
        self._header = header

    def passes(self, record: Record, read: ReadFacts) -> bool:
        tenant, slash, _ = (read.client.client_id or "").partition("/")
        if not slash:
            return True
        return any(name == self._header and value == tenant.encode() for name, value in record.headers)


@hookimpl
def logkernel_fetch_filter(name: str, settings: Mapping[str, Any]) -> FetchFilter | None:
    return TenantFilter(settings[HEADER]) if name == "tenant" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("fetch filter", "tenant")]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    return [Setting(HEADER, STRING, "tenant", NonEmpty(), "The header that names a record's tenant.", scope=TOPIC)]
