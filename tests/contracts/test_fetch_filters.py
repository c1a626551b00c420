"""The built-in fetch filter keeps the contract."""

from __future__ import annotations

from typing import ClassVar

from logkernel.testing.contracts import FetchFilterContract


class TestMatch(FetchFilterContract):
    name = "match"


class TestMatchWithRules(FetchFilterContract):
    name = "match"
    settings: ClassVar = {
        "fetch.match.rules": "billing-*: header:region=eu & value:a=1, a*: key!=x & value:a.b!=1, ?: none"
    }
