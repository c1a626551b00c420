"""From a Kerberos principal to the name that a broker knows: `sasl.kerberos.principal.to.local.rules`, the rules of
Kafka's `KerberosShortNamer`.

    RULE:[n:string](regex)s/pattern/replacement/g/L      each part behind ] may be missing; /U is upper case
    DEFAULT                                              the first part of a name of the default realm

A rule is for names of n parts; in its string, $0 is the realm and $1 the first part. The first that gives a name
counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.java_patterns import Substitution, is_printable

SETTING = "sasl.kerberos.principal.to.local.rules"
MAX_NAME_CHARACTERS = 4_096
"""Of a principal; those of people and services have some dozens."""
_NAME = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE = re.compile(r"(DEFAULT)|RULE:\[(\d{1,9}):([^\]]*)\](?:\(([^)]*)\))?(s/([^/]*)/([^/]*)/(g)?)?/?(L|U)?", re.ASCII)
_PARAMETER = re.compile(r"([^$]*)(?:\$(\d{0,9}))?", re.ASCII)
_NOT_SIMPLE = re.compile(r"[/@]")


class _Rule(NamedTuple):
    parts: int
    form: tuple[str | int, ...]
    """Texts, and numbers of parameters."""
    matches: Substitution | None
    substitution: Substitution | None
    most: int
    """Of matches that are replaced; 0: all."""
    case: str
    """L, U or nothing."""


class ShortNames:
    """The rules of one listener."""

    def __init__(self, rules: str, default_realm: str) -> None:
        """`rules` are separated by commas. Raises `ConfigError` for one that cannot be read, or whose pattern RE2 does
        not have."""
        self._rules = [_parsed(rule.strip()) for rule in rules.split(",")]
        self._default_realm = default_realm

    def of(self, principal: str) -> str:
        """Return the short name of a principal. Raises `SaslAuthenticationFailed` where no rule is for it, or what the
        rules give is no name."""
        parameters = _parameters(principal)
        name = principal if parameters is None else self._applied(parameters)
        if name is None:
            raise SaslAuthenticationFailed(f"no rule is for {principal!r}; add one to {SETTING}")
        if not name or not is_printable(name):
            raise SaslAuthenticationFailed(
                f"the name of {principal!r} by the rules is empty, or has control characters; change {SETTING}"
            )
        return name

    def _applied(self, parameters: Sequence[str]) -> str | None:
        for rule in self._rules:
            name = self._default(parameters) if rule is None else _result(rule, parameters)
            if name is None:
                continue
            if _NOT_SIMPLE.search(name):
                raise SaslAuthenticationFailed(f"a rule gives {name!r}, which is no short name; change {SETTING}")
            case = "" if rule is None else rule.case
            return name.lower() if case == "L" else name.upper() if case == "U" else name
        return None

    def _default(self, parameters: Sequence[str]) -> str | None:
        return parameters[1] if parameters[0] == self._default_realm else None


def _parameters(principal: str) -> list[str] | None:
    """Realm, first part and, where there is one, second; None: a name without realm, which is short already."""
    found = _NAME.fullmatch(principal) if len(principal) <= MAX_NAME_CHARACTERS else None
    if found is None:
        if len(principal) > MAX_NAME_CHARACTERS or "@" in principal:
            raise SaslAuthenticationFailed(
                f"the Kerberos name {principal[:200]!r} is malformed; use one of at most two parts and a realm"
            )
        return None
    service, host, realm = found.groups()
    return [realm, service] if host is None else [realm, service, host]


def _parsed(text: str) -> _Rule | None:
    """A rule; None is DEFAULT."""
    found = _RULE.match(text)
    if found is None or found.end() != len(text):
        raise ConfigError(
            f"{SETTING} cannot be read at {text[:100]!r}; write RULE:[n:string](regex)s/pattern/replacement/g/L, the "
            "parts behind ] as you need them, or DEFAULT, and commas between them"
        )
    default, parts, form, matched, substituted, pattern, replacement, every, case = found.groups()
    if default:
        return None
    return _Rule(
        int(parts),
        tuple(_form(form, int(parts), text)),
        None if matched is None else Substitution(SETTING, matched),
        None if substituted is None else Substitution(SETTING, pattern, replacement),
        0 if every else 1,
        case or "",
    )


def _form(form: str, parts: int, rule: str) -> list[str | int]:
    found: list[str | int] = []
    for text, number in _PARAMETER.findall(form):
        found.append(text)
        if number:
            found.append(int(number))
    if form.count("$") != sum(isinstance(one, int) and one <= parts for one in found):
        raise ConfigError(
            f"{SETTING}: the string of {rule[:100]!r} has a $ without a number from 0 to {parts}; write $1 for the "
            "first part of a name, $0 for its realm"
        )
    return found


def _result(rule: _Rule, parameters: Sequence[str]) -> str | None:
    if len(parameters) - 1 != rule.parts:
        return None
    base = "".join(parameters[one] if isinstance(one, int) else one for one in rule.form)
    if rule.matches is not None and not rule.matches.matches(base):
        return None
    return base if rule.substitution is None else rule.substitution.applied(base, rule.most)
