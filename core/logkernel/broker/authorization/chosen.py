"""The authorizer that the broker's settings choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from logkernel.broker.authorization.asking import Authorization
from logkernel.broker.authorization.audit import Audit
from logkernel.broker.runtime import Runtime
from logkernel.controller.image import Acls

KAFKAS: Final[Mapping[str, str]] = {
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer": "standard",
    "kafka.security.authorizer.AclAuthorizer": "standard",
}
"""Kafka's class → the plugin with its rules."""


def chosen(
    runtime: Runtime, acls: Acls, topic_name: Callable[[UUID], str | None], has_topic: Callable[[str], bool]
) -> Authorization | None:
    """None where `authorizer.class.name` is empty. Raises `PluginError` for a name that no plugin has."""
    name = str(runtime.config.get("authorizer.class.name")).strip()
    if not name:
        return None
    authorizer = runtime.kernel.authorizer(KAFKAS.get(name, name), runtime.config)
    return Authorization(authorizer, acls, topic_name, has_topic, Audit(runtime.after))
