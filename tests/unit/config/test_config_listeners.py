"""Addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from logkernel.config.broker import BrokerConfig
from logkernel.config.listeners import Listener, address, listening, parse_listeners
from logkernel.config.loading import load
from logkernel.config.of_listeners import MECHANISMS
from logkernel.config.sources import RawSetting
from logkernel.errors import ConfigError, InvalidConfig

PLAIN = {"listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT,CONTROL:PLAINTEXT"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:9092", [("PLAINTEXT", "127.0.0.1", 9092)]),
        ("PLAINTEXT://host:1", [("PLAINTEXT", "host", 1)]),
        (":9092", [("PLAINTEXT", "", 9092)]),
        ("plaintext://:0", [("PLAINTEXT", "", 0)]),
        ("[::1]:9092", [("PLAINTEXT", "::1", 9092)]),
        ("a:1, b:2", [("PLAINTEXT", "a", 1), ("PLAINTEXT-2", "b", 2)]),
        ("IN://a:1,OUT_SIDE://b:1", [("IN", "a", 1), ("OUT_SIDE", "b", 1)]),
        ("a:0,a:0", [("PLAINTEXT", "a", 0), ("PLAINTEXT-2", "a", 0)]),
    ],
)
def test_every_form_of_a_listener_is_parsed(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert parse_listeners(text) == tuple(Listener(*row) for row in expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("9092", "not an address"),
        ("host", "not an address"),
        ("host:99999", "between 0 and 65535"),
        ("host:123456", "not an address"),
        ("a:1,", "not an address"),
        ("a b:1", "not an address"),
        ("X://a:1,x://b:2", "given twice"),
        ("X://a:1,Y://a:1", "one address"),
    ],
)
def test_what_is_no_address(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_listeners(text)


def test_text_and_back() -> None:
    text = "A://[::1]:1,B://h:2"
    assert ",".join(map(str, parse_listeners(text))) == text


@pytest.mark.parametrize(
    ("settings", "bound", "expected"),
    [
        ({"listeners": "127.0.0.1:0"}, {"PLAINTEXT": 4711}, ["PLAINTEXT://127.0.0.1:4711"]),
        ({"listeners": "0.0.0.0:0"}, {"PLAINTEXT": 4711}, ["PLAINTEXT://me:4711"]),
        ({"listeners": ":9092"}, {}, ["PLAINTEXT://me:9092"]),
        ({"listeners": "[::]:9092"}, {}, ["PLAINTEXT://me:9092"]),
        (
            {"listeners": "0.0.0.0:9092", "advertised.listeners": "kafka.example:19092"},
            {"PLAINTEXT": 9092},
            ["PLAINTEXT://kafka.example:19092"],
        ),
        (
            {"listeners": "0.0.0.0:0", "advertised.listeners": "outside:0"},
            {"PLAINTEXT": 4711},
            ["PLAINTEXT://outside:4711"],
        ),
        (
            {"listeners": "IN://a:1,OUT://:2", "advertised.listeners": "OUT://far:3"} | PLAIN,
            {},
            ["IN://a:1", "OUT://far:3"],
        ),
    ],
)
def test_what_clients_are_told(settings: dict[str, str], bound: dict[str, int], expected: list[str]) -> None:
    assert list(map(str, BrokerConfig.load(None, settings).advertised(bound, "me"))) == expected


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ([("PLAINTEXT://127.0.0.1:9092", "PLAINTEXT")], "127.0.0.1:9092"),
        ([("PLAINTEXT://[::1]:9092", "PLAINTEXT")], "[::1]:9092"),
        ([("PLAINTEXT://h:1", "SASL_SSL")], "PLAINTEXT://h:1 protocols=PLAINTEXT:SASL_SSL"),
        ([("SASL_SSL://h:1", "SASL_SSL")], "SASL_SSL://h:1"),
        ([("SSL://h:1", "SSL"), ("PLAINTEXT://h:2", "PLAINTEXT")], "SSL://h:1,PLAINTEXT://h:2"),
        ([("IN://h:1", "SSL"), ("SSL://h:2", "SSL")], "IN://h:1,SSL://h:2 protocols=IN:SSL,SSL:SSL"),
        ([("OUT://h:1", "PLAINTEXT")], "OUT://h:1 protocols=OUT:PLAINTEXT"),
    ],
)
def test_who_starts_a_broker_reads_which_listener_is_where(bound: list[tuple[str, str]], said: str) -> None:
    assert listening([(*parse_listeners(where), protocol) for where, protocol in bound]) == said


def test_a_krafts_listener_is_left_out() -> None:
    config = BrokerConfig.load(
        None,
        {
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "controller.listener.names": "CONTROLLER",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
        },
    )
    assert config.listeners == (Listener("PLAINTEXT", "", 9092),)
    assert config.advertised({}, "me") == (Listener("PLAINTEXT", "localhost", 9092),)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"listeners": "X://:1", "listener.security.protocol.map": "X:TLS"}, "'TLS' must be one of PLAINTEXT, SSL, "),
        ({"listeners": "X://:1", "listener.security.protocol.map": "X"}, "must be NAME:PROTOCOL"),
        ({"listeners": "C://:1", "controller.listener.names": "C"}, "no listener is left"),
        ({"advertised.listeners": "0.0.0.0:9092"}, "can't connect to 0.0.0.0"),
        ({"advertised.listeners": "OTHER://h:1"}, r"no listener is called OTHER.*\(PLAINTEXT\)"),
        ({"advertised.listeners": "h"}, "not an address"),
    ],
)
def test_what_is_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        BrokerConfig.load(None, settings)


def test_a_listener_speaks_what_the_map_says_then_what_its_name_says() -> None:
    config = BrokerConfig.load(
        None, {"listeners": "IN://:1,SSL://:2,:3,:4", "listener.security.protocol.map": "in:sasl_ssl"}
    )
    spoken = {listener.name: config.security_protocol(listener.name) for listener in config.listeners}
    assert spoken == {"IN": "SASL_SSL", "SSL": "SSL", "PLAINTEXT": "PLAINTEXT", "PLAINTEXT-4": "PLAINTEXT"}


@pytest.mark.parametrize("given", [{}, {"listener.security.protocol.map": "OTU:SASL_SSL"}])
def test_a_listener_of_which_nothing_says_what_it_speaks_is_not_served_in_plain_text(given: dict[str, str]) -> None:
    wanted = (
        "listeners=PLAINTEXT://:1,OUT://:2: nothing says which protocol the listener OUT speaks; "
        "add OUT:PROTOCOL to listener.security.protocol.map"
    )
    with pytest.raises(ConfigError, match=wanted):
        BrokerConfig.load(None, {"listeners": "PLAINTEXT://:1,OUT://:2"} | given)
    with pytest.raises(ConfigError, match="nothing says which protocol the listener ELSE speaks"):
        BrokerConfig.load(None, {}).security_protocol("ELSE")


def test_a_listeners_own_settings_stand_above_those_of_all() -> None:
    config = BrokerConfig.load(
        None,
        PLAIN
        | {
            "ssl.client.auth": "requested",
            "listener.name.out.ssl.client.auth": "required",
            "listener.name.out.plain.sasl.jaas.config": "secret",
            "listener.name.in.ssl.protocol": "TLSv1.2",
        },
    )
    assert config.warnings == ()
    own, others = config.security_settings("OUT"), config.security_settings("IN")
    assert (own["ssl.client.auth"], own["ssl.protocol"], own["plain.sasl.jaas.config"]) == (
        "required", "TLSv1.3", "secret",
    )  # fmt: skip
    assert (others["ssl.client.auth"], others["ssl.protocol"]) == ("requested", "TLSv1.2")
    assert "plain.sasl.jaas.config" not in others


def test_a_listener_of_sasl_ssl_asks_for_certificates_by_its_own_setting_only() -> None:
    """KIP-684: clients that log in have none, where other listeners ask for them."""
    given = {
        "listener.security.protocol.map": "IN:SASL_SSL,OUT:SASL_SSL,OTHER:SSL",
        "ssl.client.auth": "required",
        "listener.name.out.ssl.client.auth": "requested",
    }
    config = BrokerConfig.load(None, given)
    found = {name: config.security_settings(name)["ssl.client.auth"] for name in ("IN", "OUT", "OTHER")}
    assert found == {"IN": "none", "OUT": "requested", "OTHER": "required"}


def test_a_listeners_own_setting_keeps_its_bounds_and_hides_a_secret() -> None:
    with pytest.raises(ConfigError, match=r"listener\.name\.out\.ssl\.client\.auth=maybe"):
        BrokerConfig.load(None, {"listener.name.out.ssl.client.auth": "maybe"})


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "", "::"])
def test_an_address_is_told_as_it_is_read(host: str) -> None:
    (found,) = parse_listeners(address(host, 9092))
    assert (found.host, found.port) == (host, 9092)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ("PLAINTEXT",)),
        ({"security.inter.broker.protocol": "PLAINTEXT"}, ("PLAINTEXT",)),
        ({"listeners": "PLAINTEXT://a:1,SASL_SSL://b:2", "security.inter.broker.protocol": "sasl_ssl"}, ("SASL_SSL",)),
        ({"listeners": "IN://a:1,OUT://b:2", "inter.broker.listener.name": "in"} | PLAIN, ("IN",)),
        (
            {"listeners": "IN://a:1,PLAINTEXT://b:2", "control.plane.listener.name": "IN"} | PLAIN,
            ("PLAINTEXT", "IN"),
        ),
        (
            {
                "listeners": "IN://a:1,OUT://b:2,CONTROL://c:3",
                "inter.broker.listener.name": "IN",
                "control.plane.listener.name": "control",
            }
            | PLAIN,
            ("IN", "CONTROL"),
        ),
    ],
)
def test_listeners_by_which_brokers_reach_one_another(settings: dict[str, str], expected: tuple[str, ...]) -> None:
    assert BrokerConfig.load(None, settings).inter_broker_listeners == expected


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"listeners": "IN://a:1"} | PLAIN, "no listener is called PLAINTEXT; use a name from listeners .IN."),
        ({"inter.broker.listener.name": "IN"}, "no listener is called IN; use a name from listeners .PLAINTEXT."),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "security.inter.broker.protocol is given as well; give one of the two",
        ),
        ({"security.inter.broker.protocol": "TLS"}, "there is no such protocol; use one of PLAINTEXT, SSL"),
        (
            {"security.inter.broker.protocol": "SASL_SSL"},
            "protocol=SASL_SSL: no listener is called SASL_SSL; use a name from listeners .PLAINTEXT.",
        ),
        (
            {
                "listeners": "SSL://a:1",
                "security.inter.broker.protocol": "SSL",
                "listener.security.protocol.map": "SSL:PLAINTEXT",
            },
            "the listener SSL speaks PLAINTEXT; name the listener by inter.broker.listener.name",
        ),
        ({"control.plane.listener.name": "C"}, "no listener is called C"),
        ({"control.plane.listener.name": "plaintext"}, "PLAINTEXT is the inter-broker listener; name another listener"),
    ],
)
def test_listeners_of_brokers_that_are_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        _ = BrokerConfig.load(None, settings).inter_broker_listeners


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("PLAINTEXT:PLAINTEXT,:SSL", "':SSL' must be NAME:PROTOCOL"),
        ("plaintext:SSL,PLAINTEXT:PLAINTEXT", "PLAINTEXT has two protocols; leave it one of them"),
    ],
)
def test_a_wrong_map_is_named_itself(given: str, said: str) -> None:
    """The listeners were told to be wrong."""
    with pytest.raises(ConfigError, match=f"^--set: listener.security.protocol.map={given}: {said}$"):
        BrokerConfig.load(None, {"listener.security.protocol.map": given})


def test_brokers_may_command_over_further_listeners_while_their_own_changes() -> None:
    settings = {
        "listeners": "OLD://a:1,NEW://b:2",
        "inter.broker.listener.name": "NEW",
        "listener.security.protocol.map": "OLD:PLAINTEXT,NEW:PLAINTEXT",
    }
    assert BrokerConfig.load(None, settings).command_listeners == {"NEW"}
    both = BrokerConfig.load(None, settings | {"logkernel.command.listener.names": "old"})
    assert (both.command_listeners, both.inter_broker_listeners) == ({"OLD", "NEW"}, ("NEW",))
    other = BrokerConfig.load(None, settings | {"logkernel.command.listener.names": "OTHER"})
    with pytest.raises(ConfigError, match=r"no listener is called OTHER; use names from listeners .OLD, NEW."):
        _ = other.command_listeners


LISTENERS_OF_THREE = (
    "listeners=OUT://:1,IN.SIDE://:2,CONTROLLER://:3\ncontroller.listener.names=CONTROLLER\n"
    "listener.security.protocol.map=OUT:SSL,IN.SIDE:SSL\n"
)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("x.ssl.client.auth", "no listener is called so; use one of out, in.side, controller"),
        ("owt.ssl.client.auth", "no listener is called so; did you mean listener.name.out.ssl.client.auth?"),
        ("OUT.ssl.client.auth", "no listener is called so; write listener.name.out.ssl.client.auth"),
        ("out.ssl.client.auht", "this name; did you mean listener.name.out.ssl.client.auth?"),
        ("in.side.ssl.client.auht", "this name; did you mean listener.name.in.side.ssl.client.auth?"),
        ("out.sasl.enabled.mechansims", "this name; did you mean listener.name.out.sasl.enabled.mechanisms?"),
        ("out.plain.sasl.jaas.confg", "this name; did you mean listener.name.out.plain.sasl.jaas.config?"),
        ("out.confluent.licence", "this name; correct or remove it"),
        ("out.plian.sasl.jaas.config", "is called plian; did you mean listener.name.out.plain.sasl.jaas.config?"),
        ("in.side.PLAIN.sasl.jaas.config", "called PLAIN; did you mean listener.name.in.side.plain.sasl.jaas.config?"),
        (
            "out.md5.sasl.jaas.config",
            "no mechanism of SASL is called md5; use one of plain, scram-sha-256, scram-sha-512, oauthbearer, gssapi",
        ),
        ("out.plain.x.sasl.jaas.config", "no setting of Kafka or a plugin has this name; "),
    ],
)
def test_a_misspelt_setting_of_a_listener_is_an_unknown_setting(name: str, said: str, tmp_path: Path) -> None:
    """It asked no client for its certificate, and was called a setting of Kafka's that has no effect."""
    file = tmp_path / "server.properties"
    file.write_text(LISTENERS_OF_THREE)
    full = f"listener.name.{name}"
    with pytest.raises(ConfigError) as refused:
        load(file, [f"{full}=required"], [])
    shown = "[hidden]" if "jaas" in name else "required"
    assert str(refused.value).startswith(f"--set: {full}={shown}: ")
    assert said in str(refused.value)
    file.write_text(f"{LISTENERS_OF_THREE}{full}=required")
    (warning,) = load(file, [], []).warnings
    assert f"{full} has no effect" in warning
    assert said in warning


