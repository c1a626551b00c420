"""Writes docs/producer-settings.md, docs/consumer-settings.md and docs/client-security-settings.md:
`python docs/generate_client_settings.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from textwrap import fill

from logkernel.client.settings.consumer import CONSUMER
from logkernel.client.settings.producer import ALIASES, PRODUCER
from logkernel.client.settings.table import COMMON, NOT_HERE, ClientSetting
from logkernel.config.values import TYPE_NAMES, render
from logkernel.security.client_table import CLIENT_SECURITY, REFUSED, SYNONYMS, WITHOUT_EFFECT

OF_SECURITY = {setting.name for setting in CLIENT_SECURITY}

HEAD = """\
# Settings of the {client}

Written by `docs/generate_client_settings.py`; a test fails when it is stale.

Write these names as keywords, with `_` for `.`:

    log.{example}

`log` is an embedded log (`logkernel.open`) or a cluster (`logkernel.connect`). Keywords of `connect` are the
defaults of all its clients.

Names, types, bounds and defaults are Apache Kafka's, unless the setting says otherwise. A setting that is unknown, out
of bounds or in conflict with another raises `ConfigError`.

Every client also takes the settings of [TLS and SASL](client-security-settings.md).
"""

SECURITY_HEAD = """\
# Settings of TLS and SASL

Written by `docs/generate_client_settings.py`; a test fails when it is stale.

Every client takes them; [security.md](security.md) shows how. Names, types and defaults are Apache Kafka's, or
librdkafka's where Kafka has none. Values of the type password are shown as `[hidden]`, in errors and elsewhere.
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


def entries(settings: Iterable[ClientSetting]) -> list[str]:
    return [entry(setting) for setting in sorted(settings, key=lambda setting: setting.name)]


def refused(why: Mapping[str, str]) -> list[str]:
    return ["\n## Refused\n", *["- " + wrapped(f"`{name}`: {text}") for name, text in why.items()]]


def page(head: str, settings: Iterable[ClientSetting], more: Iterable[str]) -> str:
    """A client's settings, without those that say who it is."""
    own = [setting for setting in settings if setting.name not in OF_SECURITY]
    why = {name: text for name, text in NOT_HERE.items() if name not in REFUSED}
    return "\n".join([head, *entries(own), *more, *refused(why)]) + "\n"


def producer_page() -> str:
    example = 'producer(linger_ms=20, compression_type="zstd")'
    return page(HEAD.format(client="producer", example=example), PRODUCER, aliases())


def consumer_page() -> str:
    example = 'consumer("orders", group="billing", auto_offset_reset="earliest")'
    return page(HEAD.format(client="consumer", example=example), CONSUMER, ())


def security_page() -> str:
    names = [
        "\n## librdkafka's names\n",
        "They mean the same, and are taken too.\n",
        "| name | is |",
        "|---|---|",
        *[f"| `{name}` | `{kafkas}` |" for name, kafkas in SYNONYMS.items()],
        "\n## Without effect\n",
        wrapped("Taken with a warning: " + ", ".join(f"`{name}`" for name in sorted(WITHOUT_EFFECT))).replace(
            "\n  ", "\n"
        ),
    ]
    settings = [setting for setting in COMMON if setting.name in OF_SECURITY]
    return "\n".join([SECURITY_HEAD, *entries(settings), *names, *refused(REFUSED)]) + "\n"


PAGES: Mapping[Path, Callable[[], str]] = {
    Path(__file__).with_name("producer-settings.md"): producer_page,
    Path(__file__).with_name("consumer-settings.md"): consumer_page,
    Path(__file__).with_name("client-security-settings.md"): security_page,
}

if __name__ == "__main__":
    for path, text in PAGES.items():
        path.write_text(text(), encoding="utf-8")
