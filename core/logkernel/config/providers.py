"""Values that stand elsewhere: `${env:NAME}`, `${file:/path:key}` and `${directory:/path:file}` in a setting's text, as
Kafka's config providers resolve them (KIP-297, KIP-421). What is found is not looked into again.

Only files of the user's own are resolved so, never what a client sends (CVE-2024-31141).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from logkernel.config.properties import read_properties
from logkernel.errors import ConfigError

MAX_FILE_BYTES: Final = 1 << 20
_OTHER: Final = re.compile(r"\$\{([A-Za-z][\w-]*):[^}]*\}")
_NAMED: Final = re.compile(r"\$\{(env|file|directory):(?:([^}]*):)?([^}:]*)\}")


def names_another_place(text: str) -> bool:
    """Whether `resolved` would change it: what it gives may be a secret."""
    return _NAMED.search(text) is not None


def unknown_provider(text: str) -> str | None:
    """The name before the colon of a `${name:…}` that stays as it is."""
    found = _OTHER.search(_NAMED.sub("", text))
    return found[1] if found else None


def resolved(text: str, where: str) -> str:
    """Return the text with the values that it names; `where` it stands. Raises `ConfigError`, which shows none."""

    def value(found: re.Match[str]) -> str:
        try:
            return _value(found[1], found[2] or "", found[3])
        except (OSError, ValueError, KeyError) as error:
            why = getattr(error, "strerror", None) or str(error.args[0] if error.args else error)
            raise ConfigError(f"{where}: {found[0]}: {why}; check the name") from None

    return _NAMED.sub(value, text)


def _value(provider: str, path: str, key: str) -> str:
    if provider == "env":
        if key not in os.environ:
            raise KeyError("the environment has no such variable")
        return os.environ[key]
    if not path:
        raise ValueError(f"the path is missing, as in ${{{provider}:/path:name}}")
    if provider == "directory":
        if "/" in key or key in ("", ".", ".."):
            raise ValueError("the last part is not a file's name")
        return _read(Path(path) / key)
    rows = {row.name: row.text for row in read_properties(_read(Path(path)), path).broker}
    if key not in rows:
        raise KeyError("the file has no such key")
    return rows[key]


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"the file has more than {MAX_FILE_BYTES} bytes")
    return data.decode()
