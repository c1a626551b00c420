"""The names of settings that a listener has of its own, and what is wrong with one that nobody heeds.

    listener.name.NAME.SETTING
    listener.name.NAME.MECHANISM.SETTING

NAME and MECHANISM stand in lower case, as in Kafka, which takes every name that begins so. A misspelt
`listener.name.out.ssl.client.auth` asks nobody for a certificate, and says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from logkernel.config import unused
from logkernel.config.definitions import PER_LISTENER, Definitions
from logkernel.config.nearest import nearest
from logkernel.config.sources import nameless
from logkernel.vocabulary import SASL_MECHANISMS

MECHANISMS = tuple(mechanism.lower() for mechanism in SASL_MECHANISMS)


class Wrong(NamedTuple):
    problem: str
    remedy: str


def wrong_listener(name: str, listeners: Iterable[str]) -> Wrong | None:
    """Of a setting whose listener is none of `listeners`."""
    known = list(dict.fromkeys(one.lower() for one in listeners))
    rest = name.removeprefix(PER_LISTENER)
    if any(rest.startswith(f"{one}.") for one in known):
        return None
    problem = "no listener is called so"
    meant = next((one for one in known if rest.lower().startswith(f"{one}.")), None)
    if meant is not None:
        return Wrong(problem, f"write {PER_LISTENER}{meant}{rest[len(meant) :]}")
    was, dot, setting = rest.partition(".")
    near = nearest(was, known)
    remedy = f"did you mean {PER_LISTENER}{near}{dot}{setting}?" if near else f"use one of {', '.join(known)}"
    return Wrong(problem, remedy)


def wrong_setting(name: str, listeners: Iterable[str], definitions: Definitions) -> Wrong | None:
    """Of one whose SETTING is no broker's, or whose MECHANISM is none. A NAME that is none of `listeners` may end at
    each dot; one may be called as another begins."""
    rest = name.removeprefix(PER_LISTENER)
    own = {one.lower() for one in listeners if rest.startswith(f"{one.lower()}.")}
    if not own:
        is_any = any(is_known(part, definitions) for part in unused.of_listener(name))
        return None if is_any else _nameless(name, definitions)
    found = [_wrong_behind(name, rest[len(one) + 1 :], definitions) for one in sorted(own, key=len, reverse=True)]
    return None if None in found else found[0]


def is_known(setting: str, definitions: Definitions) -> bool:
    return setting in definitions.broker or unused.is_unused(setting)


def near(name: str, definitions: Definitions) -> list[str]:
    """What a misspelt setting most likely is: each part of the name that may be meant as one, put right."""
    known = [one.name for one in definitions.broker.values() if one.per_listener]
    found = ((part, nearest(part, known)) for part in unused.of_listener(name))
    return [f"{name.removesuffix(part)}{meant}" for part, meant in found if meant is not None]


def _wrong_behind(name: str, behind: str, definitions: Definitions) -> Wrong | None:
    """Of what stands behind the listener."""
    if is_known(behind, definitions):
        return None
    mechanism, _, setting = behind.partition(".")
    if mechanism in MECHANISMS and is_known(setting, definitions):
        return None
    if not is_known(setting, definitions):
        return _nameless(name, definitions)
    meant = nearest(mechanism, MECHANISMS)
    stem = name.removesuffix(behind)
    remedy = f"did you mean {stem}{meant}.{setting}?" if meant else f"use one of {', '.join(MECHANISMS)}"
    return Wrong(f"no mechanism of SASL is called {mechanism}", remedy)


def _nameless(name: str, definitions: Definitions) -> Wrong:
    return Wrong(*nameless(name, [*definitions.broker, *unused.names(), *near(name, definitions)]))
