"""Logins by keytab, as Java's login files and `sasl.jaas.config` have them, and ticket caches."""

from __future__ import annotations

from pathlib import Path

from kdcs import REALM

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"


def login(keytab: Path, principal: str, realm: str = REALM) -> str:
    return f'{MODULE} useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{realm}";'


def fill(cache: Path, keytab: Path, principal: str) -> None:
    """What kinit does."""
    import gssapi

    name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
    store = {"client_keytab": f"FILE:{keytab}", "ccache": f"FILE:{cache}"}
    assert gssapi.Credentials(name=name, usage="initiate", store=store).lifetime
