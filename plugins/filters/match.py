"""Fetch filter `match`: a reader gets the records that its rule in `fetch.match.rules` names.

    rule        CLIENT: CONDITION [& CONDITION …]      records that meet every condition
                CLIENT: all                            every record
                CLIENT: none                           no record
    CLIENT      a client id; `*` stands for any text, `?` for one character
    CONDITION   key=TEXT, header:NAME=TEXT, value:FIELD=TEXT; != for the opposite; TEXT may be ONE|OTHER

    fetch.match.rules=billing-*: header:region=eu|us & value:type=order, audit: all, *: none

The first rule that fits the reader's client id counts, one for the client `*` after all others: so a rule may be
appended to a list that ends with `*: none`. A reader that none fits gets every record.

FIELD is a field of a JSON object, `customer.region` one of an object in it. Texts are compared as they are, numbers,
`true`, `false` and `null` as JSON writes them. A record without the header or field does not equal any text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from logkernel.config.definitions import TOPIC, Setting
from logkernel.config.values import LIST
from logkernel.contracts import FetchFilter, ReadFacts
from logkernel.hookspecs import hookimpl
from logkernel.vocabulary import Record

RULES = "fetch.match.rules"
Condition = Callable[[Record], bool]


class Rule:
    """One rule. Raises ValueError for a text that is none."""

    def __init__(self, text: str) -> None:
        self.clients, colon, what = (part.strip() for part in text.partition(":"))
        if not (self.clients and colon and what):
            raise ValueError(f"{text!r} is no rule; write CLIENT: CONDITION, CLIENT: all or CLIENT: none")
        self.conditions: Sequence[Condition] = ()
        if what == "none":
            self.conditions = (_never,)
        elif what != "all":
            self.conditions = [_condition(part.strip()) for part in what.split("&")]

    def fits(self, client_id: str) -> bool:
        return fnmatchcase(client_id, self.clients)


class Match:
    """`contracts.FetchFilter`."""

    def __init__(self, rules: Iterable[str]) -> None:
        self._rules = sorted((Rule(text) for text in rules), key=lambda rule: rule.clients == "*")
        self._read: ReadFacts | None = None
        self._conditions: Sequence[Condition] = ()
        """Those for the reader of `_read`."""

    def passes(self, record: Record, read: ReadFacts) -> bool:
        if read is not self._read:
            client_id = read.client.client_id or ""
            fitting = (rule.conditions for rule in self._rules if rule.fits(client_id))
            self._read, self._conditions = read, next(fitting, ())
        return all(condition(record) for condition in self._conditions)


def _never(record: Record) -> bool:
    return False


def _condition(text: str) -> Condition:
    what, sign, wanted = text.partition("=")
    negated = what.endswith("!")
    kind, _, name = what.removesuffix("!").strip().partition(":")
    known = (kind == "key" and not name) or (kind in ("header", "value") and name)
    if not sign or not known:
        raise ValueError(f"{text!r} is no condition; write key=TEXT, header:NAME=TEXT or value:FIELD=TEXT")
    texts = frozenset(part.strip() for part in wanted.split("|"))
    raw = frozenset(one.encode() for one in texts)
    if kind == "key":
        return lambda record: (record.key in raw) is not negated
    if kind == "header":
        return lambda record: (_header(record, name) in raw) is not negated
    path = name.split(".")
    return lambda record: (_field(record, path) in texts) is not negated


def _header(record: Record, name: str) -> bytes | None:
    """The value of the last header of that name."""
    return next((value for found, value in reversed(record.headers) if found == name), None)


def _field(record: Record, path: Sequence[str]) -> str | None:
    """A field's text; None where there is no such field, or it holds an object or a list."""
    try:
        found: Any = json.loads(record.value or b"")
    except (ValueError, RecursionError):
        return None
    for name in path:
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    if isinstance(found, dict | list):
        return None
    return found if isinstance(found, str) else json.dumps(found)


class _Rules:
    """The validator of `fetch.match.rules`."""

    def __call__(self, value: Any) -> None:
        for text in value:
            Rule(text)

    def __str__(self) -> str:
        return "rules such as `billing-*: header:region=eu & value:type=order`"


@hookimpl
def logkernel_fetch_filter(name: str, settings: Mapping[str, Any]) -> FetchFilter | None:
    return Match(settings.get(RULES) or ()) if name == "match" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("fetch filter", "match")]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    return [
        Setting(
            RULES, LIST, "", _Rules(),
            "With fetch.filters=match, what readers get, by client id: `billing-*: header:region=eu|us &"
            " value:type=order, audit: all, *: none`. The first rule that fits counts, `*` after all others; a reader"
            " that none fits gets every record.", scope=TOPIC, own=True,
        ),
    ]  # fmt: skip