@pytest.mark.parametrize("name", ["out", "in.side", "controller"])
@pytest.mark.parametrize("setting", ["ssl.client.auth=required", *(f"{one}.sasl.jaas.config=a" for one in MECHANISMS)])
def test_a_setting_of_a_listener_that_is_there_is_taken_without_a_word(name: str, setting: str, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(LISTENERS_OF_THREE)
    assert load(file, [f"listener.name.{name}.{setting}"], []).warnings == []


def test_a_listener_may_be_called_as_another_and_a_mechanism(tmp_path: Path) -> None:
    settings = {"listeners": "IN://:1,IN.PLAIN://:2", "listener.security.protocol.map": "IN:SSL,IN.PLAIN:SSL"}
    taken = {"listener.name.in.plain.sasl.jaas.config": "a", "listener.name.in.plain.plain.sasl.jaas.config": "b"}
    assert not BrokerConfig.load(None, settings | taken).warnings


ALTERED = [
    ("out.ssl.client.auht", "required", "did you mean listener.name.out.ssl.client.auth?"),
    ("out.plian.sasl.jaas.config", "[hidden]", "did you mean listener.name.out.plain.sasl.jaas.config?"),
    ("anything", "required", "correct or remove it"),
]


@pytest.mark.parametrize(("name", "shown", "said"), ALTERED)
def test_a_misspelt_setting_of_a_listener_is_refused_by_a_running_broker(name: str, shown: str, said: str) -> None:
    """Every name that began so was kept, and nothing said that nobody heeds it."""
    config = BrokerConfig.load(None, {"listeners": "OUT://:1", "listener.security.protocol.map": "OUT:SSL"})
    full = f"listener.name.{name}"
    with pytest.raises(InvalidConfig) as refused:
        config.validate_broker_config(full, "required")
    assert str(refused.value).startswith(f"{full}={shown}: ")
    assert said in str(refused.value)


def test_a_running_broker_takes_settings_of_listeners_that_it_may_not_know() -> None:
    """Another broker of the cluster may have the listener, so it is no mistake where the setting is for all."""
    config = BrokerConfig.load(None, {"listeners": "OUT://:1", "listener.security.protocol.map": "OUT:SSL"})
    name = "listener.name.owt.ssl.client.auth"
    config.validate_broker_config(name, "required")
    assert config.with_dynamic({}, {name: "required"}).warnings == ()
    with pytest.raises(InvalidConfig, match=r"owt.ssl.client.auth=required: no listener is called so; did you mean"):
        config.validate_listener_of(name, "required")
    BrokerConfig.load(None, {}).validate_listener_of(name, "required")  # it learns its listeners when it listens


@pytest.mark.parametrize("name", ["out.ssl.provider", "in.side.num.network.threads", "out.log.flush.interval.ms"])
def test_kafkas_settings_that_have_no_effect_for_a_listener_are_no_misspelt_ones(name: str, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(LISTENERS_OF_THREE)
    (warning,) = load(file, [f"listener.name.{name}=1"], []).warnings
    assert warning == f"--set: listener.name.{name} is a Kafka setting that has no effect here"


def test_where_a_program_names_its_listener_as_it_listens_no_setting_is_warned_of() -> None:
    assert not BrokerConfig.load(None, {"listener.name.ssl.ssl.client.auth": "required"}).warnings


SECURED = "listeners=OUT://127.0.0.1:9093\nlistener.security.protocol.map=OUT:SASL_SSL,PLAIN:PLAINTEXT\n"


def test_an_address_for_a_secured_broker_does_not_open_it(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(SECURED)
    with pytest.raises(ConfigError, match=r"in plain text; name the listener: --listen OUT://127\.0\.0\.1:0"):
        load(file, [RawSetting("listeners", "127.0.0.1:0", "--listen")], [])


@pytest.mark.parametrize(
    ("text", "option"), [("OUT://127.0.0.1:0", "--listen"), ("PLAIN://127.0.0.1:0", "--listen"), (":0", "--set")]
)
def test_a_listener_that_is_named_is_what_was_asked_for(tmp_path: Path, text: str, option: str) -> None:
    file = tmp_path / "server.properties"
    file.write_text(SECURED)
    loaded = load(file, [RawSetting("listeners", text, option)], [])
    assert loaded.given["listeners"].text == text
