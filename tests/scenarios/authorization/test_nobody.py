"""A broker whose authorizer lets nobody add an ACL says so when it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from logkernel.broker.build import build
from logkernel.contracts import RequestContext
from logkernel.requests import access
from logkernel.vocabulary import AclOperation, Principal, ResourceType

NOBODY = "super.users names no user, and no ACL that is known lets anybody ALTER the cluster"
Start = Callable[..., Any]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [row.getMessage() for row in caplog.records if "super.users" in row.getMessage()]


def test_an_authorizer_without_super_users_is_warned_of(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """It refused everything, and the ACL that it advised as well."""
    start("super.users=")
    (warning,) = warnings(caplog)
    assert warning.startswith(NOBODY)
    assert warning.endswith("set super.users=User:NAME")


def test_a_super_user_that_no_client_can_be_is_warned_of(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    start("super.users=user:admin")
    wrong, nobody = warnings(caplog)
    assert wrong == "super.users: user:admin is nobody, as a principal is User:NAME; write User:admin"
    assert nobody.startswith(NOBODY)
    caplog.clear()
    start("super.users=User:ann;user:admin")
    assert warnings(caplog) == [wrong]


@pytest.mark.parametrize("settings", [(), ("super.users=", "allow.everyone.if.no.acl.found=true")])
def test_there_is_no_warning_where_somebody_may_add_acls(
    settings: tuple[str, ...], start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    start(*settings)
    assert warnings(caplog) == []


@pytest.mark.parametrize(("operation", "warned"), [("ALL", False), ("ALTER", False), ("DESCRIBE", True)])
def test_there_is_none_where_an_acl_lets_somebody_alter_the_cluster(
    operation: str, warned: bool, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    given = ["authorizer.class.name=standard", f"log.dirs={tmp_path}"]
    first = build(None, [*given, "super.users=User:root"])
    first.start()
    add(first, AclOperation[operation])
    first.close()
    again = build(None, given)
    again.start()
    again.close()
    assert bool(warnings(caplog)) is warned


def add(broker: Any, operation: AclOperation) -> None:
    rule = access.AclCreation(int(ResourceType.CLUSTER), "kafka-cluster", 3, "User:ann", "*", int(operation), 3)
    found: list[Any] = []
    broker.submit(access.CreateAclsRequest([rule]), RequestContext(principal=Principal("User", "root")), found.append)
    assert found[0].results[0].error_code == 0
