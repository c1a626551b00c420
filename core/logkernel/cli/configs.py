"""`logkernel config list|get|set|unset`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from logkernel.cli.connection import ConnectionOptions, check_brokers, connected, pairs
from logkernel.cli.output import put_json, put_table
from logkernel.errors import ConfigError

if TYPE_CHECKING:
    from logkernel.client.admin.client import Admin
    from logkernel.client.admin.configs import ConfigEntry

KINDS = ("topic", "broker", "broker-logger", "group", "client-metrics")
_kind = click.argument("kind", type=click.Choice(KINDS))
_name = click.argument("name")
_optional_kind = click.argument("kind", type=click.Choice(KINDS), required=False)
_optional_name = click.argument("name", required=False)
DEFAULT = "default"
"""`config … broker default` names the cluster-wide default of all brokers."""


def _resource(admin: Admin, kind: str, name: str) -> tuple[str, str]:
    """The resource as the admin client names it. Raises `BrokerIdNotRegistered`."""
    if kind == "broker" and name == DEFAULT:
        return kind, ""
    if kind in ("broker", "broker-logger") and name.isdigit():
        check_brokers(admin, [int(name)])
    return kind, name


@click.command("list")
@_optional_kind
@_optional_name
@click.option("--all", "everything", is_flag=True, help="Include settings that have their default.")
@connected
def list_(kind: str | None, name: str | None, everything: bool, connection: ConnectionOptions, as_json: bool) -> None:
    """List the settings of NAME that differ from the default. Without NAME, list the resources that have settings."""
    with connection.admin() as admin:
        if name is None or kind is None:
            found = admin.list_config_resources([kind] if kind else ())
            if as_json:
                for row in found:
                    put_json({"kind": row.kind, "name": row.name})
            else:
                put_table(("KIND", "NAME"), [(row.kind, row.name) for row in found])
            return
        (entries,) = admin.describe_configs(_resource(admin, kind, name), synonyms=True).values()
    _put([entry for entry in entries.values() if everything or not entry.is_default], as_json)


def _put(entries: list[ConfigEntry], as_json: bool) -> None:
    if as_json:
        for entry in entries:
            put_json(_row(entry))
        return
    rows = [(entry.name, _shown(entry), entry.source, "yes" if entry.read_only else "") for entry in entries]
    put_table(("NAME", "VALUE", "SOURCE", "READ-ONLY"), rows)


def _shown(entry: ConfigEntry) -> str | None:
    return "(hidden)" if entry.sensitive else entry.value


def _row(entry: ConfigEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source,
        "type": entry.type,
        "readOnly": entry.read_only,
        "sensitive": entry.sensitive,
        "synonyms": [{"name": same.name, "value": same.value, "source": same.source} for same in entry.synonyms],
    }


@click.command
@_kind
@_name
@click.argument("keys", nargs=-1, required=True)
@connected
def get(kind: str, name: str, keys: tuple[str, ...], connection: ConnectionOptions, as_json: bool) -> None:
    """Print the values of KEYS, one a line."""
    with connection.admin() as admin:
        (entries,) = admin.describe_configs(_resource(admin, kind, name), names=keys, synonyms=True).values()
    missing = [key for key in keys if key not in entries]
    if missing:
        raise ConfigError(
            f"{kind} {name} has no setting {missing[0]!r}; `logkernel config list {kind} {name} --all` lists all"
        )
    for key in keys:
        if as_json:
            put_json(_row(entries[key]))
        else:
            click.echo(_shown(entries[key]) or "")


@click.command("set")
@_kind
@_name
@click.argument("settings", metavar="KEY=VALUE…", nargs=-1, required=True)
@click.option("--append", is_flag=True, help="Add the values to settings that are lists.")
@click.option("--subtract", is_flag=True, help="Remove the values from settings that are lists.")
@click.option("--dry-run", is_flag=True, help="Validate the change without making it.")
@connected
def set_(
    kind: str, name: str, settings: tuple[str, ...], append: bool, subtract: bool, dry_run: bool,
    connection: ConnectionOptions, as_json: bool,
) -> None:  # fmt: skip
    """Set settings of a topic, broker, broker logger, group or client metrics subscription."""
    from logkernel.client.admin.configs import Append, Subtract

    if append and subtract:
        raise click.UsageError("--append and --subtract exclude each other; give one of them")
    changes: dict[str, Any] = dict(pairs(settings, "KEY=VALUE"))
    if append or subtract:
        how = Append if append else Subtract
        changes = {key: how(text.split(",")) for key, text in changes.items()}
    with connection.admin(changes=True) as admin:
        admin.alter_configs({_resource(admin, kind, name): changes}, validate_only=dry_run)
    _say(kind, name, list(changes), as_json, dry_run)


@click.command
@_kind
@_name
@click.argument("keys", nargs=-1, required=True)
@connected
def unset(kind: str, name: str, keys: tuple[str, ...], connection: ConnectionOptions, as_json: bool) -> None:
    """Reset KEYS to their defaults."""
    with connection.admin(changes=True) as admin:
        admin.alter_configs({_resource(admin, kind, name): dict.fromkeys(keys)})
    _say(kind, name, list(keys), as_json, False)


def _say(kind: str, name: str, keys: list[str], as_json: bool, dry_run: bool) -> None:
    if as_json:
        put_json({"kind": kind, "name": name, "settings": keys, "done": not dry_run})
    else:
        click.echo(f"{'Can alter' if dry_run else 'Altered'} {', '.join(keys)} of {kind} {name}.")
