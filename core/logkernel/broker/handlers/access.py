"""Who may do what, and how much: rules, users and quotas are kept and described. An authorizer enforces the rules
(`broker/authorization`), and `broker/quotas` the quotas. What nothing enforces, the log says of every change, and so
does each answer on users that is no error. SASL needs a listener that authenticates; its gate answers there."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.contracts import Answer, RequestContext
from logkernel.controller import acls, credentials, quotas
from logkernel.controller.effects import ControllerResult
from logkernel.errors import IllegalSaslState
from logkernel.requests.access import (
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeUserScramCredentialsRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

log = logging.getLogger("logkernel.access")


ACLS: Final = "ACLs are kept, NOT enforced: authorizer.class.name is empty, so everybody may do everything"
USERS: Final = "SCRAM users are kept, NOT enforced: no listener of this broker asks who a client is"


def _keep(ctx: HandlerContext, result: ControllerResult, note: str, context: RequestContext) -> Any:
    """Carry out a change; `note` says what is not enforced, and goes into the log."""
    if result.changes and note:
        count, client, host = len(result.changes), context.client_id, context.client_host
        log.warning("%s; changes=%d client_id=%r host=%s", note, count, client, host)
    return ctx.commit(result)


def _noted(rows: Iterable[Any], note: str) -> None:
    """Say it in those that succeeded: clients look at the message only where there is an error."""
    for row in rows:
        if note and not row.error_code:
            row.error_message = note


def _acls_note(ctx: HandlerContext) -> str:
    return ACLS if ctx.authorization is None else ""


def _users_note(ctx: HandlerContext) -> str:
    config = ctx.runtime.config
    asks = any(config.security_protocol(listener.name).startswith("SASL_") for listener in config.listeners)
    return "" if asks else USERS


def describe_acls(ctx: HandlerContext, request: DescribeAclsRequest, context: RequestContext, answer: Answer) -> None:
    response = acls.describe_acls(request, ctx.metadata.image)
    _noted([response], _acls_note(ctx))
    answer(response)


def create_acls(ctx: HandlerContext, request: CreateAclsRequest, context: RequestContext, answer: Answer) -> None:
    response = _keep(ctx, acls.create_acls(request, ctx.metadata.image), _acls_note(ctx), context)
    _noted(response.results, _acls_note(ctx))
    answer(response)


def delete_acls(ctx: HandlerContext, request: DeleteAclsRequest, context: RequestContext, answer: Answer) -> None:
    response = _keep(ctx, acls.delete_acls(request, ctx.metadata.image), _acls_note(ctx), context)
    _noted(response.filter_results, _acls_note(ctx))
    answer(response)


def describe_user_scram_credentials(
    ctx: HandlerContext, request: DescribeUserScramCredentialsRequest, context: RequestContext, answer: Answer
) -> None:
    response = credentials.describe(request, ctx.metadata.image)
    _noted([response, *response.results], _users_note(ctx))
    answer(response)


def alter_user_scram_credentials(
    ctx: HandlerContext, request: AlterUserScramCredentialsRequest, context: RequestContext, answer: Answer
) -> None:
    note = _users_note(ctx)
    response = _keep(ctx, credentials.alter(request, ctx.metadata.image), note, context)
    _noted(response.results, note)
    answer(response)


def describe_client_quotas(
    ctx: HandlerContext, request: DescribeClientQuotasRequest, context: RequestContext, answer: Answer
) -> None:
    answer(quotas.describe(request, ctx.metadata.image))


def alter_client_quotas(
    ctx: HandlerContext, request: AlterClientQuotasRequest, context: RequestContext, answer: Answer
) -> None:
    answer(ctx.commit(quotas.alter(request, ctx.metadata.image)))


# ---------------------------------------------------------------- refused, as Kafka refuses them where nobody logs in


def sasl_handshake(ctx: HandlerContext, request: SaslHandshakeRequest, context: RequestContext, answer: Answer) -> None:
    answer(SaslHandshakeResponse(error_code=IllegalSaslState.code))


def sasl_authenticate(
    ctx: HandlerContext, request: SaslAuthenticateRequest, context: RequestContext, answer: Answer
) -> None:
    message = "no authentication has begun; send SaslHandshake first, to a listener that asks who a client is"
    answer(SaslAuthenticateResponse(error_code=IllegalSaslState.code, error_message=message))


HANDLERS: Handlers = dict(
    [
        on(DescribeAclsRequest, describe_acls),
        on(CreateAclsRequest, create_acls),
        on(DeleteAclsRequest, delete_acls),
        on(DescribeUserScramCredentialsRequest, describe_user_scram_credentials),
        on(AlterUserScramCredentialsRequest, alter_user_scram_credentials),
        on(DescribeClientQuotasRequest, describe_client_quotas),
        on(AlterClientQuotasRequest, alter_client_quotas),
        on(SaslHandshakeRequest, sasl_handshake),
        on(SaslAuthenticateRequest, sasl_authenticate),
    ]
)
