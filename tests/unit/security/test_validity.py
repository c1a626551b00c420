"""The time of a certificate, and what a listener says of it."""

from __future__ import annotations

import logging
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from authorities import authority, settings
from hypothesis import given
from hypothesis import strategies as st

from logkernel.security.tls_contexts import ReloadingContext
from logkernel.security.validity import wrong_now

END = datetime(2040, 5, 6, 7, 8, 9, tzinfo=UTC)


def issued(end: datetime) -> tuple[str, str]:
    made = authority("ours").issue_cert("localhost", not_after=end)
    return made.private_key_pem.bytes().decode(), made.cert_chain_pems[0].bytes().decode()


@pytest.mark.parametrize("end", [END, END.replace(year=2070)], ids=["UTCTime", "GeneralizedTime"])
def test_a_certificate_is_valid_from_its_first_second_to_its_last(end: datetime) -> None:
    certificate = ssl.PEM_cert_to_DER_cert(issued(end)[1])
    assert wrong_now(certificate, datetime.now(UTC)) is None
    assert wrong_now(certificate, end) is None
    assert wrong_now(certificate, end + timedelta(seconds=1)) == f"expired at {end.isoformat()}"
    assert str(wrong_now(certificate, datetime(1999, 1, 1, tzinfo=UTC))).startswith("is not valid before 20")


@given(st.binary(max_size=64), st.integers(0, 600))
def test_bytes_that_are_no_certificate_have_no_time(noise: bytes, cut: int) -> None:
    whole = ssl.PEM_cert_to_DER_cert(issued(END)[1])
    for der in (noise, whole[:cut], whole[:cut] + noise):
        wrong_now(der, datetime.now(UTC))


@pytest.mark.parametrize(("days", "said"), [(1, False), (-1, True)])
def test_a_listener_says_that_its_certificate_has_expired(
    caplog: pytest.LogCaptureFixture, days: int, said: bool
) -> None:
    key, chain = issued(datetime.now(UTC) + timedelta(days=days))
    ReloadingContext(settings(ssl_keystore_key=key, ssl_keystore_certificate_chain=chain))
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == said
    assert all("as it expired at 20" in text and text.endswith("; renew it") for text in warnings)
    assert "PRIVATE KEY" not in caplog.text
