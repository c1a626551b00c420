"""Which quota applies to whom, by the precedence of KIP-55 and KIP-612.

Of a client, the first of these that there is:

    user and client-id      shared by
    (user, client-id)       the connections of that user with that client id
    (user, default)         the same
    (user, )                all connections of that user
    (default, client-id)    the connections of each user with that client id
    (default, default)      the connections of each user with each client id
    (default, )             all connections of each user
    ( , client-id)          all connections with that client id
    ( , default)            all connections with each client id

Of an address: its own, else the default. A client without a client id has the empty one, to which defaults apply.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from functools import lru_cache

from logkernel.contracts import QUOTA_TYPES, ClientLimit
from logkernel.controller.image import Entity
from logkernel.controller.quotas import CLIENT_ID, IP, USER
from logkernel.vocabulary import Principal

Quotas = Mapping[Entity, Mapping[str, float]]
Whose = tuple[str | None, str | None]
"""(user, client id) of those that share a quota; None: of any."""


class Limits:
    """One kind of client quota."""

    def __init__(self, quotas: Quotas, name: str) -> None:
        self._both: dict[Whose, float] = {}
        self._users: dict[str | None, float] = {}
        self._clients: dict[str | None, float] = {}
        """By name; None: the default."""
        for entity, values in quotas.items():
            if name not in values:
                continue
            parts = dict(entity)
            if len(parts) == 2:
                self._both[parts[USER], parts[CLIENT_ID]] = values[name]
            elif USER in parts:
                self._users[parts[USER]] = values[name]
            else:
                self._clients[parts[CLIENT_ID]] = values[name]

    def __bool__(self) -> bool:
        return bool(self._both or self._users or self._clients)

    def of(self, user: str, client_id: str) -> ClientLimit | None:
        """The quota that applies; None where none does."""
        for named in (user, None):
            for client in (client_id, None) if self._both else ():
                quota = self._both.get((named, client))
                if quota is not None:
                    return ClientLimit(quota, (user, client_id))
            quota = self._users.get(named)
            if quota is not None:
                return ClientLimit(quota, (user, None))
        for client in (client_id, None):
            quota = self._clients.get(client)
            if quota is not None:
                return ClientLimit(quota, (None, client_id))
        return None


class KafkasPrecedence:
    """`contracts.ClientQuotaCallback`: the cluster's quotas as Kafka applies them. Answers change with them only."""

    def __init__(self) -> None:
        self._limits: dict[str, Limits] = {}
        """By the types that limit somebody."""

    def quotas_changed(self, quotas: Quotas) -> None:
        made = {quota_type: Limits(quotas, quota_type) for quota_type in QUOTA_TYPES}
        self._limits = {quota_type: limits for quota_type, limits in made.items() if limits}

    def limited_types(self) -> Collection[str]:
        return tuple(self._limits)

    def limit(self, quota_type: str, principal: Principal, client_id: str) -> ClientLimit | None:
        limits = self._limits.get(quota_type)
        return None if limits is None else limits.of(principal.name, client_id)


class AddressLimits:
    """The quota of addresses, `connection_creation_rate`."""

    def __init__(self, quotas: Quotas, name: str) -> None:
        rows = [(entity[0][1], values[name]) for entity, values in quotas.items() if entity[0][0] == IP]
        self._quotas = {None if address is None else plain_address(address): quota for address, quota in rows}

    def __bool__(self) -> bool:
        return bool(self._quotas)

    def of(self, address: str) -> float | None:
        """The quota of an address as `plain_address` writes it."""
        quota = self._quotas.get(address)
        return self._quotas.get(None) if quota is None else quota


@lru_cache(maxsize=1024)
def plain_address(text: str) -> str:
    """An address in the one way to write it: an IPv4 address that came over IPv6 is IPv4. What is no address, such as
    the name of a pipe, is left as it is."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
