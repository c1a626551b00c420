"""Delegation tokens (KIP-48, KIP-373): who may ask for them, in the order in which Apache Kafka looks."""

from __future__ import annotations

import logging
from collections.abc import Callable

from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.contracts import Answer, RequestContext
from logkernel.controller import tokens
from logkernel.controller.token import Token, Who, text
from logkernel.errors import (
    DelegationTokenAuthDisabled,
    DelegationTokenAuthorizationFailed,
    DelegationTokenRequestNotAllowed,
    KafkaError,
)
from logkernel.requests.access import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from logkernel.vocabulary import ANONYMOUS, AclOperation, ResourceType

log = logging.getLogger("logkernel.access")


def _refusal(ctx: HandlerContext, context: RequestContext) -> type[KafkaError] | None:
    """Why this client cannot ask: nobody knows who it is, or it is known by a token only."""
    who = context.principal
    asks = ctx.runtime.config.security_protocol(context.listener).startswith("SASL_")
    return DelegationTokenRequestNotAllowed if who.by_token or (who == ANONYMOUS and not asks) else None


def _disabled(ctx: HandlerContext) -> type[KafkaError] | None:
    return None if ctx.tokens.is_enabled else DelegationTokenAuthDisabled


def _who(context: RequestContext) -> Who:
    return context.principal.kind, context.principal.name


def create_delegation_token(
    ctx: HandlerContext, request: CreateDelegationTokenRequest, context: RequestContext, answer: Answer
) -> None:
    requester = _who(context)
    owner = tokens.owner_of(request, requester)
    error = (
        _refusal(ctx, context)
        or (None if owner == requester or _may_create_for(ctx, context, owner) else DelegationTokenAuthorizationFailed)
        or tokens.check_principals(request)
        or _disabled(ctx)
    )
    if error is not None:
        answer(tokens.refused(error, owner, requester))
        return
    made, now_ms = ctx.tokens.new_id(), ctx.runtime.clock.wall_ms()
    result = tokens.create(request, requester, made, ctx.tokens.hmac(made), ctx.tokens.limits, now_ms)
    answer(ctx.commit(result))
    log.info("delegation token created: id=%s owner=%r requester=%r", made, text(owner), text(requester))


def _may_create_for(ctx: HandlerContext, context: RequestContext, owner: Who) -> bool:
    asking = ctx.asking(context, CreateDelegationTokenRequest.__name__)
    return asking is None or asking.may(AclOperation.CREATE_TOKENS, ResourceType.USER, text(owner))


def renew_delegation_token(
    ctx: HandlerContext, request: RenewDelegationTokenRequest, context: RequestContext, answer: Answer
) -> None:
    error = _refusal(ctx, context) or _disabled(ctx)
    if error is not None:
        answer(RenewDelegationTokenResponse(error.code, tokens.NO_TIME))
        return
    token, now_ms = ctx.tokens.by_hmac(request.hmac), ctx.runtime.clock.wall_ms()
    answer(ctx.commit(tokens.renew(request, token, _who(context), ctx.tokens.limits, now_ms)))


def expire_delegation_token(
    ctx: HandlerContext, request: ExpireDelegationTokenRequest, context: RequestContext, answer: Answer
) -> None:
    error = _refusal(ctx, context) or _disabled(ctx)
    if error is not None:
        answer(ExpireDelegationTokenResponse(error.code, tokens.NO_TIME))
        return
    token, now_ms = ctx.tokens.by_hmac(request.hmac), ctx.runtime.clock.wall_ms()
    answer(ctx.commit(tokens.expire(request, token, _who(context), now_ms)))


def describe_delegation_token(
    ctx: HandlerContext, request: DescribeDelegationTokenRequest, context: RequestContext, answer: Answer
) -> None:
    error = _refusal(ctx, context) or _disabled(ctx)
    if error is not None:
        answer(DescribeDelegationTokenResponse(error.code))
        return
    owners = None
    if request.owners is not None:
        owners = {(one.principal_type, one.principal_name) for one in request.owners}
    is_seen = _seen(ctx, context)
    rows = [
        tokens.described(token, ctx.tokens.hmac)
        for token in ctx.tokens.all()
        if (owners is None or not owners.isdisjoint(token.concerned)) and is_seen(token)
    ]
    answer(DescribeDelegationTokenResponse(0, rows))


def _seen(ctx: HandlerContext, context: RequestContext) -> Callable[[Token], bool]:
    """Owners, requesters and renewers see their tokens; others those that they may describe, by token or owner."""
    who, asking = _who(context), ctx.asking(context, DescribeDelegationTokenRequest.__name__)

    def is_seen(token: Token) -> bool:
        return (
            asking is None
            or who in token.concerned
            or asking.may(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.id, told=False)
            or asking.may(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, text(token.owner), told=False)
        )

    return is_seen


HANDLERS: Handlers = dict(
    [
        on(CreateDelegationTokenRequest, create_delegation_token),
        on(RenewDelegationTokenRequest, renew_delegation_token),
        on(ExpireDelegationTokenRequest, expire_delegation_token),
        on(DescribeDelegationTokenRequest, describe_delegation_token),
    ]
)
