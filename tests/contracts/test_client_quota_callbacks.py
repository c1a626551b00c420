"""Kafka's precedence, which a broker has without a plugin, keeps the contract of client quota callbacks; so does one
whose limits depend on who leads what."""

from __future__ import annotations

from wrong_plugins.client_quota_callback import Divided

from logkernel.broker.quotas.limits import KafkasPrecedence
from logkernel.contracts import ClientQuotaCallback
from logkernel.testing.contracts import ClientQuotaCallbackContract


class TestKafkasPrecedence(ClientQuotaCallbackContract):
    def make(self) -> ClientQuotaCallback:
        return KafkasPrecedence()


class TestDivided(ClientQuotaCallbackContract):
    def make(self) -> ClientQuotaCallback:
        return Divided()
