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

Names, types, bounds and defaults are those of Apache Kafka 4.x; a setting of logkernel's own says so. They are read
from a file (`--config`: the YAML below, or a Kafka `server.properties`) and from `--set name=value`, which stands above
the file. What is marked *live* can be changed while the broker runs (AlterConfigs), for one broker or for all.

```yaml
broker: {node.id: 1, listeners: 127.0.0.1:9092, log.dirs: ./data}   # the scheme is optional: PLAINTEXT://
plugins: {allow: [acme-geo-partitioner], block: [cleanup-delete]}   # distributions; entry points
topics:                                                             # created when absent, applied at start
  orders: {partitions: 6, replication.factor: 1, partitioner: keyed, retention.ms: 604800000, election: unclean}
```

- Where a time comes in several units, ms rules over minutes, and minutes over hours, wherever they were written.
- A topic's own setting rules over the broker's; the broker's setting that stands behind it is named beside it.
- `election` and `unclean.leader.election.enable` are one setting with two names; a conflict is refused.
- A topic that exists is given the partitions that it lacks of the file's number, and loses none.
- Lists are comma-separated, or YAML lists.
- An unknown name is refused with the nearest known one. In a Kafka `server.properties` it is warned of, as Kafka does:
  it has no effect there, and neither has a topic's name (`retention.ms`) at the level of the broker.
- Groups, transactions, share groups and other plugins bring their own settings; a plugin that is blocked takes them
  with it. [hooks.md](hooks.md#logkernel_settings) says how a plugin brings its own.
- `plugins.allow` and `plugins.block` may also stand in a `server.properties` and behind `--set`. What names a blocked
  plugin is refused; a default that does is warned of.
- Of `listeners`, those named in `controller.listener.names` are left out, so that a KRaft broker's file can be used.

Defaults that differ from Kafka's: `listeners` is this machine alone, `log.dir` is `./data`, `node.id` is 1.
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
        "Kept for one group by AlterConfigs on the resource type 32 (group), within the broker's bounds.\n",
        *entries(known.group.values()),
        "\n## Kafka settings without effect here\n",
        "Accepted with a warning, so that a Kafka broker's file can be used as it is; a running broker takes those\n"
        "that a running Kafka takes, and shows what was given.\n",
        fill(names + ".", 110, break_long_words=False, break_on_hyphens=False),
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
