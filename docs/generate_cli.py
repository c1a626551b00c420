"""Write the command tables of docs/cli.md from the commands themselves. Run by hand; a test compares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

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
    shared = {"bootstrap", "data", "timeout_s", "as_json", "command_config", "properties"}
    has_all = shared <= {str(param.name) for param in command.params}
    for param in command.params:
        if not isinstance(param, click.Option) or param.hidden or (has_all and param.name in shared):
            continue
        flags = ", ".join(f"`{flag}`" for flag in [*param.opts, *param.secondary_opts])
        yield wrapped(f"  - {flags}: {param.help}", 4)


def wrapped(text: str, indent: int) -> str:
    """Lines of a list's entry; what stands in backquotes stays on one line."""
    whole = re.sub("`[^`]+`", lambda code: code.group().replace(" ", "\0"), text.lstrip())
    lead = text[: len(text) - len(text.lstrip())]
    lines = fill(
        whole, 110, initial_indent=lead, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )
    return lines.replace("\0", " ")


def text() -> str:
    lines = []
    for words, command in commands(app):
        about = " ".join(f"{command.help or ''} {command.epilog or ''}".split())
        lines += [wrapped(f"- **`{usage(words, command)}`** {about}", 2), *options(command)]
    return "\n".join(lines) + "\n"


def page(old: str) -> str:
    return re.sub(f"{BEGIN}.*?{END}", lambda _: BEGIN + text() + END, old, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
