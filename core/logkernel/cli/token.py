"""`logkernel cluster token`: delegation tokens with the words of `kafka-delegation-tokens`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from logkernel.cli.connection import ConnectionOptions, connected, iso
from logkernel.cli.output import put_json, put_table
from logkernel.cli.parameters import with_options

if TYPE_CHECKING:
    from logkernel.client.admin.client import Admin
    from logkernel.client.admin.tokens import DelegationToken

COLUMNS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
"""As Kafka's tool prints them."""
_OPTIONS = (
    click.option("--create", is_flag=True, help="Create a token, and print it with its HMAC."),
    click.option("--renew", is_flag=True, help="Have a token last longer."),
    click.option("--expire", is_flag=True, help="Have a token expire."),
    click.option("--describe", is_flag=True, help="List tokens, with their HMACs."),
    click.option(
        "--owner-principal",
        "owners",
        multiple=True,
        help="With --create: the owner, e.g. User:ann, if it is another one. With --describe: only tokens of these.",
    ),
    click.option(
        "--renewer-principal", "renewers", multiple=True, help="With --create: who else may renew and expire the token."
    ),
    click.option(
        "--max-life-time-period",
        "max_lifetime_ms",
        type=int,
        default=-1,
        help="With --create: the token's longest life, in ms.  [default: the broker's]",
    ),
    click.option("--hmac", help="With --renew and --expire: the token's HMAC; - reads it from standard input."),
    click.option(
        "--renew-time-period",
        "renew_ms",
        type=int,
        default=-1,
        help="With --renew: for how long, in ms.  [default: the broker's]",
    ),
    click.option(
        "--expiry-time-period",
        "expiry_ms",
        type=int,
        default=-1,
        help="With --expire: in how many ms.  [default: now]",
    ),
)


@click.command
@with_options(_OPTIONS)
@connected
def token(connection: ConnectionOptions, as_json: bool, **given: Any) -> None:
    """Create, renew, expire or list delegation tokens, with the options of kafka-delegation-tokens.

    E.g. `token --create --renewer-principal User:ann`. Log in by SCRAM, with the id as the user, the HMAC as the
    password, and tokenauth="true" in sasl.jaas.config."""
    actions = [action for action in ("create", "renew", "expire", "describe") if given.pop(action)]
    if len(actions) != 1:
        raise click.UsageError("it is not clear what to do; give one of --create, --renew, --expire and --describe")
    (action,) = actions
    if action in ("renew", "expire"):
        given["hmac"] = _hmac(given["hmac"], action)
    with connection.admin(changes=action != "describe") as admin:
        if action == "describe":
            _list(admin.describe_delegation_token(given["owners"] or None), as_json)
            return
        if action == "create":
            _say(_create(admin, given), as_json)
            return
        if action == "renew":
            expires_ms = admin.renew_delegation_token(given["hmac"], renew_period_ms=given["renew_ms"])
        else:
            expires_ms = admin.expire_delegation_token(given["hmac"], expiry_period_ms=given["expiry_ms"])
    if as_json:
        put_json({"expires_ms": expires_ms})
    else:
        click.echo(f"The token expires at {iso(expires_ms)}.")


def _hmac(given: str | None, action: str) -> str:
    found = sys.stdin.readline().strip() if given == "-" else given
    if not found:
        raise click.UsageError(f"--{action} needs the token that is meant; give its --hmac")
    return found


def _create(admin: Admin, given: dict[str, Any]) -> DelegationToken:
    owners = given["owners"]
    if len(owners) > 1:
        raise click.UsageError("a token has one owner; give --owner-principal once")
    owner = owners[0] if owners else None
    return admin.create_delegation_token(
        owner=owner, renewers=given["renewers"], max_lifetime_ms=given["max_lifetime_ms"]
    )


def _say(made: DelegationToken, as_json: bool) -> None:
    """Line by line: a terminal's width does not cut what is to be copied."""
    if as_json:
        put_json(_row(made))
        return
    for name, value in zip(COLUMNS, _cells(made), strict=True):
        click.echo(f"{name}: {value}")


def _list(rows: tuple[DelegationToken, ...], as_json: bool) -> None:
    if not as_json:
        put_table(COLUMNS, [_cells(row) for row in rows])
        return
    for row in rows:
        put_json(_row(row))


def _cells(row: DelegationToken) -> tuple[str, ...]:
    times = (iso(row.issued_ms), iso(row.expires_ms), iso(row.max_ms))
    return row.token_id, row.password, row.owner, row.requester, ",".join(row.renewers), *times


def _row(row: DelegationToken) -> dict[str, Any]:
    return {
        "token_id": row.token_id, "hmac": row.password, "owner": row.owner, "requester": row.requester,
        "renewers": list(row.renewers), "issued_ms": row.issued_ms, "expires_ms": row.expires_ms, "max_ms": row.max_ms,
    }  # fmt: skip
