"""Contexts from Kafka's settings, and contexts that follow their files."""

from __future__ import annotations

import logging
import os
import ssl
from pathlib import Path

import attrs
import pytest
from authorities import ca_pem, certified, exchange, settings

from logkernel.errors import ConfigError
from logkernel.security.cipher_suites import by_openssl
from logkernel.security.tls import TlsSession, TlsSettings
from logkernel.security.tls_contexts import ReloadingContext, client_context, server_context

UNREADABLE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("given", "lowest", "highest"),
    [
        (("TLSv1.2", "TLSv1.3"), V12, V13),
        (("TLSv1.3", "TLSv1.2", "TLSv1.1", "TLSv1"), V12, V13),
        (("TLSv1.2",), V12, V12),
        (("TLSv1.3",), V13, V13),
        ((), V13, V13),
    ],
)
def test_enabled_protocols_bound_the_versions(
    given: tuple[str, ...], lowest: ssl.TLSVersion, highest: ssl.TLSVersion
) -> None:
    context = client_context(settings(ssl_enabled_protocols=given))
    assert (context.minimum_version, context.maximum_version) == (lowest, highest)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"ssl_enabled_protocols": ("TLSv1.1", "SSLv3")}, "add TLSv1.2 or TLSv1.3"),
        ({"ssl_enabled_protocols": ("TLSv1.4",)}, "'TLSv1.4' is unknown"),
        ({"ssl_protocol": "tls"}, "'tls' is unknown"),
        ({"ssl_endpoint_identification_algorithm": "none"}, "use https, or nothing"),
        ({"ssl_cipher_suites": ("!aNULL",)}, "'!aNULL' of ssl.cipher.suites is unknown"),
        ({"ssl_cipher_suites": ("ALL:@SECLEVEL=0",)}, "is unknown"),
        ({"ssl_cipher_suites": ("TLS_NULL_WITH_NULL_NULL",)}, "is unknown"),
        ({"ssl_cipher_suites": ("AES128-NO-SUCH",)}, "OpenSSL has none"),
        (
            {"ssl_cipher_suites": ("AES128-SHA",), "ssl_enabled_protocols": ("TLSv1.3",)},
            "no suite of ssl.cipher.suites",
        ),
        ({"ssl_keystore_location": "/no/such"}, "cannot read ssl.keystore.location=/no/such: No such file"),
        ({"ssl_truststore_location": "/"}, "cannot read ssl.truststore.location=/: Is a directory"),
        ({"ssl_truststore_location": "a\0b"}, "cannot read ssl.truststore.location"),
        ({"ssl_truststore_location": os.devnull}, "is empty"),
        ({"ssl_truststore_certificates": "none"}, "has no certificate"),
        (
            {"ssl_truststore_certificates": UNREADABLE},
            "cannot be read",
        ),
        ({"ssl_keystore_key": certified().key}, "1 private keys and 0 certificates"),
        ({"ssl_keystore_certificate_chain": certified().chain}, "0 private keys and"),
        ({"ssl_keystore_key": certified().key, "ssl_keystore_certificate_chain": ca_pem()}, "not a pair"),
        ({"ssl_keystore_type": "JKS", "ssl_keystore_key": certified().key}, "set ssl.keystore.type=PEM"),
        ({"ssl_truststore_type": "JKS", "ssl_truststore_certificates": ca_pem()}, "set ssl.truststore.type=PEM"),
        ({"ssl_certificate_location": "x"}, "set both"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(change: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        client_context(settings(**change))
    assert text in str(refused.value)
    assert ";" in str(refused.value)
    assert "BEGIN" not in str(refused.value)


def test_a_listener_needs_a_certificate_and_a_known_way_to_ask() -> None:
    with pytest.raises(ConfigError, match="has no certificate"):
        server_context(settings())
    with pytest.raises(ConfigError, match="'want'; use one of none, requested, required"):
        server_context(settings(certified(), ssl_client_auth="want"))


def test_javas_names_of_cipher_suites_are_openssls() -> None:
    suites = {
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
        "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256": "DHE-RSA-AES256-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
        "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
        "TLS_RSA_WITH_AES_128_CCM_8": "AES128-CCM8",
        "ECDHE-RSA-AES128-GCM-SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    }
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for java, name in suites.items():
        assert by_openssl([java]) == ([name], False)
        context.set_ciphers(name)
        assert name in {cipher["name"] for cipher in context.get_ciphers()}, "OpenSSL knows it by this name"
    assert by_openssl(["TLS_AES_128_GCM_SHA256"]) == ([], True)


@pytest.mark.parametrize(
    ("suites", "lowest", "highest"),
    [
        (("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",), V12, V12),
        (("TLS_AES_256_GCM_SHA384",), V13, V13),
        (("TLS_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"), V12, V13),
    ],
)
def test_suites_choose_their_versions(suites: tuple[str, ...], lowest: ssl.TLSVersion, highest: ssl.TLSVersion) -> None:
    """A list without a suite of TLS 1.3 turns that off, as in Java."""
    context = client_context(settings(ssl_cipher_suites=suites))
    assert (context.minimum_version, context.maximum_version) == (lowest, highest)


def write_listener(folder: Path, host: str) -> None:
    (folder / "key.pem").write_text(certified(host).key)
    (folder / "chain.pem").write_text(certified(host).chain)


def listener_files(folder: Path) -> TlsSettings:
    return TlsSettings(ssl_key_location=str(folder / "key.pem"), ssl_certificate_location=str(folder / "chain.pem"))


def shown(context: ssl.SSLContext) -> bytes | None:
    """The certificate that a listener with this context shows."""
    client = TlsSession(
        client_context(settings(trusts="ours", ssl_endpoint_identification_algorithm="")), server_side=False
    )
    exchange(client, TlsSession(context, server_side=True))
    return client.peer_certificate


def der(host: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certified(host).chain)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_listener_shows_its_new_certificate(tmp_path: Path) -> None:
    write_listener(tmp_path, "before.example")
    clock = Clock()
    context = ReloadingContext(listener_files(tmp_path), clock, check_s=1.0)
    first = context.current()
    assert shown(first) == der("before.example")
    write_listener(tmp_path, "after.example")
    assert context.current() is first, "files are looked at once a second"
    clock.now = 1.0
    assert shown(context.current()) == der("after.example")
    clock.now = 2.0
    assert context.current() is context.current()


def test_a_file_behind_a_new_link_is_seen(tmp_path: Path) -> None:
    """As Kubernetes changes a mounted secret."""
    for host in ("one.example", "two.example"):
        (tmp_path / host).mkdir()
        write_listener(tmp_path / host, host)
    link = tmp_path / "data"
    link.symlink_to("one.example")
    clock = Clock()
    context = ReloadingContext(listener_files(link), clock)
    (tmp_path / "new").symlink_to("two.example")
    (tmp_path / "new").replace(link)
    clock.now = 1.0
    assert shown(context.current()) == der("two.example")


@pytest.mark.parametrize("bad", ["half", "mismatch", "gone", "unreadable"])
def test_a_bad_new_file_keeps_the_old_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, bad: str
) -> None:
    write_listener(tmp_path, "before.example")
    clock = Clock()
    context = ReloadingContext(listener_files(tmp_path), clock)
    chain = tmp_path / "chain.pem"
    match bad:
        case "half":
            chain.write_text(certified("after.example").chain[:200])
        case "mismatch":
            chain.write_text(certified("after.example").chain)
        case "gone":
            chain.unlink()
        case _:
            chain.write_bytes(b"\xff\xfe\x00")
    for _ in range(3):
        clock.now += 1
        assert shown(context.current()) == der("before.example")
    (said,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert "keeps its certificate" in said.getMessage()
    assert ";" in said.getMessage()
    assert "BEGIN" not in said.getMessage()
    write_listener(tmp_path, "after.example")
    clock.now += 1
    assert shown(context.current()) == der("after.example")


def test_a_listener_does_not_begin_with_bad_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read ssl\.key\.location"):
        ReloadingContext(listener_files(tmp_path))


def test_a_weak_certificate_is_called_weak(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ssl.SSLError(1, "[SSL: CA_MD_TOO_WEAK] ca md too weak")
    error.reason = "CA_MD_TOO_WEAK"

    def refuse(self: ssl.SSLContext, *given: object, **more: object) -> None:
        raise error

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", refuse)
    with pytest.raises(ConfigError, match="too weak: have it issued with SHA-256"):
        server_context(settings(certified()))


def test_no_copy_of_a_key_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delattr("os.memfd_create", raising=False)
    before = set(tmp_path.rglob("*"))
    server_context(settings(certified()))
    with pytest.raises(ConfigError):
        server_context(attrs.evolve(settings(certified()), ssl_keystore_certificate_chain=ca_pem()))
    assert set(tmp_path.rglob("*")) == before
