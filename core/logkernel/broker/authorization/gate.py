"""Stands before what answers one kind of request, where the broker has an authorizer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from logkernel.broker.authorization.asking import Authorization
from logkernel.broker.authorization.outcome import Answered, Part
from logkernel.broker.authorization.table import BY_BROKERS, guard_of
from logkernel.contracts import Answer, RequestContext
from logkernel.errors import KafkaError, UnknownServerError
from logkernel.vocabulary import AclOperation

Bound = Callable[[Any, RequestContext, Answer], None]


class Gate:
    """Asks the request's guard, and does what it decides."""

    def __init__(
        self, authorization: Authorization, name: str, behind: Bound, refusal: Callable[[str, Any, KafkaError], Any]
    ) -> None:
        """`behind` answers requests of the class `name`, `refusal` makes the response of one that failed."""
        self._authorization = authorization
        self._name = name
        self._behind = behind
        self._refusal = refusal
        self._guard = guard_of(name)

    def handle(self, request: Any, context: RequestContext, answer: Answer) -> None:
        """What the broker and its services ask of themselves passes, and so does what a broker asks another for its
        clients (`BY_BROKERS`): over an inter-broker listener, by a principal that may act for the cluster. Where the
        authorizer fails, the request is refused."""
        if context.internal:
            self._behind(request, context, answer)
            return
        try:
            asking = self._authorization.asking(context, self._name)
            by_broker = context.commands and self._name in BY_BROKERS
            acts = by_broker and asking.may_cluster(AclOperation.CLUSTER_ACTION, told=False)
            outcome = None if acts else self._guard(asking, request)
        except UnknownServerError as error:
            answer(self._refusal(self._name, request, error))
            return
        if outcome is None:
            self._behind(request, context, answer)
        elif isinstance(outcome, Part):
            self._behind(outcome.request, context, partial(self._amended, outcome.amend, request, answer))
        elif isinstance(outcome, Answered):
            answer(outcome.response)
        else:
            answer(self._refusal(self._name, request, outcome.error(outcome.error.__doc__ or "")))

    def _amended(self, amend: Callable[[Any], Any], request: Any, answer: Answer, response: Any) -> None:
        try:
            response = amend(response)
        except UnknownServerError as error:
            response = self._refusal(self._name, request, error)
        answer(response)
