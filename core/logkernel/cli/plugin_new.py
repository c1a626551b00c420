"""`logkernel plugin new`: the project of a plugin, from the templates beside this module.

`plugin_templates` has KIND.plugin.template and KIND.test.template for each kind, and the files that all have. They are
`string.Template`s. The pages in docs/plugins show the same code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Final

import click

from logkernel.cli.installed_plugins import plain_kind
from logkernel.cli.output import json_option, put_json
from logkernel.errors import ConfigError

TEMPLATES: Final = Path(__file__).with_name("plugin_templates")
USES: Final[Mapping[str, str]] = {
    "assignor": "Choose it on the broker by `group.consumer.assignors=$name,uniform`.",
    "authorizer": "Choose it on the broker by `authorizer.class.name=$name`.",
    "cleanup policy": "Choose it for a topic by `cleanup.policy=$name`.",
    "client quota callback": "Choose it on the broker by `client.quota.callback.class=$name`.",
    "codec": "Choose it as ever, by `compression.type=gzip`: it takes the place of the built-in codec.",
    "compaction strategy": "Choose it for a compacted topic by `compaction.strategy=$name`.",
    "coordination": "Choose it on the broker by `coordination=$name`.",
    "decoder": "Use it by `logkernel dump --decode`.",
    "election": "Choose it for a topic by `election=$name`.",
    "fetch filter": "Choose it for a topic by `fetch.filters=$name`.",
    "interceptor": "Choose it for a producer of logkernel by `interceptor.classes=$name`.",
    "isr": "Choose it for a topic by `isr=$name`.",
    "metrics reporter": "Choose it for a client of logkernel by `metric.reporters=$name`.",
    "partitioner": "Choose it for a topic by `partitioner=$name`; install it where the producers run, too.",
    "password checker": "Choose it by `listener.name.LISTENER.plain.sasl.server.callback.handler.class=$name`.",
    "placement": "Choose it for a topic by `placement=$name`.",
    "produce interceptor": "Choose it for a topic by `produce.interceptors=$name`.",
    "quota": "Choose it for a topic by `quotas=$name`.",
    "service": "A broker starts it by itself. Send it requests by `log.request(…)` of an embedded log.",
    "task assignor": "Choose it on the broker by `group.streams.assignors=$name`; or by `sticky,$name` there, for the"
    " groups with `streams.assignor.name=$name`.",
    "transport": "Use it as ever: it takes the place of the built-in transport `tcp`.",
}
NAMED: Final[Mapping[str, str]] = {"codec": "gzip", "transport": "tcp"}
"""Kind → the name that a plugin of its template must have."""


def kinds() -> list[str]:
    """The kinds that have templates."""
    suffix = ".plugin.template"
    return sorted(path.name.removesuffix(suffix).replace("_", " ") for path in TEMPLATES.glob(f"*{suffix}"))


def files(kind: str, distribution: str, name: str) -> dict[str, str]:
    """Path in the project → its text."""
    module = re.sub(r"\W", "_", distribution)
    stem = kind.replace(" ", "_")
    words = {
        "kind": kind,
        "distribution": distribution,
        "module": module,
        "name": name,
        "Class": "".join(word.capitalize() for word in re.split(r"[\W_]+", distribution)),
    }
    words["use"] = Template(USES.get(kind, "See docs/plugins of logkernel for how it is chosen.")).substitute(words)
    sources = {
        "pyproject.toml": "pyproject",
        "tox.ini": "tox",
        "README.md": "README",
        f"{module}.py": f"{stem}.plugin",
        f"test_{module}.py": f"{stem}.test",
    }
    return {
        path: Template((TEMPLATES / f"{source}.template").read_text(encoding="utf-8")).substitute(words)
        for path, source in sources.items()
    }


@click.command(epilog=f"Kinds: {', '.join(kinds())}.")
@click.argument("kind")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--name", metavar="NAME", help="The plugin's name, as settings choose it.  [default: the folder's]")
@json_option
def new(kind: str, folder: Path, name: str | None, as_json: bool) -> None:
    """Write the project of a new plugin of KIND into FOLDER, which must be empty or missing.

    It works as it is: a module with an entry point, and tests that hold it to the contract of its kind. The folder's
    name becomes the distribution's.
    """
    kind = plain_kind(kind)
    if kind not in kinds():
        from logkernel.config.nearest import nearest

        near = nearest(kind, kinds())
        hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(kinds())}"
        raise ConfigError(f"{kind}: no such kind of plugins to begin with; {hint}")
    distribution = folder.resolve().name.lower()
    if not re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", distribution):
        raise ConfigError(f"{distribution!r} is no name of a distribution; use letters, digits and hyphens")
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty; name a new folder")
    if kind in NAMED and name not in (None, NAMED[kind]):
        raise ConfigError(f"--name {name}: the template of a {kind} is {NAMED[kind]}; leave --name out")
    name = NAMED.get(kind) or name or distribution
    if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
        raise ConfigError(f"--name {name}: use letters, digits, dots, hyphens and underscores")
    written = files(kind, distribution, name)
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in written.items():
        (folder / path).write_text(text, encoding="utf-8")
        if as_json:
            put_json({"file": str(folder / path)})
        else:
            click.echo(str(folder / path))
    if not as_json:
        click.echo(f"\nNow: cd {folder} && pip install -e '.[test]' && python -m pytest")
