"""Writes docs/producer-settings.md and docs/consumer-settings.md: `python docs/generate_client_settings.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from textwrap import fill

from logkernel.client.settings.consumer import CONSUMER
from logkernel.client.settings.producer import ALIASES, PRODUCER
from logkernel.client.settings.table import NOT_HERE, ClientSetting
from logkernel.config.values import TYPE_NAMES, render

HEAD = """\
# Settings of the {client}

Written by `docs/generate_client_settings.py`; a test fails when it is stale.

Write these names as keywords, with `_` for `.`:

    log.{example}

`log` is an embedded log (`logkernel.open`) or a cluster (`logkernel.connect`). Keywords of `connect` are the
defaults of all its clients.

Names, types, bounds and defaults are Apache Kafka's, unless the setting says otherwise. A setting that is unknown, out
of bounds or in conflict with another raises `ConfigError`.
"""


def entry(setting: ClientSetting) -> str:
    """An entry of a list: name (type, default; bounds): what it does."""
    facts = [TYPE_NAMES[setting.type]]
    if setting.default is not None:
        text = render(setting.default)
        facts.append(f"default `{text}`" if text else "default empty")
    if setting.validator is not None:
        facts.append(str(setting.validator))
    return "- " + wrapped(f"**`{setting.name}`** ({'; '.join(facts)}): {setting.doc}")


def wrapped(text: str) -> str:
    """Lines of a list's entry."""
    return "\n  ".join(fill(text, 110, break_long_words=False, break_on_hyphens=False).splitlines())


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
        *[entry(setting) for setting in sorted(settings, key=lambda setting: setting.name)],
        *more,
        "\n## Refused\n",
        *["- " + wrapped(f"`{name}`: {why}") for name, why in NOT_HERE.items()],
        "- `ssl.*`, `sasl.*`: only PLAINTEXT is spoken",
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
