"""`logkernel cluster acl`: ACLs with the words of `kafka-acls`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from logkernel.cli.access import put_acls, warn_of_unenforced_acls
from logkernel.cli.connection import ConnectionOptions, connected
from logkernel.cli.parameters import with_options

if TYPE_CHECKING:
    from logkernel.cli.acl_words import Asked

OPERATIONS = (
    "all", "read", "write", "create", "delete", "alter", "describe", "cluster-action", "describe-configs",
    "alter-configs", "idempotent-write", "create-tokens", "describe-tokens", "two-phase-commit",
)  # fmt: skip


class _Operation(click.Choice[str]):
    """Kafka's spellings, too: `DescribeConfigs`, `DESCRIBE_CONFIGS`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        plain = str(value).replace("_", "").replace("-", "").lower()
        known = {word.replace("-", ""): word for word in OPERATIONS}
        return super().convert(known.get(plain, value), param, ctx)


_OPTIONS = (
    click.option("--add", is_flag=True, help="Add ACLs."),
    click.option("--remove", is_flag=True, help="Remove ACLs: those given, or all of the resources."),
    click.option("--list", is_flag=True, help="List the ACLs of the resources, or all."),
    click.option("--topic", "topics", multiple=True, help="A topic; * is every topic. Repeatable, as the others."),
    click.option("--group", "groups", multiple=True, help="A group."),
    click.option("--transactional-id", "ids", multiple=True, help="A transactional id."),
    click.option("--delegation-token", "tokens", multiple=True, help="A delegation token, by its id."),
    click.option("--user-principal", "users", multiple=True, help="A user whose delegation tokens are meant."),
    click.option("--cluster", is_flag=True, help="The cluster."),
    click.option(
        "--resource-pattern-type",
        "pattern",
        type=click.Choice(["literal", "prefixed", "any", "match"]),
        default="literal",
        show_default=True,
        help="literal: the names as they are; prefixed: what begins so. For --list and --remove also any, or match: all"
        " ACLs that apply to the name.",
    ),
    click.option(
        "--allow-principal", "allowed", multiple=True, help="A principal to allow, e.g. User:ann; User:* is everybody."
    ),
    click.option("--deny-principal", "denied", multiple=True, help="A principal to deny."),
    click.option("--allow-host", "allowed_hosts", multiple=True, help="An address to allow.  [default: all]"),
    click.option("--deny-host", "denied_hosts", multiple=True, help="An address to deny.  [default: all]"),
    click.option(
        "--operation", "operations", multiple=True, type=_Operation(OPERATIONS), help="An operation.  [default: all]"
    ),
    click.option("--producer", is_flag=True, help="What a producer needs: write, describe and create its topics."),
    click.option("--consumer", is_flag=True, help="What a consumer needs: read, describe its topics, read its group."),
    click.option("--idempotent", is_flag=True, help="With --producer: write idempotently to the cluster."),
    click.option("--principal", "listed", multiple=True, help="With --list: only ACLs of this principal."),
    click.option("--force", is_flag=True, help="Do not ask before all ACLs of a resource are removed."),
)  # fmt: skip


@click.command
@with_options(_OPTIONS)
@connected
def acl(connection: ConnectionOptions, as_json: bool, **given: Any) -> None:
    """Add, remove or list ACLs, with the options of kafka-acls.

    E.g. `acl --add --allow-principal User:ann --consumer --topic orders --group app`."""
    from logkernel.cli.acl_words import bindings, check_hosts, exactly, filters

    actions = [action for action in ("add", "remove", "list") if given.pop(action)]
    listed, force = given.pop("listed"), given.pop("force")
    asked = _asked(**given)
    if len(actions) != 1:
        raise click.UsageError("it is not clear what to do; give one of --add, --remove and --list")
    (action,) = actions
    if action == "list":
        with connection.admin() as admin:
            warn_of_unenforced_acls(admin)
            put_acls([row for one in filters(asked, listed) for row in admin.describe_acls(one)], as_json)
        return
    if action == "remove" and not asked.names_rules:
        if not asked.resources:
            raise click.UsageError("no resource is named; give --topic, --group, --cluster or another")
        names = ", ".join(f"{kind} {name}" for kind, name in asked.resources)
        if not force:
            click.confirm(f"Remove all ACLs of {names}?", abort=True, err=True)
        wanted = filters(asked)
    else:
        rules = bindings(asked)
        if action == "add":
            check_hosts(*asked.allowed_hosts, *asked.denied_hosts)
        wanted = [exactly(rule) for rule in rules]
    with connection.admin(changes=True) as admin:
        warn_of_unenforced_acls(admin)
        if action == "add":
            admin.create_acls(rules)
            put_acls(rules, as_json)
        else:
            put_acls(admin.delete_acls(wanted), as_json)


def _asked(
    *, topics: tuple[str, ...], groups: tuple[str, ...], ids: tuple[str, ...], tokens: tuple[str, ...],
    users: tuple[str, ...], cluster: bool, **given: Any,
) -> Asked:  # fmt: skip
    from logkernel.cli.acl_words import CLUSTER_NAME, Asked

    named = (
        ("topic", topics), ("group", groups), ("transactional-id", ids), ("delegation-token", tokens), ("user", users),
        ("cluster", (CLUSTER_NAME,) if cluster else ()),
    )  # fmt: skip
    return Asked(tuple((kind, name) for kind, names in named for name in names), **given)
