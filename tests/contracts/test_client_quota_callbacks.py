"""Kafka's precedence, which a broker has without a plugin, keeps the contract of client quota callbacks."""

from __future__ import annotations

from logkernel.broker.quotas.limits import KafkasPrecedence
from logkernel.contracts import ClientQuotaCallback
from logkernel.testing.contracts import ClientQuotaCallbackContract


class TestKafkasPrecedence(ClientQuotaCallbackContract):
    def make(self) -> ClientQuotaCallback:
        return KafkasPrecedence()
