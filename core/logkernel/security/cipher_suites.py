"""Names of cipher suites: Java's, which are IANA's, as OpenSSL's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from logkernel.errors import ConfigError

TLS13 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
"""Python's ssl has them on or off together, with TLS 1.3."""
_IANA = re.compile(r"TLS_(ECDHE_RSA|ECDHE_ECDSA|DHE_RSA|RSA)_WITH_(.+)")
_AES = re.compile(r"AES_(128|256)_(?:(GCM|CCM|CCM_8)|CBC)(?:_(SHA|SHA256|SHA384))?")
_OPENSSL = re.compile(r"[A-Z0-9][A-Z0-9-]{2,63}")


def by_openssl(suites: Sequence[str]) -> tuple[list[str], bool]:
    """OpenSSL's names of those before TLS 1.3, and whether one of TLS 1.3 is among them. Raises `ConfigError`."""
    older = [_name(suite) for suite in suites if suite not in TLS13]
    return older, len(older) < len(suites)


def _name(suite: str) -> str:
    """Never a rule of OpenSSL's list, such as `!aNULL` or `@SECLEVEL=0`."""
    if iana := _IANA.fullmatch(suite):
        exchange = "" if iana[1] == "RSA" else iana[1].replace("_", "-") + "-"
        if iana[2] == "CHACHA20_POLY1305_SHA256":
            return f"{exchange}CHACHA20-POLY1305"
        if aes := _AES.fullmatch(iana[2]):
            mode = "-" + aes[2].replace("_", "") if aes[2] else ""
            digest = f"-{aes[3]}" if aes[3] else ""
            return f"{exchange}AES{aes[1]}{mode}{digest}"
    elif _OPENSSL.fullmatch(suite) and "-" in suite:
        return suite
    raise ConfigError(
        f"the cipher suite {suite!r} of ssl.cipher.suites is unknown; use names such as "
        f"{TLS13[0]} or TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    )
