"""Who may do what, and how much: rules, users and quotas are kept and described. Nothing here enforces them, and
every change of them is logged with that warning. SASL and delegation tokens need a listener that authenticates."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logkernel.contracts import Answer, RequestContext
from logkernel.controller import acls, credentials, quotas
from logkernel.controller.effects import Outcome
from logkernel.errors import DelegationTokenRequestNotAllowed, IllegalSaslState
from logkernel.requests.access import (
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribeUserScramCredentialsRequest,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker

log = logging.getLogger("logkernel.access")


def _keep(broker: Broker, outcome: Outcome, what: str, effect: str, context: RequestContext) -> object:
    """Carry out a change of what is not enforced, and say so."""
    if outcome.changes:
        log.warning(
            "%s kept, NOT enforced: %s; changes=%d client_id=%s host=%s",
            what, effect, len(outcome.changes), context.client_id, context.client_host,
        )  # fmt: skip
    return broker.admin.carry_out(outcome)


def describe_acls(broker: Broker, request: DescribeAclsRequest, context: RequestContext, answer: Answer) -> None:
    answer(acls.describe_acls(request, broker.admin.image))


def create_acls(broker: Broker, request: CreateAclsRequest, context: RequestContext, answer: Answer) -> None:
    outcome = acls.create_acls(request, broker.admin.image)
    answer(_keep(broker, outcome, "ACLs", "this release refuses nobody anything", context))


def delete_acls(broker: Broker, request: DeleteAclsRequest, context: RequestContext, answer: Answer) -> None:
    outcome = acls.delete_acls(request, broker.admin.image)
    answer(_keep(broker, outcome, "ACLs", "this release refuses nobody anything", context))


def describe_user_scram_credentials(
    broker: Broker, request: DescribeUserScramCredentialsRequest, context: RequestContext, answer: Answer
) -> None:
    answer(credentials.describe(request, broker.admin.image))


def alter_user_scram_credentials(
    broker: Broker, request: AlterUserScramCredentialsRequest, context: RequestContext, answer: Answer
) -> None:
    outcome = credentials.alter(request, broker.admin.image)
    answer(_keep(broker, outcome, "SCRAM users", "no listener of this release asks who a client is", context))


def describe_client_quotas(
    broker: Broker, request: DescribeClientQuotasRequest, context: RequestContext, answer: Answer
) -> None:
    answer(quotas.describe(request, broker.admin.image))


def alter_client_quotas(
    broker: Broker, request: AlterClientQuotasRequest, context: RequestContext, answer: Answer
) -> None:
    outcome = quotas.alter(request, broker.admin.image)
    answer(_keep(broker, outcome, "client quotas", "this release slows nobody down", context))


# ---------------------------------------------------------------- refused, as Kafka refuses them on PLAINTEXT


def sasl_handshake(broker: Broker, request: SaslHandshakeRequest, context: RequestContext, answer: Answer) -> None:
    answer(SaslHandshakeResponse(error_code=IllegalSaslState.code))


def sasl_authenticate(
    broker: Broker, request: SaslAuthenticateRequest, context: RequestContext, answer: Answer
) -> None:
    message = "this listener does not authenticate; set security.protocol=PLAINTEXT"
    answer(SaslAuthenticateResponse(error_code=IllegalSaslState.code, error_message=message))


def create_delegation_token(
    broker: Broker, request: CreateDelegationTokenRequest, context: RequestContext, answer: Answer
) -> None:
    answer(CreateDelegationTokenResponse(error_code=DelegationTokenRequestNotAllowed.code))


def renew_delegation_token(
    broker: Broker, request: RenewDelegationTokenRequest, context: RequestContext, answer: Answer
) -> None:
    answer(RenewDelegationTokenResponse(error_code=DelegationTokenRequestNotAllowed.code))


def expire_delegation_token(
    broker: Broker, request: ExpireDelegationTokenRequest, context: RequestContext, answer: Answer
) -> None:
    answer(ExpireDelegationTokenResponse(error_code=DelegationTokenRequestNotAllowed.code))


def describe_delegation_token(
    broker: Broker, request: DescribeDelegationTokenRequest, context: RequestContext, answer: Answer
) -> None:
    answer(DescribeDelegationTokenResponse(error_code=DelegationTokenRequestNotAllowed.code))
