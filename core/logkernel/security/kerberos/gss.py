"""Kerberos by the package `gssapi`: tickets of clients, keys of brokers, and the contexts of both."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

from logkernel.errors import ConfigError
from logkernel.security.sasl.gssapi import GssError

RENEW_AT: Final = 0.2
"""Of a ticket's lifetime: with less than this left, the next login gets another (Kafka's
`sasl.kerberos.ticket.renew.window.factor` is 0.8)."""
_KDC_UNREACH: Final = 0x96C73A9C
"""`KRB5_KDC_UNREACH` of MIT's and Heimdal's libraries, as 32 bits without a sign."""
_REPLAY_CACHE: Final = "dfl:"
"""MIT's own, in a file beside the clock's last minutes: without it, a client's token could be sent again."""
_NO_KEYS: Final = "MEMORY:logkernel-no-keys"
"""Of a client with a ticket cache: the library would get tickets by the system's keys, and keep the GIL meanwhile."""
_numbers = itertools.count()


class Tickets(Protocol):
    """Where a client's tickets come from."""

    def current(self) -> Any:
        """Return credentials with time left (`gssapi.Credentials`); may ask a KDC. Raises `GssError`."""
        ...


def package() -> Any:
    """Return the module `gssapi`. Raises `ConfigError`."""
    try:
        import gssapi
    except (ImportError, OSError) as error:
        raise ConfigError(
            f"GSSAPI needs the package gssapi, which cannot be imported ({error}); install logkernel[kerberos], or use "
            "another mechanism"
        ) from None
    return gssapi


@contextmanager
def _failures() -> Iterator[None]:
    """Raises `GssError` for an error of the package."""
    try:
        yield
    except NotImplementedError as error:  # by a Kerberos that has no stores, as that of macOS
        raise GssError(str(error)) from None
    except package().exceptions.GSSError as error:
        words = error.get_all_statuses(error.min_code, False) if error.min_code else []
        words = words or error.get_all_statuses(error.maj_code, True)
        raise GssError(", ".join(words), unreachable=error.min_code & 0xFFFFFFFF == _KDC_UNREACH) from None


class KeytabTickets:
    """Tickets that the keys of a keytab get from a KDC. They are kept in memory, and shared by connections.

    How long they last is asked once, before they are shared: a login holds them while it waits for a KDC, and who asks
    meanwhile waits in the library with the GIL, and stops the whole process.
    """

    def __init__(self, keytab: str, principal: str) -> None:
        self._keytab = file_of(keytab)
        self._principal = principal
        self._lock = threading.Lock()
        self._credentials: Any = None
        self._renew_at_s = 0.0
        """By the clock of the system, as tickets end by that."""
        number = next(_numbers)
        # Two take turns: logins that began before may still use the older one.
        self._caches = itertools.cycle([f"MEMORY:logkernel-{number}-{turn}" for turn in range(2)])
        self._cache = next(self._caches)

    def current(self) -> Any:
        with self._lock:
            if self._credentials is None or time.time() >= self._renew_at_s:
                found = self._acquired()
                self._renew_at_s = time.time() + _left_s(found) * (1 - RENEW_AT)
                self._credentials = found
                self._cache = next(self._caches)
            return self._credentials

    def _acquired(self) -> Any:
        name = _principal(self._principal)
        with _failures():
            gssapi = package()
            # Where the keytab is wrong, this says why; what follows would say that there is no ticket.
            gssapi.Credentials(name=name, usage="accept", store={"keytab": self._keytab})
            store = {"client_keytab": self._keytab, "ccache": self._cache}
            return gssapi.Credentials(name=name, usage="initiate", store=store)


class CachedTickets:
    """Tickets of a cache that others fill, as kinit does. It is read at each login."""

    def __init__(self, cache: str | None = None, principal: str | None = None) -> None:
        """Without a cache, that of the environment (KRB5CCNAME) or the system; without a principal, the cache's."""
        self._cache = {"ccache": file_of(cache)} if cache else None
        self._principal = principal

    def current(self) -> Any:
        name = _principal(self._principal) if self._principal else None
        gssapi = package()
        has_stores = hasattr(gssapi.raw, "acquire_cred_from")  # which macOS has not
        store = {"client_keytab": _NO_KEYS, **(self._cache or {})} if has_stores else self._cache
        with _failures():
            found = gssapi.Credentials(name=name, usage="initiate", store=store)
        if not _left_s(found):
            raise GssError("the ticket in the cache has expired; run kinit")
        return found


