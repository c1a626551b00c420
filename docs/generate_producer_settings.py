"""Writes docs/producer-settings.md: `python docs/generate_producer_settings.py`."""

from __future__ import annotations

from pathlib import Path

from logkernel.client.producer_settings import ALIASES, PRODUCER
from logkernel.client.settings import NOT_HERE, ClientSetting
from logkernel.config.values import TYPE_NAMES, render

PAGE = Path(__file__).with_name("producer-settings.md")

HEAD = """\
# Settings of the producer

Written by `docs/generate_producer_settings.py`; a test fails when it is stale.

`log.producer(linger_ms=20, compression_type="zstd")`: keywords are these names with `_` for `.`, of an embedded log
(`logkernel.open`) and of a cluster (`logkernel.connect`, whose own keywords are the defaults of all its clients).
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


def page() -> str:
    aliases = [f"| `{old}` | `{new}` |" for old, new in ALIASES.items()]
    refused = [f"| `{name}` | {why} |" for name, why in NOT_HERE.items()]
    parts = [
        HEAD,
        "| name | type | default | bounds | |",
        "|---|---|---|---|---|",
        *[row(setting) for setting in sorted(PRODUCER, key=lambda setting: setting.name)],
        "\n## Names of old\n",
        "Taken with a `DeprecationWarning`. `block.on.buffer.full=true` is `max.block.ms` without an end.\n",
        "| name | now |",
        "|---|---|",
        *aliases,
        "\n## Refused\n",
        "| name | instead |",
        "|---|---|",
        *refused,
        "| `ssl.*`, `sasl.*` | only PLAINTEXT is spoken |",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
