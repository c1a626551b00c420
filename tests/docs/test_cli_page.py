"""docs/cli.md and docs/client.md say what there is: commands, options, operations, settings; examples run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from types import ModuleType

import click
import pytest
from module_files import page_generator

from logkernel.cli.app import app
from logkernel.client.admin.client import Admin
from logkernel.client.settings.admin import ADMIN
from logkernel.security.client_table import CLIENT_SECURITY

DOCS = Path(__file__).resolve().parents[2] / "docs"
CLIENT = (DOCS / "client.md").read_text()
EXAMPLES = re.findall(r"```python\n(.+?)```", CLIENT, re.DOTALL)


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    return page_generator("cli")


def test_every_command_is_on_the_page(generate: ModuleType) -> None:
    page = (DOCS / "cli.md").read_text()
    assert page == generate.page(page), "run python docs/generate_cli.py"
    for words, _ in generate.commands(app):
        assert f"**`{words}" in page


def test_every_command_and_option_has_help(generate: ModuleType) -> None:
    for words, command in generate.commands(app):
        assert command.help, words
        for param in command.params:
            if isinstance(param, click.Option):
                assert param.help, f"{words} {param.name}"


def test_every_command_speaks_json(generate: ModuleType) -> None:
    for words, command in generate.commands(app):
        if words.split()[1] not in ("serve", "completion", "test-server", "schema-registry"):
            assert "as_json" in {param.name for param in command.params}, words


def test_the_commands_of_the_page_can_be_parsed(generate: ModuleType) -> None:
    """What the page shows in its examples is no usage error."""
    known = dict(generate.commands(app))
    shown = re.findall(r"(?:^|[|] )(logkernel .+?)(?:$| [|&#]| {2,})", (DOCS / "cli.md").read_text(), re.MULTILINE)
    shown = [line for line in shown if not line.startswith("logkernel completion fish")]
    assert len(shown) > 12
    for line in shown:
        words = shlex.split(line, comments=True)
        name = next(" ".join(words[:size]) for size in (4, 3, 2) if " ".join(words[:size]) in known)
        arguments = [word for word in words[len(name.split()) :] if word != "lines.txt"]
        with known[name].make_context(name, arguments):
            pass


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_of_the_admin_client_run(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(EXAMPLES[number], f"client.md[{number}]", "exec"), {"__name__": "example"})
    expected = ["orders [1, 1, 1, 1, 1, 1]", "TopicListing(name='orders'", "refunds made", "orders delete,compact True"]
    assert expected[number] in capsys.readouterr().out


def test_every_operation_and_setting_is_on_the_page() -> None:
    operations = [name for name, found in vars(Admin).items() if type(found).__name__ == "_Blocking"]
    for name in operations:
        assert f"`{name}`" in CLIENT, name
    elsewhere = {setting.name for setting in CLIENT_SECURITY}  # client-security-settings.md
    for setting in ADMIN:
        assert f"`{setting.name}`" in CLIENT or setting.name in elsewhere, setting.name
