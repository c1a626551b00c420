"""`logkernel cluster acls|quotas|users`: who may do what, how fast, with which password."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from logkernel.cli.connection import ConnectionOptions, connected, pairs
from logkernel.cli.output import put_json, put_table
from logkernel.errors import KafkaError

if TYPE_CHECKING:
    from logkernel.client.admin.access import AclBinding, AclFilter
    from logkernel.client.admin.client import Admin

RESOURCES = ("topic", "group", "cluster", "transactional-id", "delegation-token", "user")
PATTERNS = ("literal", "prefixed")
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


UNENFORCED_ACLS = "this broker keeps ACLs but does not enforce them yet: it refuses no request"
UNENFORCED_QUOTAS = "this broker keeps quotas but does not enforce them yet: it slows no client down"
UNENFORCED_USERS = "this broker keeps users but does not enforce them yet: it asks no client to log in"
OURS = "logkernel.sendfile"
"""A broker that has this setting is logkernel's."""


def _warn(admin: Admin, text: str) -> None:
    """Say on stderr that a broker of ours does not act by what the command is about; Apache Kafka's does."""
    try:
        brokers = admin.describe_cluster().brokers
        (entries,) = admin.describe_configs(("broker", str(brokers[0].id)), names=[OURS]).values()
    except (KafkaError, IndexError):
        return
    if OURS in entries:
        click.echo(f"logkernel: warning: {text}", err=True)


# ---------------------------------------------------------------- acls


@click.group
def acls() -> None:
    """Access rules: list, add, remove. Brokers of logkernel keep them, and refuse nobody anything by them yet."""


def _filters(command: Any) -> Any:
    for option in (
        click.option("--host", help="Only of this host."),
        click.option("--permission", type=click.Choice(["allow", "deny"]), help="Only such."),
        click.option("--operation", help="Only this operation, e.g. read."),
        click.option("--principal", help="Only of this principal, e.g. User:ann."),
        click.option("--pattern", type=click.Choice([*PATTERNS, "match"]), help="match: all that concern the name."),
        click.option("--name", help="Only of the resource of this name."),
        click.option("--resource", type=click.Choice(RESOURCES), help="Only of this kind of resource."),
    ):
        command = option(command)
    return command


def _filter(given: dict[str, Any]) -> AclFilter:
    from logkernel.client.admin.access import AclFilter

    return AclFilter(**{name: value for name, value in given.items() if value is not None})


def _put_acls(rows: list[AclBinding], as_json: bool) -> None:
    names = ("principal", "host", "permission", "operation", "resource", "name", "pattern")
    if as_json:
        for row in rows:
            put_json({name: getattr(row, name) for name in names})
    else:
        columns = ("PRINCIPAL", "HOST", "PERMISSION", "OPERATION", "RESOURCE", "NAME", "PATTERN")
        put_table(columns, [tuple(getattr(row, name) for name in names) for row in rows])


@acls.command("list")
@_filters
@connected
def list_acls(connection: ConnectionOptions, as_json: bool, **given: Any) -> None:
    """List the rules that all filters let pass."""
    with connection.admin() as admin:
        _warn(admin, UNENFORCED_ACLS)
        found = admin.describe_acls(_filter(given))
    _put_acls(found, as_json)


@acls.command("add")
@click.argument("principal")
@click.argument("operation")
@click.argument("resource", type=click.Choice(RESOURCES))
@click.argument("name")
@click.option("--deny", is_flag=True, help="Deny it, rather than allow it.")
@click.option("--host", default="*", show_default=True, help="From this host.")
@click.option(
    "--pattern", type=click.Choice(PATTERNS), default="literal", show_default=True, help="How NAME is to be read."
)
@connected
def add_acl(
    principal: str, operation: str, resource: str, name: str, deny: bool, host: str, pattern: str,
    connection: ConnectionOptions, as_json: bool,
) -> None:  # fmt: skip
    """Allow PRINCIPAL an OPERATION on a RESOURCE: `acls add User:ann read topic orders`."""
    from logkernel.client.admin.access import AclBinding

    rule = AclBinding(resource, name, principal, operation, "deny" if deny else "allow", host, pattern)
    with connection.admin() as admin:
        _warn(admin, UNENFORCED_ACLS)
        admin.create_acls(rule)
    _put_acls([rule], as_json)


@acls.command("remove")
@_filters
@click.option("--all", "everything", is_flag=True, help="All rules.")
@connected
def remove_acls(everything: bool, connection: ConnectionOptions, as_json: bool, **given: Any) -> None:
    """Remove the rules that all filters let pass, and print them."""
    if everything == any(value is not None for value in given.values()):
        raise click.UsageError("say which by filters, or --all")
    with connection.admin() as admin:
        _warn(admin, UNENFORCED_ACLS)
        found = admin.delete_acls(_filter(given))
    _put_acls(found, as_json)


# ---------------------------------------------------------------- quotas


@click.group
def quotas() -> None:
    """Client quotas: list, set, unset. Brokers of logkernel keep them, and slow nobody down by them yet."""


_whose = (
    click.option("--ip", help="An address; default: all that have no own."),
    click.option("--client-id", "client_id", help="A client id; default: all that have no own."),
    click.option("--user", help="A user; default: all that have no own."),
)


