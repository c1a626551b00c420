"""The listeners by which brokers of a cluster reach one another: Kafka's checks of the settings that name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from logkernel.config.definitions import PER_LISTENER
from logkernel.config.listeners import DEFAULT_NAME, PROTOCOLS
from logkernel.config.sources import RawSetting, refuse
from logkernel.errors import ConfigError

NAME: Final = "inter.broker.listener.name"
PROTOCOL: Final = "security.inter.broker.protocol"
CONTROL: Final = "control.plane.listener.name"
MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
ENABLED: Final = "sasl.enabled.mechanisms"
DEFAULT_MECHANISM: Final = "GSSAPI"
"""Of both settings, as in Kafka."""
_NAMING: Final = (NAME, PROTOCOL, CONTROL)


def inter_broker(
    names: Sequence[str], given: Mapping[str, RawSetting], protocols: Mapping[str, str]
) -> tuple[str, ...]:
    """Of the listeners called `names`, those by which brokers reach one another: the one of replication, then, where it
    is another, the one of the controller's orders. `given` are the broker's settings as they were written.

    Raises ConfigError, as Kafka 3.9 refuses to start.
    """
    replication = _replication(names, given, protocols)
    control = _named(names, given[CONTROL]) if CONTROL in given else replication
    if control == replication and CONTROL in given:
        raise refuse(given[CONTROL], f"{replication} is the inter-broker listener", "name another listener")
    return (replication,) if control == replication else (replication, control)


def _replication(names: Sequence[str], given: Mapping[str, RawSetting], protocols: Mapping[str, str]) -> str:
    name, protocol = given.get(NAME), given.get(PROTOCOL)
    if name and protocol:
        raise refuse(name, f"{PROTOCOL} is given as well", "give one of the two")
    if protocol is None:
        return _named(names, name or RawSetting(NAME, DEFAULT_NAME, "default"))
    if protocol.text.upper() not in PROTOCOLS:
        raise refuse(protocol, "there is no such protocol", f"use one of {', '.join(PROTOCOLS)}")
    found = _named(names, protocol)
    if protocols.get(found, DEFAULT_NAME) != found:
        raise refuse(protocol, f"the listener {found} speaks {protocols[found]}", f"name the listener by {NAME}")
    return found


def _named(names: Sequence[str], row: RawSetting) -> str:
    found = row.text.strip().upper()
    if found not in names:
        problem = f"no listener is called {found}" if found else "it names no listener"
        raise refuse(row, problem, f"use a name from listeners ({', '.join(names)})")
    return found


def check(names: Sequence[str], given: Mapping[str, RawSetting], protocols: Mapping[str, str]) -> None:
    """Raise ConfigError where what was written about these listeners can't be: it is wrong of a broker that stands
    alone, too, and shows only when others join it. Where nothing was written, such a broker needs none of them."""
    if not any(name in given for name in _NAMING):
        return
    for listener in inter_broker(names, given, protocols):
        if protocols.get(listener, DEFAULT_NAME).startswith("SASL"):
            of_all = _text(given, ENABLED, DEFAULT_MECHANISM)
            own = _text(given, f"{PER_LISTENER}{listener.lower()}.{ENABLED}", of_all)
            check_mechanism(listener, own, _text(given, MECHANISM, DEFAULT_MECHANISM))


def _text(given: Mapping[str, RawSetting], name: str, default: str) -> str:
    return given[name].text if name in given else default


def check_mechanism(listener: str, enabled: str, mechanism: str) -> None:
    """Raise ConfigError where a listener does not take the mechanism by which brokers would log in."""
    taken = [one.strip().upper() for one in enabled.split(",") if one.strip()]
    if mechanism.upper() not in taken:
        raise ConfigError(
            f"{MECHANISM}={mechanism}: listener {listener} does not take it; add it to {ENABLED}, or name one of"
            f" {', '.join(taken)}"
        )
