"""`logkernel cluster acls|quotas|users`: access rules, client quotas, SCRAM users."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from logkernel.cli.connection import ConnectionOptions, connected, pairs
from logkernel.cli.output import put_json, put_table
from logkernel.cli.parameters import IntRange
from logkernel.config.listeners import parse_listeners, protocols_by_name
from logkernel.errors import KafkaError

if TYPE_CHECKING:
    from logkernel.client.admin.access import AclBinding, AclFilter
    from logkernel.client.admin.client import Admin

F = TypeVar("F", bound=Callable[..., Any])
RESOURCES = ("topic", "group", "cluster", "transactional-id", "delegation-token", "user")
PATTERNS = ("literal", "prefixed")
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


UNENFORCED_ACLS = (
    "this broker keeps ACLs but does not enforce them: set authorizer.class.name, or everybody may do everything"
)
UNENFORCED_USERS = "no listener of this broker asks clients to log in; set listeners=SASL_SSL://… for these users"
OURS = "logkernel.sendfile"
"""A setting that logkernel brokers have and Apache Kafka's do not."""
AUTHORIZER, LISTENERS, PROTOCOLS = "authorizer.class.name", "listeners", "listener.security.protocol.map"


def _settings(admin: Admin) -> dict[str, str] | None:
    """Of a logkernel broker; None: it is another one's, or does not tell."""
    try:
        brokers = admin.describe_cluster().brokers
        names = [OURS, AUTHORIZER, LISTENERS, PROTOCOLS]
        (entries,) = admin.describe_configs(("broker", str(brokers[0].id)), names=names).values()
    except (KafkaError, IndexError):
        return None
    return {name: entry.value or "" for name, entry in entries.items()} if OURS in entries else None


def warn_of_unenforced_acls(admin: Admin) -> None:
    """Print a warning on stderr if the broker is logkernel's and has no authorizer."""
    settings = _settings(admin)
    if settings is not None and not settings.get(AUTHORIZER):
        click.echo(f"logkernel: warning: {UNENFORCED_ACLS}", err=True)


def _warn_of_users(connection: ConnectionOptions, admin: Admin) -> None:
    """Print a warning on stderr if the broker is logkernel's, and none of its listeners speaks SASL. Of a folder, the
    listeners that its broker will have are not known: say nothing, and let the log say nothing."""
    if connection.data is not None:
        log = logging.getLogger("logkernel.access")
        click.get_current_context().call_on_close(partial(log.setLevel, log.level))
        log.setLevel(logging.ERROR)
        return
    settings = _settings(admin)
    if settings is None:
        return
    protocols = protocols_by_name(settings.get(PROTOCOLS, ""))
    listeners = parse_listeners(settings.get(LISTENERS, ""))
    if not any(protocols.get(listener.name, "").startswith("SASL_") for listener in listeners):
        click.echo(f"logkernel: warning: {UNENFORCED_USERS}", err=True)


# ---------------------------------------------------------------- acls


@click.group
def acls() -> None:
    """List, add or remove ACLs. `cluster acl` does it with the options of kafka-acls."""


def _filters(command: Any) -> Any:
    for option in (
        click.option("--host", help="Only ACLs of this host."),
        click.option("--permission", type=click.Choice(["allow", "deny"]), help="Only ACLs with this permission."),
        click.option("--operation", help="Only ACLs of this operation, e.g. read."),
        click.option("--principal", help="Only ACLs of this principal, e.g. User:ann."),
        click.option(
            "--pattern",
            type=click.Choice([*PATTERNS, "match"]),
            help="Only ACLs of this pattern type; match: all that apply to NAME.",
        ),
        click.option("--name", help="Only ACLs of the resource with this name."),
        click.option("--resource", type=click.Choice(RESOURCES), help="Only ACLs of this resource type."),
    ):
        command = option(command)
    return command


def _filter(given: dict[str, Any]) -> AclFilter:
    from logkernel.client.admin.access import AclFilter

    return AclFilter(**{name: value for name, value in given.items() if value is not None})


def put_acls(rows: list[AclBinding], as_json: bool) -> None:
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
    """List the ACLs that match every filter."""
    with connection.admin() as admin:
        warn_of_unenforced_acls(admin)
        found = admin.describe_acls(_filter(given))
    put_acls(found, as_json)


@acls.command("add")
@click.argument("principal")
@click.argument("operation")
@click.argument("resource", type=click.Choice(RESOURCES))
@click.argument("name")
@click.option("--deny", is_flag=True, help="Deny the operation instead of allowing it.")
@click.option("--host", default="*", show_default=True, help="The host that the ACL applies to.")
@click.option(
    "--pattern",
    type=click.Choice(PATTERNS),
    default="literal",
    show_default=True,
    help="literal: NAME as it is; prefixed: every name that begins with NAME.",
)
@connected
def add_acl(
    principal: str, operation: str, resource: str, name: str, deny: bool, host: str, pattern: str,
    connection: ConnectionOptions, as_json: bool,
) -> None:  # fmt: skip
    """Allow PRINCIPAL an OPERATION on a resource, e.g. `acls add User:ann read topic orders`."""
    from logkernel.cli.acl_words import check_hosts
    from logkernel.client.admin.access import AclBinding

    check_hosts(host)
    rule = AclBinding(resource, name, principal, operation, "deny" if deny else "allow", host, pattern)
    with connection.admin(changes=True) as admin:
        warn_of_unenforced_acls(admin)
        admin.create_acls(rule)
    put_acls([rule], as_json)


