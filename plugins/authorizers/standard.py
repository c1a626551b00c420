"""Authorizer `standard`: the rules of Kafka's StandardAuthorizer.

    authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
    super.users=User:admin;User:ann
    allow.everyone.if.no.acl.found=false

A client may do what a rule allows and none denies, on a resource that a rule names: by its name, by a prefix of it, or
by `*`. Who may read, write, delete or alter may describe; who may alter configs may describe them. A super user may do
everything. Where no rule names a resource, `allow.everyone.if.no.acl.found` decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from logkernel.config.definitions import Setting
from logkernel.config.values import BOOLEAN, OwnType
from logkernel.contracts import Authorizer, Settings
from logkernel.hookspecs import hookimpl

SUPER_USERS: Final = "super.users"
IF_NO_ACL: Final = "allow.everyone.if.no.acl.found"


def super_users(text: str) -> tuple[str, ...]:
    """The principals of `super.users`. Raises ValueError for what is none."""
    found = tuple(part.strip() for part in text.split(";") if part.strip())
    for principal in found:
        kind, colon, name = principal.partition(":")
        if not (kind and colon and name):
            raise ValueError(f"{principal!r} is no principal; write User:NAME, and ; between two")
        if ",User:" in name.replace(" ", ""):
            raise ValueError(f"{principal!r} would be one principal; write ; between two")
    return found


@hookimpl
def logkernel_authorizer(name: str, settings: Settings) -> Authorizer | None:
    if name != "standard":
        return None
    from .rules import Standard

    return Standard(settings.get(SUPER_USERS, ()), settings.get(IF_NO_ACL, False))


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("authorizer", "standard")]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    return [
        Setting(
            SUPER_USERS, OwnType("list of principals", super_users), "", None,
            "With authorizer.class.name, principals that may do everything, whatever the ACLs say: User:NAME, with ;"
            " between two.",
        ),
        Setting(
            IF_NO_ACL, BOOLEAN, "false", None,
            "With authorizer.class.name, whether everybody may use a resource that no ACL names.",
        ),
    ]  # fmt: skip
