"""Rules that map Kerberos principals. `tests/interop/test_principal_names.py` has Kafka's word on them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kerberos_names import NAMES, REALM, RULES, WRONG

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.kerberos.short_names import MAX_NAME_CHARACTERS, ShortNames

FAILS = None
MAPPED: dict[str, tuple[str | None, ...]] = {
    "DEFAULT": ("alice", "Kafka", FAILS, FAILS, "plain", FAILS, FAILS, FAILS, FAILS),
    "RULE:[1:$1]": ("alice", FAILS, "bob", FAILS, "plain", FAILS, FAILS, FAILS, "aaa"),
    "RULE:[1:$1@$0](.*@OTHER.EXAMPLE)s/@.*//,DEFAULT": (
        "alice", "Kafka", "bob", FAILS, "plain", FAILS, FAILS, FAILS, FAILS,
    ),
    "RULE:[2:$1;$2](^.*;admin$)s/;admin$//": (FAILS, FAILS, FAILS, "bob", "plain", FAILS, FAILS, FAILS, FAILS),
    "RULE:[2:$2-$1]/L , DEFAULT": (
        "alice", "broker1.example.com-kafka", FAILS, "admin-bob", "plain", FAILS, FAILS, FAILS, FAILS,
    ),
    "RULE:[1:$1]/U,RULE:[2:$1]U": ("ALICE", "KAFKA", "BOB", "BOB", "plain", FAILS, FAILS, FAILS, "AAA"),
    "RULE:[1:$1]s/a/x/g": ("xlice", FAILS, "bob", FAILS, "plain", FAILS, FAILS, FAILS, "xxx"),
    "RULE:[1:$1]s/a/x/": ("xlice", FAILS, "bob", FAILS, "plain", FAILS, FAILS, FAILS, "xaa"),
    "RULE:[1:$1]s/a*/-/g": ("--l-i-c-e-", FAILS, "-b-o-b-", FAILS, "plain", FAILS, FAILS, "-", "--"),
    "RULE:[1:$1]s/^(.)(.*)$/$2.$1/L": ("lice.a", FAILS, "ob.b", FAILS, "plain", FAILS, FAILS, FAILS, "aa.a"),
    "RULE:[1:$1]s/(b)?o/<$1>/g/U": ("ALICE", FAILS, "<B>B", FAILS, "plain", FAILS, FAILS, FAILS, "AAA"),
    "RULE:[1:$1]s/b/$0$0\\$/": ("alice", FAILS, "bb$ob", FAILS, "plain", FAILS, FAILS, FAILS, "aaa"),
    "RULE:[1:$1@$0],DEFAULT": (FAILS, "Kafka", FAILS, FAILS, "plain", FAILS, FAILS, FAILS, FAILS),
    "RULE:[1:$0-x$1y]": (
        "TEST.LOCAL-xalicey", FAILS, "OTHER.EXAMPLE-xboby", FAILS, "plain", FAILS, FAILS, "TEST.LOCAL-xy", "-xaaay",
    ),
    "RULE:[1:](.*)s//z/,RULE:[2:u]": ("z", "u", "z", "u", "plain", FAILS, FAILS, "z", "z"),
    "RULE:[1:$1](alice),RULE:[1:other]": ("alice", FAILS, "other", FAILS, "plain", FAILS, FAILS, "other", "other"),
    "RULE:[3:$1$2$3],RULE:[0:$0]": (FAILS, FAILS, FAILS, FAILS, "plain", FAILS, FAILS, FAILS, FAILS),
    "RULE:[2:$1](Kafka)s/K/k/g/": (FAILS, "kafka", FAILS, FAILS, "plain", FAILS, FAILS, FAILS, FAILS),
}  # fmt: skip


def shortened(rules: str, principal: str) -> str | None:
    try:
        return ShortNames(rules, REALM).of(principal)
    except SaslAuthenticationFailed:
        return FAILS


@pytest.mark.parametrize("rules", RULES)
def test_rules_map_as_kafkas(rules: str) -> None:
    assert tuple(shortened(rules, principal) for principal in NAMES) == MAPPED[rules]


@pytest.mark.parametrize("rules", [*WRONG, "RULE:[1:$2]", "RULE:[1:a$]", "RULE:[1:$1](?=a)", "RULE:[1:$1]s/a/$/"])
def test_a_wrong_rule_is_refused_with_the_remedy(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.kerberos\.principal\.to\.local\.rules.*; (write|correct)"):
        ShortNames(rules, REALM)


@pytest.mark.parametrize("principal", ["a\nb@TEST.LOCAL", "a\u2028b@TEST.LOCAL", "a" * MAX_NAME_CHARACTERS + "@T"])
def test_names_that_forge_a_log_or_fill_it_are_refused(principal: str) -> None:
    with pytest.raises(SaslAuthenticationFailed) as refused:
        ShortNames("RULE:[1:$1]", REALM).of(principal)
    assert len(str(refused.value)) < 500
    assert "\n" not in str(refused.value)


def test_a_pattern_that_backtracks_in_java_takes_linear_time() -> None:
    hostile = "a" * (MAX_NAME_CHARACTERS - 10) + "!@T"
    assert ShortNames("RULE:[1:$1]s/^(a*)*b//", REALM).of(hostile) == hostile[:-2]


@given(st.text(max_size=30))
def test_any_name_is_mapped_or_refused(principal: str) -> None:
    found = shortened("RULE:[1:$1]s/a/b/g,RULE:[2:$2]/U,DEFAULT", principal)
    assert found is FAILS or (found and not set(found) & {"\n", "\r", "@"})