@acls.command("remove")
@_filters
@click.option("--all", "everything", is_flag=True, help="Remove all ACLs.")
@connected
def remove_acls(everything: bool, connection: ConnectionOptions, as_json: bool, **given: Any) -> None:
    """Remove the ACLs that match every filter, and print them."""
    if everything == any(value is not None for value in given.values()):
        raise click.UsageError("the ACLs are not clear; give either filters or --all")
    with connection.admin(changes=True) as admin:
        warn_of_unenforced_acls(admin)
        found = admin.delete_acls(_filter(given))
    put_acls(found, as_json)


# ---------------------------------------------------------------- quotas


@click.group
def quotas() -> None:
    """List, set or unset client quotas. Brokers hold back clients that exceed them."""


_whose = (
    click.option("--ip", help="An IP address, or `default` for all without a quota of their own."),
    click.option("--client-id", "client_id", help="A client id, or `default` for all without a quota of their own."),
    click.option("--user", help="A user, or `default` for all without a quota of their own."),
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
    """List the quotas of the named users, client ids or addresses, or all quotas; * stands for any name."""
    with connection.admin() as admin:
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
        raise click.UsageError("no entity is named; give --user, --client-id or --ip")
    with connection.admin(changes=True) as admin:
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
    """Set quotas of a user, client id or address: producer_byte_rate and consumer_byte_rate (bytes a second),
    request_percentage (% of a thread), controller_mutation_rate (partitions a second), connection_creation_rate.
    """
    changes: dict[str, float | None] = {}
    for key, text in pairs(values, "QUOTA=NUMBER").items():
        try:
            changes[key] = float(text)
        except ValueError:
            raise click.UsageError(f"{key}={text}: not a number; write e.g. {key}=1048576") from None
    _alter(connection, given, changes, as_json)


@quotas.command("unset")
@click.argument("keys", metavar="QUOTA…", nargs=-1, required=True)
@_entity_options
@connected
def unset_quotas(keys: tuple[str, ...], connection: ConnectionOptions, as_json: bool, **given: Any) -> None:
    """Remove quotas of a user, client id or address."""
    _alter(connection, given, dict.fromkeys(keys), as_json)


# ---------------------------------------------------------------- users


@click.group
def users() -> None:
    """List, set or delete SCRAM users, whom listeners of SASL let in."""


@users.command("list")
@click.argument("names", nargs=-1)
@connected
def list_users(names: tuple[str, ...], connection: ConnectionOptions, as_json: bool) -> None:
    """List users NAMES, or all, with the mechanisms of their passwords."""
    with connection.admin() as admin:
        _warn_of_users(connection, admin)
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


def _of_mechanisms(default: str) -> Callable[[F], F]:
    return click.option(
        "--mechanism",
        "mechanisms",
        type=click.Choice(MECHANISMS),
        multiple=True,
        help=f"A SCRAM mechanism of the password; repeatable.  [default: {default}]",
    )


@users.command("set")
@click.argument("name")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input instead of asking for it.")
@click.option(
    "--iterations", type=IntRange(1), default=4096, show_default=True, help="Iterations of the password hash."
)
@_of_mechanisms("both")
@connected
def set_user(
    name: str,
    password_stdin: bool,
    iterations: int,
    mechanisms: tuple[str, ...],
    connection: ConnectionOptions,
    as_json: bool,
) -> None:
    """Set the password of user NAME. You are asked for it; only its salted hash is sent."""
    from logkernel.client.admin.access import ScramUpsertion

    if password_stdin:
        password = sys.stdin.readline().rstrip("\n")
    elif not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask for the password; give it by --password-stdin")
    else:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    if not password:
        raise click.UsageError("the password is empty; give one that is not")
    with connection.admin(changes=True) as admin:
        _warn_of_users(connection, admin)
        for mechanism in mechanisms or MECHANISMS:  # a request may name a user once
            admin.alter_user_scram_credentials(ScramUpsertion(name, password, mechanism, iterations))
            _said(name, mechanism, "Set", as_json)


@users.command("delete")
@click.argument("name")
@_of_mechanisms("those that the user has")
@connected
def delete_user(name: str, mechanisms: tuple[str, ...], connection: ConnectionOptions, as_json: bool) -> None:
    """Delete the passwords of user NAME."""
    from logkernel.client.admin.access import ScramDeletion

    with connection.admin(changes=True) as admin:
        _warn_of_users(connection, admin)
        for mechanism in mechanisms or [it.mechanism for it in admin.describe_user_scram_credentials([name])[name]]:
            admin.alter_user_scram_credentials(ScramDeletion(name, mechanism))
            _said(name, mechanism, "Deleted", as_json)


def _said(name: str, mechanism: str, what: str, as_json: bool) -> None:
    if as_json:
        put_json({"user": name, "mechanism": mechanism, "done": what.lower()})
    else:
        click.echo(f"{what} the {mechanism} password of {name}.")
