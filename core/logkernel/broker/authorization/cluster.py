"""What needs one operation on the cluster."""

from __future__ import annotations

from functools import partial

from logkernel.broker.authorization.asking import Asking
from logkernel.broker.authorization.outcome import Answered, Outcome, Refused
from logkernel.errors import ClusterAuthorizationFailed
from logkernel.requests import access
from logkernel.vocabulary import AclOperation


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
