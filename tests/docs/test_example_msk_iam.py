"""The example `acme-msk-iam` makes the tokens of AWS's own signer, and a client finds it by its entry point."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from module_files import load_module
from outside_distribution import lay_out

from logkernel.errors import SaslAuthenticationFailed
from logkernel.security.sasl.oauthbearer import client_first_of
from logkernel.security.settings import ClientSecurity

pytest.importorskip("botocore")
TESTS = Path(__file__).resolve().parents[1]
EXAMPLE = TESTS.parent / "examples" / "acme-msk-iam"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


RECORD = load_module(TESTS / "golden" / "msk_iam" / "record.py")
ROWS: list[dict[str, Any]] = json.loads((TESTS / "golden" / "msk_iam" / "tokens.json").read_text())


def url_of(token: str) -> str:
    """Without the name of the program, which is not signed."""
    assert "=" not in token
    url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    signed, _, agent = url.rpartition("&User-Agent=")
    assert agent
    return signed


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(EXAMPLE, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def sent(options: str) -> str:
    """The token that a client with these options sends first."""
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": "msk-iam",
        "sasl.jaas.config": f"{MODULE} {options};",
    }
    security = ClientSecurity.of(given)
    assert security is not None
    _, token, _ = client_first_of(security.mechanism("broker").respond(b"") or b"")
    return token


def test_it_is_short_enough_to_be_read() -> None:
    assert (EXAMPLE / "src" / "acme_msk_iam.py").read_text().count("\n") < 50


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("row", "credentials"), list(zip(ROWS, RECORD.CREDENTIALS, strict=True)))
def test_its_tokens_are_those_of_awss_signer(row: dict[str, Any], credentials: tuple[str, ...]) -> None:
    region, *secrets = credentials
    with (
        patch("botocore.auth.get_current_datetime", RECORD.at_that_moment),
        patch.dict(os.environ, RECORD.environment(*secrets)),
    ):
        assert url_of(sent(f'region="{region}"')) == url_of(row["token"])
        with patch.dict(os.environ, AWS_DEFAULT_REGION=region):
            token, lifetime_s = load_module(EXAMPLE / "src" / "acme_msk_iam.py").token({})
    assert url_of(token) == url_of(row["token"])
    assert RECORD.AT.timestamp() + lifetime_s == row["expires_ms"] / 1000


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("options", "key", "said"), [('region="eu-west-1"', "", "no AWS credentials"), ("", "AKID", "no AWS region")]
)
def test_what_is_missing_is_named(options: str, key: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with (
        patch.dict(os.environ, RECORD.environment(key, key, "")),
        pytest.raises(SaslAuthenticationFailed, match="raised ValueError; see its cause") as failed,
    ):
        sent(options)
    assert said in str(failed.value.__cause__)
