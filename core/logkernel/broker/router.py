"""Routes each request to what answers it: the core's handlers, a service that replaces or extends one, or a refusal.

A request's handler is found once, by the name of its class, and kept. Modules of handlers are imported when a request
of theirs first comes: they and their messages would be half of a start.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from logkernel.broker.handlers.context import HandlerContext, Handlers
from logkernel.broker.service_host.guard import ServiceFailed
from logkernel.broker.service_host.host import ServiceHost
from logkernel.contracts import Answer, Extension, RequestContext
from logkernel.errors import KafkaError, KafkaStorageError, PluginError, UnknownServerError

log = logging.getLogger("logkernel.broker")


def _produce() -> Handlers:
    from logkernel.broker.handlers import produce

    return produce.HANDLERS


def _fetch() -> Handlers:
    from logkernel.broker.handlers import fetch

    return fetch.HANDLERS


def _offsets() -> Handlers:
    from logkernel.broker.handlers import offsets

    return offsets.HANDLERS


def _delete_records() -> Handlers:
    from logkernel.broker.handlers import delete_records

    return delete_records.HANDLERS


def _metadata() -> Handlers:
    from logkernel.broker.handlers import metadata

    return metadata.HANDLERS


def _topics() -> Handlers:
    from logkernel.broker.handlers import topics

    return topics.HANDLERS


def _configs() -> Handlers:
    from logkernel.broker.handlers import configs

    return configs.HANDLERS


def _access() -> Handlers:
    from logkernel.broker.handlers import access

    return access.HANDLERS


def _cluster_admin() -> Handlers:
    from logkernel.broker.handlers import cluster_admin

    return cluster_admin.HANDLERS


def _logdirs() -> Handlers:
    from logkernel.broker.handlers import logdirs

    return logdirs.HANDLERS


def _producer_ids() -> Handlers:
    from logkernel.broker.handlers import producer_ids

    return producer_ids.HANDLERS


def _transactions() -> Handlers:
    from logkernel.broker.handlers import transactions

    return transactions.HANDLERS


def _tokens() -> Handlers:
    from logkernel.broker.handlers import tokens

    return tokens.HANDLERS


def _control() -> Handlers:
    from logkernel.broker.handlers import control

    return control.HANDLERS


def _controller() -> Handlers:
    from logkernel.broker.handlers import controller

    return controller.HANDLERS


CORE: Final[Mapping[str, Callable[[], Handlers]]] = {
    "ProduceRequest": _produce,
    "FetchRequest": _fetch,
    "ListOffsetsRequest": _offsets,
    "OffsetForLeaderEpochRequest": _offsets,
    "DeleteRecordsRequest": _delete_records,
    "MetadataRequest": _metadata,
    "DescribeClusterRequest": _metadata,
    "DescribeTopicPartitionsRequest": _metadata,
    "CreateTopicsRequest": _topics,
    "DeleteTopicsRequest": _topics,
    "CreatePartitionsRequest": _topics,
    "DescribeConfigsRequest": _configs,
    "AlterConfigsRequest": _configs,
    "IncrementalAlterConfigsRequest": _configs,
    "ListConfigResourcesRequest": _configs,
    "DescribeAclsRequest": _access,
    "CreateAclsRequest": _access,
    "DeleteAclsRequest": _access,
    "DescribeUserScramCredentialsRequest": _access,
    "AlterUserScramCredentialsRequest": _access,
    "DescribeClientQuotasRequest": _access,
    "AlterClientQuotasRequest": _access,
    "SaslHandshakeRequest": _access,
    "SaslAuthenticateRequest": _access,
    "CreateDelegationTokenRequest": _tokens,
    "RenewDelegationTokenRequest": _tokens,
    "ExpireDelegationTokenRequest": _tokens,
    "DescribeDelegationTokenRequest": _tokens,
    "ElectLeadersRequest": _cluster_admin,
    "AlterPartitionReassignmentsRequest": _cluster_admin,
    "ListPartitionReassignmentsRequest": _cluster_admin,
    "UpdateFeaturesRequest": _cluster_admin,
    "DescribeQuorumRequest": _cluster_admin,
    "UnregisterBrokerRequest": _cluster_admin,
    "DescribeLogDirsRequest": _logdirs,
    "AlterReplicaLogDirsRequest": _logdirs,
    "InitProducerIdRequest": _producer_ids,
    "WriteTxnMarkersRequest": _transactions,
    "DescribeProducersRequest": _transactions,
    "UpdateMetadataRequest": _control,
    "LeaderAndIsrRequest": _control,
    "StopReplicaRequest": _control,
    "AlterPartitionRequest": _controller,
    "AllocateProducerIdsRequest": _controller,
    "ControlledShutdownRequest": _controller,
}
"""Request class → the table that has the core's handler of it."""

