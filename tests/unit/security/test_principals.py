"""Names of certificates, and rules that map them. `tests/interop/test_principal_names.py` has Java's word on both."""

from __future__ import annotations

import pytest
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st
from x500_subjects import BMP_SUBJECT, NAMES, RULES, SUBJECTS, certificate, name

from logkernel.errors import ConfigError, SslAuthenticationException
from logkernel.security.principals import PrincipalMapping
from logkernel.security.x500_names import subject_name
from logkernel.vocabulary import ANONYMOUS, Principal

SERVICE, ADMIN, ALICE, SLASH, EMPTY = NAMES
COMMON_NAME = NameOID.COMMON_NAME
FAILS = None
MAPPED: dict[str, tuple[str | None, ...]] = {
    "DEFAULT": NAMES,
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/": ("kafka.example.com", FAILS, FAILS, FAILS, FAILS),
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, RULE:^CN=(.*?),OU=Admin$/adm-$1/U ,DEFAULT": (
        "kafka.example.com",
        "ADM-ADMINUSER",
        ALICE,
        SLASH,
        EMPTY,
    ),
    "RULE:^CN=(.*?)$/$1/L,\nDEFAULT": (
        "kafka.example.com,ou=serviceusers,o=org,c=de",
        "adminuser,ou=admin",
        "alice",
        "a\\,b,ou=x/y",
        EMPTY,
    ),
    "RULE:.*/x/": ("xx", "xx", "xx", "xx", "x"),
    "RULE:CN=(.*?)/$1/": (SERVICE[3:], ADMIN[3:], ALICE[3:], SLASH[3:], FAILS),
    "RULE:^CN=(\\w+)(?:,OU=(\\w+))?.*$/$2@$1/": ("@kafka", "Admin@adminUser", "@Alice", "@a", FAILS),
    "RULE:^CN=(.*?),.*$/$1$2$11/": (
        "kafka.example.com$2kafka.example.com1",
        "adminUser$2adminUser1",
        FAILS,
        "a\\$2a\\1",
        FAILS,
    ),
    "RULE:^.*OU=x\\/y$/a\\/b\\$1\\\\/": (FAILS, FAILS, FAILS, "a/b$1\\", FAILS),
    "RULE:^CN=Alice$/const/,RULE:^CN=.*$/other/": ("other", "other", "const", "other", FAILS),
    "RULE:^OU=none$/x/": (FAILS, FAILS, FAILS, FAILS, FAILS),
}


@pytest.mark.parametrize("expected", SUBJECTS)
def test_a_subject_is_named_as_java_names_it(expected: str) -> None:
    assert subject_name(certificate(SUBJECTS[expected])) == expected


def test_a_nul_is_written_and_a_bmp_string_read() -> None:
    assert subject_name(certificate(name((COMMON_NAME, "a\0b")))) == "CN=a\\00b"
    assert subject_name(certificate(BMP_SUBJECT)) == "CN=bmp ü"


def mapped(rules: str, given_name: str) -> str | None:
    try:
        return PrincipalMapping(rules).name(given_name)
    except SslAuthenticationException:
        return None


@pytest.mark.parametrize("rules", MAPPED)
def test_rules_map_names_as_kafkas_do(rules: str) -> None:
    assert tuple(mapped(rules, one) for one in NAMES) == MAPPED[rules]
    assert MAPPED.keys() == RULES.keys(), "Java is asked for the others too"


def test_a_certificate_makes_a_user_and_none_is_anonymous() -> None:
    mapping = PrincipalMapping("RULE:^CN=(.*?),.*$/$1/L,DEFAULT")
    assert mapping.principal(certificate(SUBJECTS["CN=alice,OU=Dev,O=Org,C=DE"])) == Principal("User", "alice")
    assert mapping.principal(None) == ANONYMOUS


@pytest.mark.parametrize("rules", ["", "  ", "DEFAULT", " DEFAULT ", "DEFAULT,", "\nDEFAULT\n"])
def test_without_rules_the_name_stays(rules: str) -> None:
    assert PrincipalMapping(rules).name("CN=x") == "CN=x"


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "RULE:",
        "RULE:x",
        "RULE:x/y",
        "RULE:x/y/Z",
        "RULE:x/y/LU",
        "RULE:x/y/z/",
        "DEFAULT RULE:x/y/",
        ",",
        "RULE:a/$x/",
        "RULE:a/b\\/",
    ],
)
def test_rules_that_cannot_be_read_are_refused(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules.*; "):
        PrincipalMapping(rules)


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "(a)\\1", "(?<!a)b", "a{1001}", "((a{100}){100}){100}", "[z-a]"])
def test_a_pattern_that_re2_does_not_run_is_refused(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="RE2 cannot run the pattern"):
        PrincipalMapping(f"RULE:{pattern}/x/")
    assert "re2.cc" not in capfd.readouterr().err


@pytest.mark.parametrize("pattern", ["(", "a{1001}", "[z-a]", "+"])
def test_a_pattern_that_is_wrong_everywhere_is_not_said_to_have_lookaround(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"; correct it$"):
        PrincipalMapping(f"RULE:{pattern}/x/")


@pytest.mark.parametrize("pattern", ["(?=a)", "(?!a)b", "(?<!a)b", "(?<=a)b", "(?>a)", "(a)\\1"])
def test_a_pattern_that_java_has_is_to_be_written_without_what_re2_lacks(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"; write it without lookaround and backreferences$"):
        PrincipalMapping(f"RULE:{pattern}/x/")


@pytest.mark.timeout(20)
def test_a_pattern_that_is_a_bomb_elsewhere_takes_linear_time() -> None:
    """Java and Python would try 2^100,000 ways."""
    mapping = PrincipalMapping("RULE:^CN=(a+)+$/$1/,RULE:^CN=(a|a)*b$/$1/,RULE:^(.*,)*x$/y/")
    with pytest.raises(SslAuthenticationException, match="no rule matches"):
        mapping.name("CN=" + "a" * 100_000 + "!")


@pytest.mark.parametrize("forged", ["two\nlines\t", "a\x1b[2K", "a\x85b", "a\u2028b", "a\x7f"])
def test_a_name_that_would_forge_a_log_is_refused(forged: str) -> None:
    der = certificate(name((COMMON_NAME, forged)))
    for rules in ("DEFAULT", "RULE:(?s)^CN=(.*)$/$1/", "RULE:^x$/y/"):
        with pytest.raises(SslAuthenticationException) as refused:
            PrincipalMapping(rules).principal(der)
        assert not set(str(refused.value)) & set("\n\x1b\x85\u2028\x7f\t")


@pytest.mark.parametrize("cut", [0, 1, 2, 10, 60, 100])
def test_a_cut_certificate_is_refused(cut: int) -> None:
    with pytest.raises(SslAuthenticationException, match="cannot be read"):
        subject_name(certificate(SUBJECTS["CN=\\ "])[:cut])


@given(st.binary(max_size=100))
def test_any_bytes_are_a_name_or_refused(der: bytes) -> None:
    try:
        assert isinstance(subject_name(der), str)
    except SslAuthenticationException as refused:
        refusal = str(refused)
        assert "; use another certificate" in refusal


@given(st.text(max_size=60), st.text(max_size=30))
def test_any_rules_are_read_or_refused(rules: str, given_name: str) -> None:
    try:
        mapping = PrincipalMapping(f"RULE:{rules}")
    except ConfigError:
        return
    assert isinstance(mapping, PrincipalMapping)
    assert mapped(f"RULE:{rules}", given_name) is None or mapping.name(given_name) is not None
