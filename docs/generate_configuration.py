"""Writes docs/configuration.md from the tables of `logkernel.config`: `python docs/generate_configuration.py`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from textwrap import fill

from logkernel.config import unused
from logkernel.config.definitions import Setting
from logkernel.config.tables import tables
from logkernel.config.values import type_name
from logkernel.kernel import Kernel

PAGE = Path(__file__).with_name("configuration.md")

HEAD = """\
# Settings

Written by `docs/generate_configuration.py`; a test fails when it is stale.

You give settings in a file (`--config`) and by `--set name=value`, which wins over the file. The file is YAML, as
below, or a Kafka `server.properties`. You can change a setting that is marked *live* while the broker runs
(AlterConfigs), for one broker or for all.

Names, types, bounds and defaults are those of Apache Kafka 4.x, unless a setting says that it is logkernel's own.

```yaml
broker: {node.id: 1, listeners: 127.0.0.1:9092, log.dirs: ./data}   # the scheme is optional: PLAINTEXT://
plugins: {allow: [acme-geo-partitioner], block: [cleanup-delete]}   # distributions; entry points
topics:                                                             # created when absent, applied at start
  orders: {partitions: 6, replication.factor: 1, partitioner: keyed, retention.ms: 604800000, election: unclean}
```

- **Topics**: a topic's own setting wins over the broker's. "Default from" names the broker's setting.
- **Topics of the file** that do not exist are created at the start. An existing topic gets the partitions that it lacks
  of the file's number, and never loses one.
- **Times in several units**: ms wins over minutes, and minutes over hours, wherever you write them.
- **Lists** are comma-separated, or YAML lists.
- **Unknown names** are refused, with the nearest known one. In a Kafka `server.properties` they have no effect and
  cause a warning, as in Kafka; so does a topic's name (`retention.ms`) at the level of the broker.
- **`election` and `unclean.leader.election.enable`** are two names of one setting; a conflict is refused.
- **Plugins**, such as groups, transactions and share groups, bring their own settings. If you block a plugin, its
  settings are unknown. [hooks.md](hooks.md#logkernel_settings) says how your plugin brings settings.
- **`plugins.allow` and `plugins.block`** work in a `server.properties` and with `--set`, too. A setting that names a
  blocked plugin is refused; a default that names one causes a warning.
- **`listeners`** without those named in `controller.listener.names` are used, so the file of a KRaft broker works.

These defaults differ from Kafka's: `listeners` is this machine only, `log.dir` is `./data`, `node.id` is 1.
"""


def entry(setting: Setting) -> str:
    """An entry of a list: name (type, default; bounds): what it does."""
    facts = [type_name(setting.type)]
    if setting.default is not None:
        facts.append(f"default `{setting.default}`" if setting.default else "default empty")
    if setting.validator is not None:
        facts.append(str(setting.validator))
    if setting.dynamic:
        facts.append("live")
    behind = f" Default from: {', '.join(f'`{name}`' for name in setting.synonyms)}." if setting.synonyms else ""
    return "- " + wrapped(f"**`{setting.name}`** ({'; '.join(facts)}): {setting.doc}{behind}")


def wrapped(text: str) -> str:
    """Lines of a list's entry."""
    return "\n  ".join(fill(text, 110, break_long_words=False, break_on_hyphens=False).splitlines())


def entries(settings: Iterable[Setting]) -> list[str]:
    return [entry(setting) for setting in sorted(settings, key=lambda setting: setting.name)]


def page() -> str:
    known = tables().with_plugins(Kernel(allow=()).declarations())
    names = ", ".join(f"`{name}`" for name in sorted(unused.names() - known.broker.keys()))
    parts = [
        HEAD,
        "## Topics\n",
        *entries(known.topic.values()),
        "\n## Brokers\n",
        *entries(known.broker.values()),
        "\n## Groups\n",
        "Set for one group by AlterConfigs on the resource type 32 (group), within the broker's bounds.\n",
        *entries(known.group.values()),
        "\n## Kafka settings without effect here\n",
        "Accepted with a warning, so that you can use a Kafka broker's file as it is. A running broker takes those\n"
        "that a running Kafka takes, and shows the values that you gave.\n",
        fill(names + ".", 110, break_long_words=False, break_on_hyphens=False),
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
