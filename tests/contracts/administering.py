"""An admin client, and the log behind it."""

from __future__ import annotations

from typing import Any

import logkernel
from logkernel.client.admin.client import Admin


class Bench:
    """An admin client, and the log behind it."""

    def __init__(self, log: logkernel.EmbeddedLog, admin: Any) -> None:
        self.log = log
        self.admin: Admin = admin
