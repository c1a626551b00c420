"""What needs one operation on the cluster, and delegation tokens."""

from __future__ import annotations

from functools import partial

from logkernel.broker.authorization.asking import Asking
from logkernel.broker.authorization.outcome import Answered, Outcome, Part, Refused
from logkernel.errors import ClusterAuthorizationFailed, DelegationTokenAuthorizationFailed
from logkernel.requests import access
from logkernel.vocabulary import ANONYMOUS, AclOperation, Principal, ResourceType


def _needs(operation: AclOperation, asking: Asking, request: object) -> Outcome:
    return None if asking.may_cluster(operation) else Refused(ClusterAuthorizationFailed)


describe = partial(_needs, AclOperation.DESCRIBE)
alter = partial(_needs, AclOperation.ALTER)
describe_configs = partial(_needs, AclOperation.DESCRIBE_CONFIGS)
alter_configs = partial(_needs, AclOperation.ALTER_CONFIGS)
act = partial(_needs, AclOperation.CLUSTER_ACTION)


def describe_users(asking: Asking, request: access.DescribeUserScramCredentialsRequest) -> Outcome:
    """As Kafka, with a row for each user that was named, which does not name it."""
    if asking.may_cluster(AclOperation.DESCRIBE):
        return None
    code, text = ClusterAuthorizationFailed.code, ClusterAuthorizationFailed.__doc__
    rows = [access.DescribeUserScramCredentialsResult("", code, text) for _ in request.users or ()]
    return Answered(access.DescribeUserScramCredentialsResponse(0, code, text, rows))


def unguarded(asking: Asking, request: object) -> Outcome:
    """Nothing is needed, or the handler asks."""
    return None


# ---------------------------------------------------------------- delegation tokens


def create_delegation_token(asking: Asking, request: access.CreateDelegationTokenRequest) -> Outcome:
    """For another owner, it needs CREATE_TOKENS on that user (KIP-373)."""
    who = asking.context.principal
    if who == ANONYMOUS or who.by_token:
        return None  # the handler refuses it, whoever the owner is
    owner = Principal(request.owner_principal_type or who.kind, request.owner_principal_name or who.name)
    if str(owner) == str(who) or asking.may(AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner)):
        return None
    return Refused(DelegationTokenAuthorizationFailed)


def describe_delegation_token(asking: Asking, request: access.DescribeDelegationTokenRequest) -> Outcome:
    """Owners and renewers see their tokens; others those that they may describe, by token or by owner."""
    who = (asking.context.principal.kind, asking.context.principal.name)

    def is_seen(token: access.DescribedDelegationToken) -> bool:
        owner = (token.principal_type, token.principal_name)
        if who == owner or who in [(one.principal_type, one.principal_name) for one in token.renewers]:
            return True
        if asking.may(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id, told=False):
            return True
        return asking.may(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, ":".join(owner), told=False)

    def amend(response: access.DescribeDelegationTokenResponse) -> access.DescribeDelegationTokenResponse:
        response.tokens = [token for token in response.tokens if is_seen(token)]
        return response

    return Part(request, amend)
