"""Stores that Java's keytool made, and PEM as people have it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from authorities import ca_pem, certified
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from java_tools import keytool

from logkernel.errors import ConfigError
from logkernel.security.stores import identity, trusted
from logkernel.security.tls import TlsSettings
from logkernel.security.tls_contexts import client_context, server_context

STORE_PASSWORD, KEY_PASSWORD = "st0re-pl4nted", "k3y-pl4nted"


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`FORMAT.keys` with a key and two certificates, `FORMAT.trust` with two trusted ones, `chain.pem` of the first."""
    folder = tmp_path_factory.mktemp("stores")
    (folder / "other.pem").write_text(ca_pem("another"))
    for name, kind in {"jks": "JKS", "p12": "PKCS12"}.items():
        keys, trust = folder / f"{name}.keys", folder / f"{name}.trust"
        store = ["-keystore", str(keys), "-storetype", kind, "-storepass", STORE_PASSWORD]
        password = ["-keypass", KEY_PASSWORD] if kind == "JKS" else []
        ca = ["-ext", "bc:c", "-keyalg", "EC"]
        keytool("-genkeypair", "-alias", "root", "-dname", "CN=root", *ca, *store, *password)
        keytool("-genkeypair", "-alias", "own", "-dname", "CN=own.example", "-keyalg", "RSA", *store, *password)
        request = keytool("-certreq", "-alias", "own", *store, *password)
        issued = keytool(
            "-gencert", "-alias", "root", "-rfc", "-ext", "san=dns:own.example", *store, *password, stdin=request
        )
        keytool("-importcert", "-alias", "own", "-noprompt", *store, *password, stdin=issued)
        root = keytool("-exportcert", "-alias", "root", "-rfc", *store)
        (folder / f"{name}.pem").write_bytes(issued)
        (folder / f"{name}.root").write_bytes(root)
        keytool("-delete", "-alias", "root", *store)
        into = ["-keystore", str(trust), "-storetype", kind, "-storepass", STORE_PASSWORD, "-noprompt"]
        keytool("-importcert", "-alias", "root", *into, stdin=root)
        keytool("-importcert", "-alias", "other", *into, stdin=ca_pem("another").encode())
    return folder


def ders(pem: str) -> list[bytes]:
    return [one.public_bytes(Encoding.DER) for one in x509.load_pem_x509_certificates(pem.encode())]


@pytest.mark.parametrize("format", ["jks", "p12"])
@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "pkcs12"])
def test_a_keystore_of_keytool_gives_key_and_chain(stores: Path, format: str, kind: str) -> None:
    """Its type may be the other one's, as in Java, where the default type reads both."""
    given = TlsSettings(
        ssl_keystore_type=kind,
        ssl_keystore_location=str(stores / f"{format}.keys"),
        ssl_keystore_password=STORE_PASSWORD,
        ssl_key_password=KEY_PASSWORD if format == "jks" else "",
    )
    found = identity(given)
    assert found is not None
    expected = (stores / f"{format}.pem").read_text() + (stores / f"{format}.root").read_text()
    assert ders(found.chain) == ders(expected)
    key = serialization.load_pem_private_key(found.key.encode(), None)
    assert key.public_key() == x509.load_pem_x509_certificate(found.chain.encode()).public_key()
    assert "PRIVATE" not in repr(found)
    server_context(given)


@pytest.mark.parametrize("format", ["jks", "p12"])
def test_a_truststore_of_keytool_gives_its_certificates(stores: Path, format: str) -> None:
    given = TlsSettings(ssl_truststore_location=str(stores / f"{format}.trust"), ssl_truststore_password=STORE_PASSWORD)
    found = trusted(given)
    assert found is not None
    assert set(ders(found)) == set(ders((stores / f"{format}.root").read_text() + ca_pem("another")))
    assert len(client_context(given).get_ca_certs()) >= 1


def test_a_jks_truststore_opens_without_password(stores: Path) -> None:
    """Java leaves the digest unchecked then."""
    assert trusted(TlsSettings(ssl_truststore_location=str(stores / "jks.trust"))) is not None


@pytest.mark.parametrize(
    ("name", "store_password", "key_password", "said"),
    [
        ("jks.keys", "wrong", KEY_PASSWORD, "check ssl.keystore.password"),
        ("jks.keys", STORE_PASSWORD, "wrong", "set ssl.key.password"),
        ("jks.keys", STORE_PASSWORD, "", "set ssl.key.password"),
        ("p12.keys", "wrong", "", "check ssl.keystore.password"),
        ("p12.keys", "", "", "check ssl.keystore.password"),
        ("jks.trust", STORE_PASSWORD, "", "give a keystore"),
        ("p12.trust", STORE_PASSWORD, "", "give a keystore"),
    ],
)
def test_a_keystore_that_does_not_open_says_why(
    stores: Path, name: str, store_password: str, key_password: str, said: str
) -> None:
    location = str(stores / name)
    with pytest.raises(ConfigError) as refused:
        identity(
            TlsSettings(
                ssl_keystore_location=location, ssl_keystore_password=store_password, ssl_key_password=key_password
            )
        )
    assert location in str(refused.value)
    assert f"; {said}" in str(refused.value)
    assert "pl4nted" not in str(refused.value)
    assert "pl4nted" not in repr(refused.value.__cause__)


