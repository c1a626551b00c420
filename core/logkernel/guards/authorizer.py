"""The guard of `contracts.Authorizer`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from time import monotonic
from typing import Any

from logkernel.contracts import Authorizer, RequestContext
from logkernel.guards.guard import TimedGuard
from logkernel.plugin_faults import SLOW_MS
from logkernel.vocabulary import Acl, AclOperation, ResourceType

REQUEST_REFUSED = "the request is refused"


class GuardedAuthorizer(TimedGuard[Authorizer]):
    """`contracts.Authorizer`. What it fails at is refused."""

    __slots__ = ()
    kind = "authorizer"

    def acls_changed(self, added: Collection[Acl], removed: Collection[Acl]) -> None:
        consequence = "every request is refused until it knows the ACLs"
        self._call(consequence, lambda: self._plugin.acls_changed(added, removed))

    def authorize(
        self, client: RequestContext, operation: AclOperation, resource_type: ResourceType, names: Sequence[str]
    ) -> Sequence[bool]:
        """As `_call`, which would cost as much again: this is asked for each request."""
        running, begun_s, told_ms = self._faults.running, monotonic(), self._faults.told_ms
        if self._faults.budget.resting:
            self._check_budget(REQUEST_REFUSED, begun_s)
        outer = running.begin(self._named, self._place)
        try:
            answer: Any = self._plugin.authorize(client, operation, resource_type, names)
        except Exception as error:
            failed = self._failed(REQUEST_REFUSED, error)
            raise failed from (None if failed is error else error)
        finally:
            running.end(outer)
            now_s = monotonic()
            if (now_s - begun_s) * 1000 > SLOW_MS:
                self._was_slow(REQUEST_REFUSED, begun_s, now_s, told_ms)
        if isinstance(answer, list | tuple) and len(answer) == len(names):
            for allowed in answer:
                if allowed is not True and allowed is not False:
                    break
            else:
                return answer
        remedy = f"return a list with True or False for each of the {len(names)} names"
        raise self._failed(REQUEST_REFUSED, self._wrong(answer, remedy))

    def authorize_by_resource_type(
        self, client: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        def decide() -> bool:
            answer: Any = self._plugin.authorize_by_resource_type(client, operation, resource_type)
            if answer is not True and answer is not False:
                raise self._wrong(answer, "return True or False")
            return bool(answer)

        return self._call(REQUEST_REFUSED, decide)
