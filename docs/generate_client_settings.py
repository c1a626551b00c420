"""Writes docs/producer-settings.md and docs/consumer-settings.md: `python docs/generate_client_settings.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from logkernel.client.settings.consumer import CONSUMER
from logkernel.client.settings.producer import ALIASES, PRODUCER
from logkernel.client.settings.table import NOT_HERE, ClientSetting
from logkernel.config.values import TYPE_NAMES, render

HEAD = """\
# Settings of the {client}

Written by `docs/generate_client_settings.py`; a test fails when it is stale.

`log.{example}`: keywords are these names
with `_` for `.`, of an embedded log (`logkernel.open`) and of a cluster (`logkernel.connect`, whose own keywords are
the defaults of all its clients).
Names, types, bounds and defaults are Apache Kafka's; where one differs, its line says so. A setting that is unknown,
out of bounds or at odds with another is refused with a `ConfigError`.
"""


def cell(setting: ClientSetting) -> str:
    if setting.default is None:
        return ""
    text = render(setting.default)
    return f"`{text}`" if text else "empty"


def row(setting: ClientSetting) -> str:
    bounds = str(setting.validator) if setting.validator is not None else ""
    cells = [f"`{setting.name}`", TYPE_NAMES[setting.type], cell(setting), bounds, setting.doc]
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def aliases() -> list[str]:
    return [
        "\n## Names of old\n",
        "Taken with a `DeprecationWarning`. `block.on.buffer.full=true` is `max.block.ms` without an end.\n",
        "| name | now |",
        "|---|---|",
        *[f"| `{old}` | `{new}` |" for old, new in ALIASES.items()],
    ]


def page(head: str, settings: Iterable[ClientSetting], more: Iterable[str]) -> str:
    parts = [
        head,
        "| name | type | default | bounds | |",
        "|---|---|---|---|---|",
        *[row(setting) for setting in sorted(settings, key=lambda setting: setting.name)],
        *more,
        "\n## Refused\n",
        "| name | instead |",
        "|---|---|",
        *[f"| `{name}` | {why} |" for name, why in NOT_HERE.items()],
        "| `ssl.*`, `sasl.*` | only PLAINTEXT is spoken |",
    ]
    return "\n".join(parts) + "\n"


def producer_page() -> str:
    example = 'producer(linger_ms=20, compression_type="zstd")'
    return page(HEAD.format(client="producer", example=example), PRODUCER, aliases())


def consumer_page() -> str:
    example = 'consumer("orders", group="billing", auto_offset_reset="earliest")'
    return page(HEAD.format(client="consumer", example=example), CONSUMER, ())


PAGES: Mapping[Path, Callable[[], str]] = {
    Path(__file__).with_name("producer-settings.md"): producer_page,
    Path(__file__).with_name("consumer-settings.md"): consumer_page,
}

if __name__ == "__main__":
    for path, text in PAGES.items():
        path.write_text(text(), encoding="utf-8")
