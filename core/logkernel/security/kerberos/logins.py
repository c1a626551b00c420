"""From settings to Kerberos: `sasl.jaas.config` with a Krb5LoginModule, and librdkafka's settings of a keytab."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from logkernel.errors import ConfigError
from logkernel.security import jaas
from logkernel.security.kerberos import gss
from logkernel.security.kerberos.asking import Asking
from logkernel.security.kerberos.short_names import ShortNames
from logkernel.security.sasl.gssapi import GssapiClient, GssapiServer

SERVICE: Final = "sasl.kerberos.service.name"
PRINCIPAL: Final = "sasl.kerberos.principal"
KEYTAB: Final = "sasl.kerberos.keytab"
_ON_BROKERS: Final = (
    f'give com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="…" principal="…"; as '
    f"listener.name.NAME.gssapi.{jaas.NAME}, or name other mechanisms in sasl.enabled.mechanisms"
)


def client_of(module: jaas.LoginModule | None, values: Mapping[str, Any]) -> Callable[[str], GssapiClient]:
    """Return what makes a client's mechanism for a host; `values` are the client's settings. Raises `ConfigError`."""
    service = _service(module, values[SERVICE])
    if not service:
        raise ConfigError(f"GSSAPI needs {SERVICE}, which is not set; set it to the brokers' name, e.g. kafka")
    tickets, asking = _tickets(module, values[KEYTAB], values[PRINCIPAL]), Asking()
    return lambda host: GssapiClient(lambda: asking.run(lambda: gss.initiator(tickets, service, host)))


def client_of_module(module: jaas.LoginModule, name: str, service: str) -> Callable[[str], GssapiClient]:
    """Return what makes a client's mechanism for a host, by a login module alone, which is in the setting `name`;
    `service` is asked for where it has no `serviceName`. Raises `ConfigError`."""
    gss.package()
    given = module.option("serviceName") or service
    tickets, asking = _tickets(module, None, None, name), Asking()
    return lambda host: GssapiClient(
        lambda: asking.run(lambda: gss.initiator(tickets, given, host)), f"serviceName of {name}"
    )


def server_of(text: str | None, settings: Mapping[str, str], wall_ms: Callable[[], int]) -> Callable[[], GssapiServer]:
    """Return what makes a listener's mechanism, of its login and its settings. Raises `ConfigError`."""
    module = jaas.parse(text) if text else None
    if module is None or module.family != "GSSAPI":
        raise ConfigError(f"gssapi.{jaas.NAME}: GSSAPI, Kafka's default mechanism, has no keytab; {_ON_BROKERS}")
    keytab = _keytab(module)
    if keytab is None:
        raise ConfigError(f"gssapi.{jaas.NAME}: the login has no keytab; {_ON_BROKERS}")
    principal = module.option("principal")
    service = _service(module, settings.get(SERVICE))
    if principal in (None, "*"):
        principal = None
        if not service:
            raise ConfigError(f'gssapi.{jaas.NAME}: the login has no principal; write principal="…", or set {SERVICE}')
    rules = ShortNames(settings["sasl.kerberos.principal.to.local.rules"], gss.default_realm())
    new_context = gss.acceptors(keytab, principal, service)
    return lambda: GssapiServer(new_context, rules.of, wall_ms)


def _service(module: jaas.LoginModule | None, given: str | None) -> str | None:
    by_login = module.option("serviceName") if module else None
    if given and by_login and given != by_login:
        raise ConfigError(f"{SERVICE} and serviceName of {jaas.NAME} differ; give one of them")
    return given or by_login


def _tickets(
    module: jaas.LoginModule | None, keytab: str | None, principal: str | None, setting: str = jaas.NAME
) -> gss.FirstOf:
    found: list[gss.Tickets] = []
    if module is None:
        if keytab is None:
            found.append(gss.CachedTickets(None, principal))
    else:
        by_login = _keytab(module, setting)
        for name, known, other in (
            (KEYTAB, by_login, keytab),
            (PRINCIPAL, module.option("principal"), principal),
        ):
            if other is not None and known != other:
                raise ConfigError(f"{setting} and {name} differ; give one of them")
        keytab, principal = by_login, module.option("principal")
        if module.is_on("useTicketCache"):  # Java asks it before the keytab
            found.append(gss.CachedTickets(module.option("ticketCache"), principal))
        elif keytab is None:
            raise ConfigError(
                f"{setting}: Krb5LoginModule has neither a keytab nor a ticket cache, and nobody is asked for a "
                'password; write useKeyTab=true keyTab="…" principal="…", or useTicketCache=true'
            )
    if keytab is not None:
        if not principal:
            remedy = (
                f'give {PRINCIPAL}, or principal="…"' if setting == jaas.NAME else f'write principal="…" in {setting}'
            )
            raise ConfigError(f"the keytab {keytab!r} is given without a principal; {remedy}")
        if not os.access(keytab.removeprefix("FILE:"), os.R_OK):
            raise ConfigError(f"cannot read the keytab {keytab!r}; name a file that exists, and may be read")
        found.append(gss.KeytabTickets(keytab, principal))
    return gss.FirstOf(*found)


def _keytab(module: jaas.LoginModule, setting: str = jaas.NAME) -> str | None:
    keytab = module.option("keyTab")
    if module.is_on("useKeyTab") == (keytab is not None):
        return keytab
    raise ConfigError(f'{setting}: only one of useKeyTab=true and keyTab="…" is given; give both')
