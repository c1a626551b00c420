"""Why a server of ZooKeeper was of no use: what is said of its certificate, and what to do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from authorities import Certified, exchange, pair, settings
from cryptography.x509.oid import ExtendedKeyUsageOID
from issued_certificates import issued

from logkernel.errors import SslAuthenticationException
from logkernel.plugins.transport.zookeeper import SETTINGS
from logkernel.plugins.transport.zookeeper.options import Options
from logkernel.plugins.transport.zookeeper.refusals import refusal_of

OPTIONS = Options.of(
    {row.name: row.typed(row.default) if row.default is not None else None for row in SETTINGS}
    | {"zookeeper.connect": "127.0.0.1"}
)


@pytest.mark.parametrize(
    ("shown", "remedy"),
    [
        (issued("zk", ends=timedelta(hours=-1)), "certificate has expired; renew it, or set the clock right"),
        (
            issued("zk", usages=(ExtendedKeyUsageOID.CLIENT_AUTH,)),
            "unsuitable certificate purpose; issue one whose extended key usage has serverAuth, or which has none",
        ),
        (issued("zk", by="others"), "unable to get local issuer certificate; put the CA of its certificate into"),
        (issued("zk", host="127.0.0.9"), "name it in zookeeper.connect as its certificate does"),
    ],
    ids=["expired", "not for servers", "another authority", "another host"],
)
def test_the_remedy_is_for_what_is_wrong_with_the_certificate(shown: Certified, remedy: str) -> None:
    """For one that had expired, it was to trust the CA that signed it."""
    with pytest.raises(SslAuthenticationException) as failed:
        exchange(*pair(settings(trusts="ours"), settings(shown), "127.0.0.1"))
    cause = failed.value.__cause__
    assert cause is not None
    found = refusal_of("127.0.0.1:2182", cause, OPTIONS)
    assert found is not None
    assert found.is_certain
    assert remedy in found.text
