"""PEM (RFC 7468): blocks of base64, each with a label."""

from __future__ import annotations

import re

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


def blocks(text: str) -> list[tuple[str, str]]:
    """Label and PEM of each block, in lines as OpenSSL wants them: settings often have a PEM on one line."""
    return [(found[1], found[0] if ":" in found[2] else armored(found[1], found[2])) for found in _BLOCK.finditer(text)]


def armored(label: str, base64_text: str) -> str:
    body = "".join(base64_text.split())
    lines = [body[start : start + 64] for start in range(0, len(body), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"])
