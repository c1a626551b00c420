"""Write the examples and promises of docs/plugins from the code. Run by hand; a test compares.

An example is what `logkernel plugin new` writes, the promises are the tests of the contract kit.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from textwrap import fill
from typing import Any

from logkernel.cli.plugin_new import files
from logkernel.testing.contracts import Kit, kits

FOLDER = Path(__file__).with_name("plugins")
PAGES = {
    "assignors": ("assignor", "acme-keep", "keep"),
    "authorizers": ("authorizer", "acme-teams", "teams"),
    "cleanup-policies": ("cleanup policy", "acme-newest", "newest"),
    "client-quota-callbacks": ("client quota callback", "acme-team-quotas", "teams"),
    "codecs": ("codec", "acme-quick", "gzip"),
    "coordinations": ("coordination", "acme-lines", "lines"),
    "decoders": ("decoder", "acme-tickets", "tickets"),
    "elections": ("election", "acme-highest", "highest"),
    "interceptors": ("interceptor", "acme-sender", "sender"),
    "isr-policies": ("isr", "acme-patience", "patience"),
    "metrics-reporters": ("metrics reporter", "acme-json", "json"),
    "partitioners": ("partitioner", "acme-prefix", "prefix"),
    "password-checkers": ("password checker", "acme-staff", "staff"),
    "placements": ("placement", "acme-one-rack", "one-rack"),
    "services": ("service", "acme-counters", "counters"),
    "task-assignors": ("task assignor", "acme-racks", "racks"),
    "transports": ("transport", "acme-watched", "tcp"),
}
"""Page → kind, distribution and name of its example."""
OTHERS = {
    "compaction-strategies": "compaction strategy",
    "fetch-filters": "fetch filter",
    "produce-interceptors": "produce interceptor",
    "quotas": "quota",
}
"""Pages with an example of their own."""


def promises(kit: type[Kit[Any]]) -> str:
    """What the kit's tests are called, and why."""
    lines = []
    for name, test in vars(kit).items():
        if name.startswith("test_"):
            why = " ".join((inspect.getdoc(test) or "").split())
            said = name.removeprefix("test_").replace("_", " ")
            lines.append(
                fill(f"- {said}{'. ' + why if why else ''}", 118, subsequent_indent="  ", break_on_hyphens=False)
            )
    return "\n".join(lines) + "\n"


def example(kind: str, distribution: str, name: str) -> str:
    found = files(kind, distribution, name)
    (module,) = (path for path in found if path.endswith(".py") and not path.startswith("test_"))
    return f"`{distribution}/{module}`:\n\n```python\n{found[module]}```\n"


def suite(kind: str, distribution: str, name: str) -> str:
    found = files(kind, distribution, name)
    (test,) = (path for path in found if path.startswith("test_"))
    return f"`{distribution}/{test}`:\n\n```python\n{found[test]}```\n"


def page(stem: str, text: str) -> str:
    """The page with its generated parts renewed."""
    kind, distribution, name = PAGES[stem]
    parts = {
        "example": example(kind, distribution, name),
        "suite": suite(kind, distribution, name),
        "promises": promises(kits()[kind]),
    }
    for part, said in parts.items():
        begin, end = f"<!-- {part} -->\n", f"<!-- /{part} -->\n"
        text, count = re.subn(f"{begin}.*?{end}", lambda _: f"{begin}{said}{end}", text, flags=re.DOTALL)  # noqa: B023
        if count != 1:
            raise ValueError(f"{stem}.md has {count} parts {begin.strip()}; give it one")
    return text


if __name__ == "__main__":
    for stem in PAGES:
        path = FOLDER / f"{stem}.md"
        path.write_text(page(stem, path.read_text(encoding="utf-8")), encoding="utf-8")
