"""Asks the broker's authorizer for one request at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from logkernel.broker.authorization.audit import Audit
from logkernel.contracts import RequestContext
from logkernel.controller.image import Acls
from logkernel.errors import PluginError, UnknownServerError
from logkernel.vocabulary import CLUSTER_NAME, NO_ID, Acl, AclOperation, ResourceType

if TYPE_CHECKING:
    from logkernel.guards.authorizer import GuardedAuthorizer

Op = AclOperation
OPERATIONS: Final[Mapping[ResourceType, tuple[AclOperation, ...]]] = {
    ResourceType.TOPIC: (
        Op.READ, Op.WRITE, Op.CREATE, Op.DELETE, Op.ALTER, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS
    ),
    ResourceType.GROUP: (Op.READ, Op.DELETE, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS),
    ResourceType.CLUSTER: (
        Op.CREATE, Op.ALTER, Op.DESCRIBE, Op.CLUSTER_ACTION, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS, Op.IDEMPOTENT_WRITE
    ),
}  # fmt: skip
"""What a client may be allowed to do with a resource: the bits of authorized operations (KIP-430)."""


class Authorization:
    """The broker's authorizer. It is told of changed ACLs before it is asked again."""

    def __init__(
        self,
        authorizer: GuardedAuthorizer,
        acls: Acls,
        topic_name: Callable[[UUID], str | None],
        has_topic: Callable[[str], bool],
        audit: Audit,
    ) -> None:
        """`acls` are the cluster's, as they change; `topic_name` finds a topic's name by its id, `has_topic` says
        whether there is one of a name; `audit` writes refusals."""
        self.authorizer = authorizer
        self.topic_name = topic_name
        self.has_topic = has_topic
        self._acls = acls
        self._told: dict[Acl, None] = {}
        self._changes = -1
        """`Acls.changes` that the authorizer knows of; -1: it knows none yet."""
        self.audit = audit

    @property
    def changes(self) -> int:
        """Grows when ACLs change: what was allowed before may not be any more."""
        return self._acls.changes

    def asking(self, context: RequestContext, request: str) -> Asking:
        """For one request, named by its class. Raises `UnknownServerError` where the authorizer cannot be told of the
        ACLs."""
        if self._changes != self._acls.changes:
            self._tell()
        return Asking(self, context, request)

    def acts(self, sender: RequestContext) -> bool:
        """Whether the sender may act for the cluster; False, too, where the authorizer fails."""
        try:
            return self.asking(sender, "").may_cluster(AclOperation.CLUSTER_ACTION, told=False)
        except UnknownServerError:
            return False

    def topics(self, sender: RequestContext, operation: AclOperation, names: Sequence[str]) -> Sequence[str]:
        """Those of `names`, in their order, with which the sender may do this. Who may CREATE on the cluster may create
        all. Raises `UnknownServerError`."""
        asking = self.asking(sender, "")
        if operation is AclOperation.CREATE and asking.may_cluster(operation, told=False):
            return names
        found = asking.those(operation, ResourceType.TOPIC, names, told=False)
        return [name for name in names if name in found]

    def _tell(self) -> None:
        changes, now = self._acls.changes, dict(self._acls)
        added, removed = now.keys() - self._told.keys(), self._told.keys() - now.keys()
        try:
            self.authorizer.acls_changed(added, removed)
        except PluginError as error:
            raise UnknownServerError(str(error)) from error
        self._told, self._changes = now, changes


class Asking:
    """The questions of one request. Each raises `UnknownServerError` if the authorizer fails: then the request does.

    `told`: whether a refusal is written into the log. It is not where the client did not ask for the resource: lists,
    and alternatives."""

    __slots__ = ("_authorization", "_context", "_request")

    def __init__(self, authorization: Authorization, context: RequestContext, request: str) -> None:
        self._authorization = authorization
        self._context = context
        self._request = request

    @property
    def context(self) -> RequestContext:
        return self._context

    def may(self, operation: AclOperation, kind: ResourceType, name: str, *, told: bool = True) -> bool:
        try:
            allowed = self._authorization.authorizer.authorize(self._context, operation, kind, (name,))[0]
        except PluginError as error:
            raise UnknownServerError(str(error)) from error
        if not allowed and told:
            self._authorization.audit.refused(self._context, self._request, operation, kind, name)
        return allowed

    def may_cluster(self, operation: AclOperation, *, told: bool = True) -> bool:
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME, told=told)

    def those(
        self, operation: AclOperation, kind: ResourceType, names: Iterable[str], *, told: bool = True
    ) -> frozenset[str]:
        """Those of `names` with which the client may do this."""
        asked = list(dict.fromkeys(names))
        if not asked:
            return frozenset()
        try:
            answers = self._authorization.authorizer.authorize(self._context, operation, kind, asked)
        except PluginError as error:
            raise UnknownServerError(str(error)) from error
        found = frozenset(name for name, allowed in zip(asked, answers, strict=True) if allowed)
        if told and len(found) < len(asked):
            for name in asked:
                if name not in found:
                    self._authorization.audit.refused(self._context, self._request, operation, kind, name)
        return found

    def any_of(self, operation: AclOperation, kind: ResourceType) -> bool:
        """Whether the client may do this with some resource of the kind."""
        try:
            return self._authorization.authorizer.authorize_by_resource_type(self._context, operation, kind)
        except PluginError as error:
            raise UnknownServerError(str(error)) from error

    def operations(self, kind: ResourceType, name: str) -> int:
        """What the client may do with the resource: a bit for each operation, by its number (KIP-430)."""
        return sum(1 << operation for operation in OPERATIONS[kind] if self.may(operation, kind, name, told=False))

    def cluster_operations(self) -> int:
        """The same of the cluster; 0 for a client that may not describe it."""
        if not self.may_cluster(AclOperation.DESCRIBE):
            return 0
        return self.operations(ResourceType.CLUSTER, CLUSTER_NAME)

    def topic_name(self, name: str | None, topic_id: UUID) -> str | None:
        """The name of a topic that a request names by one of both; None for an unknown id. The id counts where there
        are both, as it does for handlers."""
        return name or None if topic_id == NO_ID else self._authorization.topic_name(topic_id)

    def has_topic(self, name: str) -> bool:
        return self._authorization.has_topic(name)
