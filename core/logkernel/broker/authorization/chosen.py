"""The authorizer that the broker's settings choose."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from uuid import UUID

from logkernel.broker.authorization.asking import Authorization
from logkernel.broker.authorization.audit import Audit
from logkernel.broker.runtime import Runtime
from logkernel.config.broker import BrokerConfig
from logkernel.controller.image import Acls
from logkernel.vocabulary import Acl, AclOperation, ResourceType

log = logging.getLogger("logkernel.authorizer")

KAFKAS: Final[Mapping[str, str]] = {
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer": "standard",
    "kafka.security.authorizer.AclAuthorizer": "standard",
}
"""Kafka's class → the plugin with its rules."""
_USER: Final = "User:"
_ALLOWED: Final = 3


def chosen(
    runtime: Runtime, acls: Acls, topic_name: Callable[[UUID], str | None], has_topic: Callable[[str], bool]
) -> Authorization | None:
    """None where `authorizer.class.name` is empty. Raises `PluginError` for a name that no plugin has."""
    name = str(runtime.config.get("authorizer.class.name")).strip()
    if not name:
        return None
    authorizer = runtime.kernel.authorizer(KAFKAS.get(name, name), runtime.config)
    return Authorization(authorizer, acls, topic_name, has_topic, Audit(runtime.after))


def warn_of_nobody(config: BrokerConfig, acls: Iterable[Acl]) -> None:
    """Log it if the rules of `standard` let nobody add an ACL: the broker would refuse everything, its own
    remedy (an ACL) included. `acls` are those that the broker knows of when it starts.

    Principals that no client has, as `user:ann`, are named in any case.
    """
    name = str(config.get("authorizer.class.name")).strip()
    if KAFKAS.get(name, name) != "standard":
        return
    given = config.get("super.users") or ()
    for principal in given:
        if not principal.startswith(_USER):
            right = f"{_USER}{principal.partition(':')[2]}"
            log.warning("super.users: %s is nobody, as a principal is User:NAME; write %s", principal, right)
    if any(principal.startswith(_USER) for principal in given) or config.get("allow.everyone.if.no.acl.found"):
        return
    if not any(_lets_alter(acl) for acl in acls):
        log.warning(
            "super.users names no user, and no ACL that is known lets anybody ALTER the cluster, so the broker"
            " refuses everything, new ACLs included; set super.users=User:NAME"
        )


def _lets_alter(acl: Acl) -> bool:
    return (
        acl.resource_type == ResourceType.CLUSTER
        and acl.permission_type == _ALLOWED
        and acl.operation in (AclOperation.ALL, AclOperation.ALTER)
    )
