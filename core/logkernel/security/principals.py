"""From a client's certificate to its principal: `ssl.principal.mapping.rules` (KIP-371).

Rules are tried in order, and the first that matches the whole name gives the principal. Their patterns run by RE2,
whose time is linear in the name; it has no lookaround and no backreferences, which are refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from logkernel.errors import ConfigError, SslAuthenticationException
from logkernel.security.x500_names import subject_name
from logkernel.vocabulary import ANONYMOUS, Principal

MAX_PATTERN_BYTES = 1_048_576
"""Memory that RE2 may take for one pattern."""
# Kafka also splits at line ends, but drops the rule before one: a comma is wanted here.
_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)", re.DOTALL)
_PART = re.compile(r"\\(?P<literal>.)|\$(?P<group>\d+)|(?P<text>[^\\$]+)", re.DOTALL)


class _Rule(NamedTuple):
    sub: Callable[[Callable[[re.Match[str]], str], str], str]
    matches: Callable[[str], object]
    replacement: list[str | int]
    """Texts, and numbers of groups."""
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
            if rule.matches(distinguished_name):
                return _printable(_applied(rule, distinguished_name))
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
        found.append(None if match[1] else _rule(match[2], match[3], match[4]))
        at = match.end()
    return found


def _rule(pattern: str, replacement: str, case: str) -> _Rule:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PATTERN_BYTES
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else error
        raise ConfigError(
            f"RE2 cannot run the pattern {pattern!r} of ssl.principal.mapping.rules ({reason}); "
            "write it without lookaround and backreferences"
        ) from None
    return _Rule(compiled.sub, compiled.fullmatch, _parts(replacement, compiled.groups), case)


def _parts(replacement: str, groups: int) -> list[str | int]:
    """As Java's Matcher reads it: `$` and a group's number, which takes as many digits as there are groups for."""
    parts: list[str | int] = []
    at = 0
    while at < len(replacement):
        found = _PART.match(replacement, at)
        if found is None:
            raise ConfigError(
                f"the replacement {replacement!r} of ssl.principal.mapping.rules has a $ or \\ without what belongs "
                "to it; write \\$ or \\\\"
            )
        at = found.end()
        digits = found["group"]
        if digits is None:
            parts.append(found["literal"] or found["text"])
            continue
        count = next((size for size in range(len(digits), 0, -1) if int(digits[:size]) <= groups), 0)
        parts += [int(digits[:count]), digits[count:]] if count else [f"${digits}"]
    return parts


def _applied(rule: _Rule, name: str) -> str:
    def expand(found: re.Match[str]) -> str:
        return "".join((found[part] or "") if isinstance(part, int) else part for part in rule.replacement)

    mapped = rule.sub(expand, name)
    return mapped.lower() if rule.case == "L" else mapped.upper() if rule.case == "U" else mapped


def _printable(name: str) -> str:
    """A name is written to logs and compared in ACLs: control characters and separators of lines forge both."""
    if any(unicodedata.category(one) in ("Cc", "Zl", "Zp") for one in name):
        raise SslAuthenticationException(
            f"the name {name[:200]!r} of a client's certificate has control characters; use another certificate"
        )
    return name
