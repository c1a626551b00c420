"""Writes docs/consumer-settings.md: `python docs/generate_consumer_settings.py`."""

from __future__ import annotations

from pathlib import Path

from logkernel.client import settings as shared
from logkernel.client.consumer_settings import CONSUMER
from logkernel.client.settings import ClientSetting
from logkernel.config.values import TYPE_NAMES, render

PAGE = Path(__file__).with_name("consumer-settings.md")

HEAD = """\
# Settings of the consumer

Written by `docs/generate_consumer_settings.py`; a test fails when it is stale.

`log.consumer("orders", group="billing", auto_offset_reset="earliest")`: keywords are these names
with `_` for `.`, of an embedded log (`logkernel.open`) and of a cluster
(`logkernel.connect`, whose own keywords are the defaults of all its clients).
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
    refused = [f"| `{name}` | {why} |" for name, why in shared.NOT_HERE.items()]
    parts = [
        HEAD,
        "| name | type | default | bounds | |",
        "|---|---|---|---|---|",
        *[row(setting) for setting in sorted(CONSUMER, key=lambda setting: setting.name)],
        "\n## Refused\n",
        "| name | instead |",
        "|---|---|",
        *refused,
        "| `ssl.*`, `sasl.*` | only PLAINTEXT is spoken |",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
