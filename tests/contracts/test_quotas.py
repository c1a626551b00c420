"""The built-in quota keeps the contract."""

from __future__ import annotations

from typing import ClassVar

from logkernel.testing.contracts import QuotaContract


class TestUnlimited(QuotaContract):
    name = "rate"


class TestRate(QuotaContract):
    name = "rate"
    settings: ClassVar = {"produce.quota.bytes.per.second": "1000", "fetch.quota.bytes.per.second": "7"}