def _entity_options(command: Any) -> Any:
    for option in _whose:
        command = option(command)
    return command


def _entity(given: dict[str, str | None]) -> dict[str, str | None]:
    return {
        name.replace("_", "-"): None if value == "default" else value
        for name, value in given.items()
        if value is not None
    }


@quotas.command("list")
@_entity_options
@connected
def list_quotas(connection: ConnectionOptions, as_json: bool, **given: Any) -> None:
    """List quotas, of all or of those named; a name may be *."""
    with connection.admin() as admin:
        _warn(admin, UNENFORCED_QUOTAS)
        found = admin.describe_client_quotas(_entity(given))
    if as_json:
        for parts, values in found.items():
            put_json({"entity": dict(parts), "quotas": values})
        return
    rows = [
        (", ".join(f"{kind}={'default' if name is None else name}" for kind, name in parts), key, f"{value:g}")
        for parts, values in found.items()
        for key, value in sorted(values.items())
    ]
    put_table(("ENTITY", "QUOTA", "VALUE"), rows)


def _alter(
    connection: ConnectionOptions, given: dict[str, Any], changes: dict[str, float | None], as_json: bool
) -> None:
    from logkernel.client.admin.access import entity

    parts = _entity(given)
    if not parts:
        raise click.UsageError("say whose: --user, --client-id, --ip")
    with connection.admin() as admin:
        _warn(admin, UNENFORCED_QUOTAS)
        admin.alter_client_quotas({entity(parts): changes})
    if as_json:
        put_json({"entity": parts, "quotas": changes})
    else:
        click.echo(f"Altered {', '.join(changes)}.")


@quotas.command("set")
@click.argument("values", metavar="QUOTA=NUMBER…", nargs=-1, required=True)
@_entity_options
@connected
def set_quotas(values: tuple[str, ...], connection: ConnectionOptions, as_json: bool, **given: Any) -> None:
    """Set quotas: producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate …"""
    try:
        changes: dict[str, float | None] = {key: float(text) for key, text in pairs(values, "QUOTA=NUMBER").items()}
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    _alter(connection, given, changes, as_json)


@quotas.command("unset")
@click.argument("keys", metavar="QUOTA…", nargs=-1, required=True)
@_entity_options
@connected
def unset_quotas(keys: tuple[str, ...], connection: ConnectionOptions, as_json: bool, **given: Any) -> None:
    """Take quotas away."""
    _alter(connection, given, dict.fromkeys(keys), as_json)


# ---------------------------------------------------------------- users


@click.group
def users() -> None:
    """SCRAM users: list, set, delete. Brokers of logkernel keep them; nobody logs in with them yet."""


@users.command("list")
@click.argument("names", nargs=-1)
@connected
def list_users(names: tuple[str, ...], connection: ConnectionOptions, as_json: bool) -> None:
    """List users NAMES, or all, and how their passwords are kept."""
    with connection.admin() as admin:
        _warn(admin, UNENFORCED_USERS)
        found = admin.describe_user_scram_credentials(names or None)
    if as_json:
        for user, rows in found.items():
            put_json(
                {"user": user, "credentials": [{"mechanism": it.mechanism, "iterations": it.iterations} for it in rows]}
            )
    else:
        put_table(
            ("USER", "MECHANISM", "ITERATIONS"),
            [(user, it.mechanism, it.iterations) for user, rows in found.items() for it in rows],
        )


_mechanism = click.option(
    "--mechanism", type=click.Choice(MECHANISMS), default=MECHANISMS[0], show_default=True, help="How it is kept."
)


@users.command("set")
@click.argument("name")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input, rather than ask for it.")
@click.option(
    "--iterations", type=click.IntRange(1), default=4096, show_default=True, help="How often the password is hashed."
)
@_mechanism
@connected
def set_user(
    name: str, password_stdin: bool, iterations: int, mechanism: str, connection: ConnectionOptions, as_json: bool
) -> None:
    """Set the password of user NAME; it is asked for, and only its salted form is sent."""
    from logkernel.client.admin.access import ScramUpsertion

    if password_stdin:
        password = sys.stdin.readline().rstrip("\n")
    else:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    if not password:
        raise click.UsageError("the password is empty")
    with connection.admin() as admin:
        _warn(admin, UNENFORCED_USERS)
        admin.alter_user_scram_credentials(ScramUpsertion(name, password, mechanism, iterations))
    _said(name, mechanism, "Set", as_json)


@users.command("delete")
@click.argument("name")
@_mechanism
@connected
def delete_user(name: str, mechanism: str, connection: ConnectionOptions, as_json: bool) -> None:
    """Delete a password of user NAME."""
    from logkernel.client.admin.access import ScramDeletion

    with connection.admin() as admin:
        _warn(admin, UNENFORCED_USERS)
        admin.alter_user_scram_credentials(ScramDeletion(name, mechanism))
    _said(name, mechanism, "Deleted", as_json)


def _said(name: str, mechanism: str, what: str, as_json: bool) -> None:
    if as_json:
        put_json({"user": name, "mechanism": mechanism, "done": what.lower()})
    else:
        click.echo(f"{what} the {mechanism} password of {name}.")