class FirstOf:
    """The first tickets that there are."""

    def __init__(self, *sources: Tickets) -> None:
        self.sources = sources

    def current(self) -> Any:
        for tickets in self.sources[:-1]:
            try:
                return tickets.current()
            except GssError:
                continue
        return self.sources[-1].current()


class Context:
    """Either half's `GssContext`, over a `gssapi.SecurityContext`."""

    def __init__(self, context: Any) -> None:
        context.__DEFER_STEP_ERRORS__ = False  # else `step` returns a token, and the next property raises
        self._context = context
        self._first: bytes | None = None

    @property
    def complete(self) -> bool:
        return bool(self._context.complete)

    @property
    def client(self) -> str:
        with _failures():
            if self._context.actual_flags & package().RequirementFlag.anonymity:
                raise GssError("the client is anonymous")
            return str(self._context.initiator_name)

    @property
    def lifetime_s(self) -> int | None:
        return _left_s(self._context)

    def begin(self) -> None:
        """Of a client: make the first token, for which a KDC may be asked."""
        self._first = self.step(None)

    def step(self, token: bytes | None) -> bytes:
        if token is None and self._first is not None:
            return self._first
        with _failures():
            return self._context.step(token) or b""

    def wrap(self, message: bytes) -> bytes:
        with _failures():
            return bytes(self._context.wrap(message, False).message)

    def unwrap(self, message: bytes) -> bytes:
        with _failures():
            return bytes(self._context.unwrap(message).message)


def initiator(tickets: Tickets, service: str, host: str) -> Context:
    """Return a client's context with a service, and its first token in it; may ask a KDC. Raises `GssError`."""
    gssapi = package()
    credentials = tickets.current()
    flags = gssapi.RequirementFlag
    with _failures():
        found = Context(
            gssapi.SecurityContext(
                name=gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service),
                creds=credentials,
                usage="initiate",
                mech=gssapi.MechType.kerberos,
                flags=flags.mutual_authentication | flags.out_of_sequence_detection,
            )
        )
    found.begin()
    return found


def acceptors(keytab: str, principal: str | None, service: str | None) -> Callable[[], Context]:
    """Return what makes a broker's contexts, with the keys of a principal; without one, with those of a service on any
    host. The keytab is read at each. Raises `ConfigError` where it has no such keys."""
    gssapi = package()
    store = {"keytab": file_of(keytab), "rcache": _REPLAY_CACHE}
    try:
        name = _principal(principal) if principal else gssapi.Name(service, gssapi.NameType.hostbased_service)
        with _failures():
            found = gssapi.Credentials(name=name, usage="accept", mechs=[gssapi.MechType.kerberos], store=store)
    except GssError as error:
        raise ConfigError(f"keyTab={keytab!r}: {error}; name a keytab that has the keys of the principal") from None

    def new_context() -> Context:
        with _failures():
            return Context(gssapi.SecurityContext(creds=found, usage="accept"))

    return new_context


def default_realm() -> str:
    """Return the realm of names without one, by krb5.conf; empty where that has none."""
    try:
        with _failures():
            name = _principal("any").canonicalize(package().MechType.kerberos)
            return str(name).partition("@")[2]
    except GssError:
        return ""


def file_of(name: str) -> str:
    """Return the name of a keytab or cache, which may begin with its kind, as Kerberos reads it."""
    return name if name[:1] != "/" and ":" in name else f"FILE:{name}"


def _principal(name: str) -> Any:
    gssapi = package()
    with _failures():
        return gssapi.Name(name, gssapi.NameType.kerberos_principal)


def _left_s(held: Any) -> int:
    """How long credentials or a context last; 0: no more."""
    exceptions = package().exceptions
    try:
        lifetime = held.lifetime
    except (exceptions.ExpiredCredentialsError, exceptions.ExpiredContextError):
        return 0
    return 2**31 if lifetime is None else int(lifetime)