COMMANDS: Final = frozenset(
    {
        "UpdateMetadataRequest", "LeaderAndIsrRequest", "StopReplicaRequest",
        "AlterPartitionRequest", "AllocateProducerIdsRequest", "ControlledShutdownRequest",
    }
)  # fmt: skip
"""Those of them by which brokers command one another: answered over listeners for brokers alone."""

FALLBACKS: Final = frozenset({"InitProducerIdRequest"})
"""Those of them that a service may take over: without a transaction coordinator, plain idempotent producers still get
their ids from the core."""

Bound = Callable[[Any, RequestContext, Answer], None]


class Router:
    """Finds the handler or service that answers a request. `turn` says when it runs."""

    def __init__(self, context: HandlerContext) -> None:
        self._context = context
        self._handlers: dict[str, Bound] = {}
        self._services: dict[str, ServiceHost] = {}
        self._extensions: dict[str, list[ServiceHost]] = {}

    def add(self, host: ServiceHost) -> None:
        """Let a service answer the requests that it declares. Raises `PluginError` if another one answers them."""
        for request in host.declared.requests:
            taken = self._services.get(request)
            if taken is not None or (request in CORE and request not in FALLBACKS):
                owner = f"service {taken.declared.name!r}" if taken is not None else "the broker itself"
                raise PluginError(
                    f"service {host.declared.name!r} wants to answer {request}, which {owner} answers;"
                    f" block one of them by plugins.block"
                )
            self._services[request] = host
        for request in host.declared.extends:
            self._extensions.setdefault(request, []).append(host)

    def serves(self) -> frozenset[str]:
        return frozenset(CORE) - COMMANDS | frozenset(self._services)

    def dispatch(self, request: Any, context: RequestContext, answer: Answer) -> None:
        """Run the request's handler, which answers exactly once, now or later.

        A handler that raises has refused the request as a whole: one that cannot be served is still answered.
        """
        name = type(request).__name__
        handler = self._handlers.get(name)
        try:
            if handler is None:
                handler = self._handlers[name] = self.find(name)
            handler(request, context, answer)
        except (KafkaError, OSError) as error:
            log.error("request refused: request=%s error=%s", name, error, exc_info=True)
            answer(self.refusal(name, request, error))
        except ServiceFailed as error:  # told of with the plugin's name
            answer(self.refusal(name, request, UnknownServerError(str(error))))
        except Exception:
            log.exception("request failed: request=%s", name)
            answer(self.refusal(name, request, UnknownServerError("the broker failed; its log says why")))

    def find(self, name: str) -> Bound:
        """What answers requests of the class `name`: behind a gate where there is an authorizer, and told once what a
        request names again. Raises `UnknownServerError` if nothing does."""
        from logkernel.requests.repeated import ONCE, asked_once

        found = self._guarded(name)
        return found if name not in ONCE else partial(_asked_once, partial(asked_once, name), found)

    def _guarded(self, name: str) -> Bound:
        found = self._found(name)
        authorization = self._context.authorization
        if authorization is None:
            return found
        from logkernel.broker.authorization.gate import Gate

        return Gate(authorization, name, found, self.refusal).handle

    def _found(self, name: str) -> Bound:
        host = self._services.get(name)
        if host is not None:
            extensions = self._extensions.get(name)
            return host.handle if extensions is None else partial(_extended, host, extensions)
        table = CORE.get(name)
        if table is None:
            raise UnknownServerError(f"nothing here answers {name}")
        return partial(table()[name], self._context)

    def refusal(self, name: str, request: Any, error: KafkaError | OSError) -> Any:
        """The response to a request, of the class `name`, that says that it failed as a whole."""
        refused = KafkaStorageError(str(error)) if isinstance(error, OSError) else error
        host = self._services.get(name)
        if host is not None:
            with contextlib.suppress(ServiceFailed):
                return host.refusal(request, refused.code)
        from logkernel.broker.handlers.refusals import refusal

        return refusal(request, refused)


def _asked_once(
    once: Callable[[Any], Any], behind: Bound, request: Any, context: RequestContext, answer: Answer
) -> None:
    behind(once(request), context, answer)


def _extended(
    owner: ServiceHost, extensions: Sequence[ServiceHost], request: Any, context: RequestContext, answer: Answer
) -> None:
    """Ask the owner, then each extension in turn; the last response is the answer."""
    if not extensions:
        owner.handle(request, context, answer)
        return
    *others, last = extensions

    def owned(response: Any) -> None:
        service = last.service
        assert isinstance(service, Extension), f"service {last.declared.name} declares `extends` but has no `extend`"
        last.handle(request, context, lambda own: answer(service.extend(request, response, own, context)))

    _extended(owner, others, request, context, owned)
