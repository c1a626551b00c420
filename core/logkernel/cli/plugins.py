"""`logkernel plugin list|info`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import click

from logkernel.cli.client_settings import ClientSettings, load, settings_options
from logkernel.cli.connection import ConnectionOptions, bootstrap_option
from logkernel.cli.installed_plugins import KINDS_TOLD, LOADED, Chosen, InstalledPlugin, installed, named
from logkernel.cli.output import json_option, put_json, put_table
from logkernel.errors import PluginError

_config = click.option(
    "--config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="A broker's settings file, with the plugins that it allows and blocks.",
)


def _rows(config: str | None) -> list[InstalledPlugin]:
    from logkernel.config.loading import plugin_lists

    allow, block = plugin_lists(config)
    return installed(allow, block)


@click.command("list", epilog=KINDS_TOLD)
@click.argument("kind", required=False)
@_config
@bootstrap_option("Show which topics of this cluster choose a plugin.", envvar=None)
@settings_options
@json_option
def list_(
    kind: str | None,
    config: str | None,
    bootstrap: str | None,
    as_json: bool,
    command_config: str | None,
    properties: tuple[str, ...],
) -> None:
    """List what the installed plugins provide, or what those of KIND do.

    STATE is "loaded" for a plugin that a broker of this environment loads, with the settings of --config.
    """
    from logkernel.cli.installed_plugins import plain_kind

    rows = _rows(config)
    chosen = None if bootstrap is None else _chosen(bootstrap, load(command_config, properties))
    wanted = None if kind is None else plain_kind(kind)
    found = [
        (row, provided)
        for row in rows
        for provided in (row.names or [("", "")])
        if wanted is None or provided[0] == wanted
    ]
    columns = ("KIND", "NAME", "PLUGIN", "DISTRIBUTION", "VERSION", "ORIGIN", "STATE")
    lines = []
    for row, provided in sorted(found, key=lambda pair: pair[1]):
        cells = (
            *provided,
            row.point.name,
            row.point.distribution,
            row.version,
            row.origin_of(provided, rows),
            row.state,
        )
        topics = [one.topic for one in chosen or () if (one.kind, one.name) == provided]
        if as_json:
            more = {} if chosen is None else {"topics": topics}
            put_json({**{column.lower(): cell for column, cell in zip(columns, cells, strict=True)}, **more})
        lines.append(cells if chosen is None else (*cells, ", ".join(topics)))
    if not as_json:
        put_table(columns if chosen is None else (*columns, "TOPICS"), lines)


def _chosen(servers: str, settings: ClientSettings) -> list[Chosen]:
    """The plugins that topics choose, by their settings or a broker's defaults."""
    from logkernel.config.broker import BrokerConfig
    from logkernel.config.values import LIST, parse

    choosers = {one.name: one.chooses for one in BrokerConfig.load().definitions.topic.values() if one.chooses}
    with ConnectionOptions(servers, None, 30.0, settings).admin() as admin:
        described = admin.describe_configs(*[("topic", name) for name in admin.list_topics()])
    return [
        Chosen(choosers[setting], str(name), topic)
        for (_, topic), entries in described.items()
        for setting, entry in entries.items()
        if setting in choosers and entry.value
        for name in parse(LIST, entry.value)
    ]


@click.command
@click.argument("name")
@_config
@json_option
def info(name: str, config: str | None, as_json: bool) -> None:
    """Describe the plugin NAME: an entry point, a name that a plugin provides, or KIND/NAME."""
    rows = _rows(config)
    found = named(name, rows)
    if not found:
        from logkernel.config.nearest import nearest

        known = [row.point.name for row in rows] + [one for row in rows for _, one in row.names]
        near = nearest(name, known)
        hint = f"did you mean {near!r}?" if near else "`logkernel plugin list` names all"
        raise PluginError(f"{name}: no such plugin installed; {hint}")
    for row in found:
        put_json(_facts(row, rows)) if as_json else _put(row, rows)


def _facts(row: InstalledPlugin, rows: Sequence[InstalledPlugin]) -> dict[str, Any]:
    from logkernel.config.values import type_name
    from logkernel.hookspecs import KINDS

    return {
        "plugin": row.point.name,
        "module": row.point.target,
        "distribution": row.point.distribution,
        "version": row.version,
        "state": row.state,
        "about": (inspect.getdoc(row.module) or "").partition("\n\n")[0].replace("\n", " "),
        "provides": [
            {"kind": kind, "name": name, "origin": row.origin_of((kind, name), rows), "hook": KINDS.get(kind)}
            for kind, name in row.names
        ],
        "settings": [
            {
                "name": one.name,
                "scope": one.scope,
                "type": type_name(one.type),
                "default": one.default,
                "valid": "" if one.validator is None else str(one.validator),
                "doc": one.doc,
            }
            for one in row.settings
        ],
        "hooks": list(row.hooks),
    }


def _put(row: InstalledPlugin, rows: Sequence[InstalledPlugin]) -> None:
    facts = _facts(row, rows)
    click.echo(
        f"{facts['plugin']}: {facts['module']}, from {facts['distribution']} {facts['version']}, {facts['state']}"
    )
    if facts["about"]:
        click.echo(f"  {facts['about']}")
    for one in facts["provides"]:
        click.echo(f"  provides the {one['kind']} {one['name']} ({one['origin']}), by {one['hook']}")
    for one in facts["settings"]:
        valid = f", {one['valid']}" if one["valid"] else ""
        click.echo(f"  owns the {one['scope']} setting {one['name']}={one['default'] or ''} ({one['type']}{valid}):")
        click.echo(f"    {one['doc']}")
    if row.state == LOADED:
        click.echo(f"  implements {', '.join(facts['hooks']) or 'no hook'}")
