"""An authorizer says what a client may do."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

from logkernel.contracts.common import RequestContext
from logkernel.vocabulary import Acl, AclOperation, ResourceType


@runtime_checkable
class Authorizer(Protocol):
    """Says what a client may do. One object for each broker, called on the broker's thread: what it takes, all clients
    wait for, so it answers from memory.

    It is asked anew for every request, and for each resource that the request names. What it raises, or answers other
    than with bools, refuses the request: a rule that nobody can check is not passed by."""

    def acls_changed(self, added: Collection[Acl], removed: Collection[Acl]) -> None:
        """ACLs of the cluster were created and deleted; called before the request after the change is judged. The first
        call, before any request, has all that there are. An ACL may be added that it has, or removed that it has not:
        where a call fails, the next one tells the same again. An authorizer with rules of its own may ignore them."""
        ...

    def authorize(
        self, client: RequestContext, operation: AclOperation, resource_type: ResourceType, names: Sequence[str]
    ) -> Sequence[bool]:
        """Return for each resource of `names` whether the client may do this with it, in their order.

        Who it is says `client.principal`, where it comes from `client.client_host`. Names are what clients send: there
        may be no such resource. The cluster is called `kafka-cluster`. Depend on the arguments, the ACLs and rules of
        your own only."""
        ...

    def authorize_by_resource_type(
        self, client: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Return whether the client may do this with any resource of the type (KIP-679): a producer that may write to
        some topic may be idempotent."""
        ...
