"""The log of other brokers that refused this one, or that it does not trust."""

from __future__ import annotations

import logging
from typing import Final

from logkernel.errors import ConfigError, SslAuthenticationException

log = logging.getLogger("logkernel.peers")

AGAIN_MS: Final = 60_000
"""A refusal that stays the same is logged again after so long: brokers try again twice a second."""


class Refusals:
    """Logs refusals once each, with what to mend."""

    def __init__(self) -> None:
        self._logged: dict[int, tuple[str, int]] = {}
        """Node id → (the text that was last logged of it, when)."""

    def note(self, node_id: int, listener: str, error: Exception, mono_ms: int) -> None:
        """Note that a connection to `listener` of broker `node_id` failed with one of `errors.REFUSALS`."""
        text = f"broker {node_id} cannot be reached over {listener}: {error}{_remedy(error, listener)}"
        before, since_ms = self._logged.get(node_id, ("", 0))
        if text != before or mono_ms - since_ms >= AGAIN_MS:
            self._logged[node_id] = (text, mono_ms)
            log.error("%s", text)


def _remedy(error: Exception, listener: str) -> str:
    prefix = f"listener.name.{listener.lower()}"
    if isinstance(error, ConfigError):
        return ""  # it says what to set
    if isinstance(error, SslAuthenticationException):
        return f"; keys and trust are in {prefix}.ssl.keystore.* and {prefix}.ssl.truststore.* of both brokers"
    return (
        f"; what this broker says is in its {prefix}.MECHANISM.sasl.jaas.config and"
        " sasl.mechanism.inter.broker.protocol, and the other broker has to know it"
    )