@pytest.mark.parametrize("name", ["jks.keys", "p12.trust"])
def test_a_truststore_that_does_not_open_says_why(stores: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"; check ssl\.truststore\.password") as refused:
        trusted(TlsSettings(ssl_truststore_location=str(stores / name), ssl_truststore_password="wrong"))
    assert name in str(refused.value)


@pytest.mark.parametrize(("name", "password"), [("jks.keys", ""), ("jks.trust", ""), ("p12.trust", STORE_PASSWORD)])
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(data=st.data())
def test_a_damaged_store_is_an_error_of_ours(
    stores: Path, tmp_path: Path, name: str, password: str, data: st.DataObject
) -> None:
    whole = bytearray((stores / name).read_bytes())
    cut = data.draw(st.integers(1, len(whole)))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    damaged = tmp_path / "damaged"
    damaged.write_bytes(whole[:cut])
    given = TlsSettings(
        ssl_keystore_location=str(damaged),
        ssl_truststore_location=str(damaged),
        ssl_keystore_password=password,
        ssl_truststore_password=password,
        ssl_key_password=KEY_PASSWORD,
    )
    for read in (identity, trusted):
        try:
            read(given)
        except ConfigError as refused:
            text = str(refused)
            assert "pl4nted" not in text
    assert cut


def encrypted_key(password: bytes) -> str:
    key = serialization.load_pem_private_key(certified().key.encode(), None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password)).decode()


def traditional_key(password: bytes) -> str:
    key = serialization.load_pem_private_key(certified().key.encode(), None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, BestAvailableEncryption(password)).decode()


@pytest.mark.parametrize("made", [encrypted_key, traditional_key])
def test_an_encrypted_key_needs_its_password(made: Callable[[bytes], str]) -> None:
    given = {
        "ssl_keystore_type": "PEM",
        "ssl_keystore_key": made(b"pl4nted"),
        "ssl_keystore_certificate_chain": certified().chain,
    }
    server_context(TlsSettings(**given, ssl_key_password="pl4nted"))
    for password, text in (("wrong", "check ssl.key.password"), ("", "is encrypted; set ssl.key.password")):
        with pytest.raises(ConfigError, match=text):
            server_context(TlsSettings(**given, ssl_key_password=password))


@pytest.mark.parametrize("joiner", ["\n", " ", "\r\n"])
def test_a_pem_may_stand_on_one_line(joiner: str) -> None:
    """As in a properties file or an environment variable."""

    def joined(pem: str) -> str:
        return joiner.join(pem.splitlines())

    given = TlsSettings(
        ssl_keystore_type="PEM",
        ssl_keystore_key=joined(certified().key),
        ssl_keystore_certificate_chain=joined(certified().chain),
        ssl_truststore_type="PEM",
        ssl_truststore_certificates=joined(ca_pem()),
    )
    server_context(given)
    assert ders(trusted(given) or "") == ders(ca_pem())


def test_a_pem_file_has_key_and_certificates_in_any_order(tmp_path: Path) -> None:
    file = tmp_path / "listener.pem"
    file.write_text("Subject: a comment\n" + certified().chain + "\n" + certified().key)
    server_context(TlsSettings(ssl_keystore_type="PEM", ssl_keystore_location=str(file)))
    with pytest.raises(ConfigError, match=r"looks like PEM; set ssl\.keystore\.type=PEM"):
        server_context(TlsSettings(ssl_keystore_location=str(file)))


def test_librdkafkas_two_files_are_a_keystore(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text(certified().chain)
    (tmp_path / "key.pem").write_text(encrypted_key(b"pw"))
    server_context(
        TlsSettings(
            ssl_certificate_location=str(tmp_path / "cert.pem"),
            ssl_key_location=str(tmp_path / "key.pem"),
            ssl_key_password="pw",
        )
    )


def test_without_settings_there_are_no_stores() -> None:
    assert identity(TlsSettings()) is None
    assert trusted(TlsSettings()) is None


def test_an_unknown_type_is_refused(stores: Path) -> None:
    with pytest.raises(ConfigError, match="'BCFKS' is unknown; use one of PEM, PKCS12, JKS"):
        identity(TlsSettings(ssl_keystore_type="BCFKS", ssl_keystore_location=str(stores / "jks.keys")))


def test_an_old_pkcs12_of_java_8_opens(stores: Path, tmp_path: Path) -> None:
    """RC2 and 3DES, which OpenSSL 3 has in its legacy provider only."""
    old = tmp_path / "old.p12"
    keytool(
        "-J-Dkeystore.pkcs12.legacy",
        "-importcert",
        "-alias",
        "root",
        "-noprompt",
        "-keystore",
        str(old),
        "-storetype",
        "PKCS12",
        "-storepass",
        STORE_PASSWORD,
        stdin=ca_pem().encode(),
    )
    found = trusted(TlsSettings(ssl_truststore_location=str(old), ssl_truststore_password=STORE_PASSWORD))
    assert ders(found or "") == ders(ca_pem())
