"""Write the command tables of docs/cli.md from the commands themselves. Run by hand; a test compares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from logkernel.cli.app import app

PAGE = Path(__file__).with_name("cli.md")
BEGIN, END = "<!-- commands -->\n", "<!-- /commands -->\n"


def commands(group: click.Group, path: str = "logkernel") -> Iterator[tuple[str, click.Command]]:
    """(words, command) of everything that can be called, in the order of the help."""
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def usage(words: str, command: click.Command) -> str:
    """`logkernel topic create NAMES…`."""
    arguments = [_argument(param) for param in command.params if isinstance(param, click.Argument)]
    return " ".join([words, *arguments])


def _argument(param: click.Argument) -> str:
    name = (param.metavar or str(param.name).upper()).removesuffix("…")
    if isinstance(param.type, click.Choice) and param.metavar is None:
        name = "|".join(map(str, param.type.choices))
    name += "…" if param.nargs == -1 else ""
    return name if param.required else f"[{name}]"


def options(command: click.Command) -> Iterator[str]:
    shared = {"bootstrap", "data", "timeout_s", "as_json"}
    has_all = shared <= {str(param.name) for param in command.params}
    for param in command.params:
        if not isinstance(param, click.Option) or (has_all and param.name in shared):
            continue
        flags = ", ".join(f"`{flag}`" for flag in [*param.opts, *param.secondary_opts])
        yield f"  - {flags}: {param.help}"


def text() -> str:
    lines = []
    for words, command in commands(app):
        about = " ".join((command.help or "").split())
        lines += [f"- **`{usage(words, command)}`** {about}", *options(command)]
    return "\n".join(lines) + "\n"


def page(old: str) -> str:
    return re.sub(f"{BEGIN}.*?{END}", lambda _: BEGIN + text() + END, old, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
