"""What `logkernel serve --brokers N` refuses: settings of listeners and access that its brokers would pass over.

Brokers of one command listen in plain text, each on an address that the command gives it, and those of `--processes`
reach one another there without a login.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from logkernel.broker.authorization.chosen import KAFKAS
from logkernel.config.broker import BrokerConfig
from logkernel.config.listeners import DEFAULT_NAME, parse_listeners
from logkernel.config.loading import PROTOCOL_MAP, plugin_lists
from logkernel.config.sources import RawSetting, refuse
from logkernel.errors import ConfigError
from logkernel.kernel import Kernel

if TYPE_CHECKING:
    from logkernel.config.listeners import Listener

AUTHORIZER: Final = "authorizer.class.name"
ANONYMOUS: Final = "User:ANONYMOUS"
ONE_BY_ONE: Final = (
    "to secure a cluster, start each broker by itself with --coordination zookeeper://… (docs/secure-broker.md)"
)


def refuse_secure(arguments: argparse.Namespace) -> None:
    """Raise `ConfigError` for `--secure` beside `--brokers`."""
    if arguments.secure:
        raise ConfigError(
            f"--secure is for one broker that stands alone, and brokers of --brokers speak plain text; leave out"
            f" --brokers; {ONE_BY_ONE}"
        )


def check(arguments: argparse.Namespace, settings: Sequence[str | RawSetting]) -> None:
    """Raise `ConfigError` where a listener that was given speaks something else than plain text, or where an authorizer
    would keep brokers of `--processes` from one another."""
    allow, block = plugin_lists(arguments.config, settings)
    config = BrokerConfig.load(arguments.config, settings, Kernel(allow=allow, block=block).declarations())
    for listener in (*config.listeners, *_named(arguments.listen)):
        _check_listener(listener, config)
    if arguments.processes:
        _check_authorizer(config)


def _named(listen: str | None) -> tuple[Listener, ...]:
    """What `--listen` names; an address without a name is PLAINTEXT. What is no address is refused elsewhere."""
    try:
        return parse_listeners(listen) if listen is not None and "://" in listen else ()
    except ValueError:
        return ()


def _check_listener(listener: Listener, config: BrokerConfig) -> None:
    protocol = config.security_protocol(listener.name)
    if protocol != DEFAULT_NAME:
        given = config.origin(PROTOCOL_MAP if listener.name == DEFAULT_NAME else "listeners")
        where = "--listen" if given == "default" else given
        raise ConfigError(
            f"{where}: the listener {listener.name} speaks {protocol}, and brokers of --brokers speak plain text;"
            f" remove it; {ONE_BY_ONE}"
        )


def _check_authorizer(config: BrokerConfig) -> None:
    name = config.get(AUTHORIZER).strip()
    if KAFKAS.get(name, name) != "standard" or config.get("allow.everyone.if.no.acl.found"):
        return
    if ANONYMOUS not in config.get("super.users", ()):
        raise refuse(
            RawSetting(AUTHORIZER, name, config.origin(AUTHORIZER)),
            f"brokers of --processes reach one another as {ANONYMOUS}, and would refuse each other",
            f"leave out --processes, or add {ANONYMOUS} to super.users, and so let everybody do all; {ONE_BY_ONE}",
        )
