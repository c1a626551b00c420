"""What to say where a listing is empty, or a cluster seems to have nothing: brokers leave out, without a word, what a
user may not describe, as Kafka's do. The sign of it is what they let this user do with the cluster (KIP-430)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from logkernel.client.cluster.permissions import command
from logkernel.errors import TopicAuthorizationFailed, UnknownTopicOrPartition
from logkernel.vocabulary import AclOperation

if TYPE_CHECKING:
    from logkernel.client.admin.client import Admin

EVERYTHING = frozenset(
    {
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    }
)
"""What a super user may do with a cluster, and everybody where there is no authorizer."""
NOBODYS_TOPIC = "logkernel.a.topic.that.nobody.has"
"""Brokers tell who may describe it that it is not there, and others that it is not theirs, as of any topic."""


def why_empty(operations: frozenset[AclOperation] | None, kind: str) -> str | None:
    """The text for a listing without a row of this kind of resources, an option of `logkernel cluster acl`; None where
    there is nothing to be seen. `operations` are those of the cluster that this user may do; None: it is not known."""
    if operations is None or operations >= EVERYTHING:
        return None
    return (
        f"there is no {kind.replace('-', ' ')} that this user may describe; for others, ask for an ACL:"
        f" {command('describe', kind, '*')}"
    )


def say_if_empty(found: object, admin: Admin, kind: str) -> None:
    """Explain on stderr a listing that has no row."""
    if found:
        return
    operations = allowed(admin)
    text = why_no_topic(operations, admin) if kind == "topic" else why_empty(operations, kind)
    if text is not None:
        click.echo(f"logkernel: {text}", err=True)


def why_no_topic(operations: frozenset[AclOperation] | None, admin: Admin) -> str | None:
    """As `why_empty` for topics; None as well where this user may describe any, so that none is hidden."""
    why = why_empty(operations, "topic")
    if why is None:
        return None
    try:
        admin.describe_topics([NOBODYS_TOPIC])
    except TopicAuthorizationFailed:
        return why
    except UnknownTopicOrPartition:
        pass
    return None


def allowed(admin: Admin) -> frozenset[AclOperation] | None:
    """What this user may do with the cluster."""
    return admin.describe_cluster(include_authorized_operations=True).authorized_operations
