"""From a client's certificate to its principal: `ssl.principal.mapping.rules` (KIP-371).

Rules are tried in order, and the first that matches the whole name gives the principal. Their patterns run by RE2,
whose time is linear in the name; it has no lookaround and no backreferences, which are refused.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from logkernel.errors import ConfigError, SslAuthenticationException
from logkernel.security.java_patterns import Substitution, is_printable
from logkernel.security.x500_names import subject_name
from logkernel.vocabulary import ANONYMOUS, Principal

SETTING = "ssl.principal.mapping.rules"
# Kafka also splits at line ends, but drops the rule before one: a comma is wanted here.
_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)", re.DOTALL)


class _Rule(NamedTuple):
    substitution: Substitution
    case: str
    """L, U or nothing."""


class PrincipalMapping:
    """The rules of one listener."""

    def __init__(self, rules: str = "DEFAULT") -> None:
        """Raises `ConfigError` for a rule that cannot be read, or whose pattern RE2 does not have."""
        self._rules = list(_parsed(rules.strip() or "DEFAULT"))

    def principal(self, certificate: bytes | None) -> Principal:
        """Who a verified certificate, in DER, stands for; without one, ANONYMOUS.

        Raises `SslAuthenticationException` where no rule matches, or the name has characters that would forge a log.
        """
        return ANONYMOUS if certificate is None else Principal("User", self.name(subject_name(certificate)))

    def name(self, distinguished_name: str) -> str:
        for rule in self._rules:
            if rule is None:
                return _printable(distinguished_name)
            if rule.substitution.matches(distinguished_name):
                mapped = rule.substitution.applied(distinguished_name)
                return _printable(
                    mapped.lower() if rule.case == "L" else mapped.upper() if rule.case == "U" else mapped
                )
        raise SslAuthenticationException(
            f"no rule matches the name {distinguished_name!r}; add one, or DEFAULT, to ssl.principal.mapping.rules"
        )


def _parsed(rules: str) -> list[_Rule | None]:
    """Each rule; None is DEFAULT."""
    found: list[_Rule | None] = []
    at = 0
    while at < len(rules):
        match = _RULE.match(rules, at)
        if match is None:
            raise ConfigError(
                f"ssl.principal.mapping.rules cannot be read at {rules[at : at + 60]!r}; write "
                "RULE:pattern/replacement/, with an L or U behind it for lower or upper case, or DEFAULT, and commas "
                "between them"
            )
        found.append(None if match[1] else _Rule(Substitution(SETTING, match[2], match[3]), match[4]))
        at = match.end()
    return found


def _printable(name: str) -> str:
    """A name is written to logs and compared in ACLs: control characters and separators of lines forge both."""
    if not is_printable(name):
        raise SslAuthenticationException(
            f"the name {name[:200]!r} of a client's certificate has control characters; use another certificate"
        )
    return name
