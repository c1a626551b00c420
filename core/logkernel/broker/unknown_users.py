"""What SCRAM tells a user who does not exist: a salt and a number of iterations like those of one who does, and the
same from every broker, before and after a restart."""

from __future__ import annotations

import base64
import logging
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from logkernel.broker.metadata_manager import MetadataManager
from logkernel.broker.runtime import Runtime
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.controller.image import UNKNOWN_USERS, secret_change
from logkernel.errors import KafkaError
from logkernel.security.sasl.scram import MIN_ITERATIONS, UnknownUser

log = logging.getLogger("logkernel.security")

SECRET_BYTES: Final = 32
LOOKED_AT: Final = 100
"""How many of the users count: an attacker may ask for many who do not exist."""


class UnknownUsers:
    """See the module. The cluster keeps the secret that salts are made of; the first broker that needs it makes it."""

    def __init__(self, runtime: Runtime, metadata: MetadataManager, commit: Callable[[ControllerResult], Any]) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._commit = commit
        self._own = b""
        """Made here; it counts until the cluster's is known."""

    def told(self, mechanism: int) -> UnknownUser:
        """By the number of a mechanism: what most of its users have."""
        of_users = ((kept.iterations, len(base64.b64decode(kept.salt))) for (_, by), kept in
                    islice(self._metadata.image.scram.items(), LOOKED_AT) if by == mechanism)  # fmt: skip
        most = Counter(of_users).most_common(1)
        iterations, salt_bytes = most[0][0] if most else (MIN_ITERATIONS, SECRET_BYTES)
        return UnknownUser(self._secret(), salt_bytes, iterations)

    def _secret(self) -> bytes:
        kept = self._metadata.image.secrets.get(UNKNOWN_USERS) or self._own
        if kept:
            return kept
        self._own = self._runtime.random.bytes(SECRET_BYTES)
        try:
            self._commit(ControllerResult([secret_change(UNKNOWN_USERS, self._own)], None, Effects()))
        except KafkaError as error:
            log.warning("the secret of unknown users is this broker's alone until its next start: error=%s", error)
        return self._own
