"""How a client logs in by SASL: from its settings to a maker of mechanisms, each for one authentication."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from logkernel.config.nearest import nearest
from logkernel.errors import ConfigError
from logkernel.security import jaas
from logkernel.vocabulary import Secret

if TYPE_CHECKING:
    from logkernel.security.sasl.mechanism import ClientMechanism

NewMechanism = Callable[[str], "ClientMechanism"]
"""Takes the broker's host name, as the client knows it."""


def login_of(values: Mapping[str, Any]) -> NewMechanism:
    """Return what makes the mechanism of `sasl.mechanism`. `values` are typed, by Kafka's names.

    Raises `ConfigError` for an unknown mechanism, and for a login that is missing, wrong, or there twice.
    """
    name = values["sasl.mechanism"]
    if name == "GSSAPI":
        _check_gssapi(values)
    maker = _MAKERS.get(name)
    if maker is None:
        near = nearest(name.upper(), _MAKERS)
        hint = f"did you mean {near}?" if near else f"use one of {', '.join(_MAKERS)}"
        raise ConfigError(f"sasl.mechanism={name}: there is no such mechanism; {hint}")
    return maker(name, _module(name, values[jaas.NAME]), values)


def _check_gssapi(values: Mapping[str, Any]) -> None:
    """Kafka's default, which hardly anybody means who gives a user and a password."""
    text, user = values[jaas.NAME], values["sasl.username"]
    family = jaas.parse(text.reveal()).family if text else "PLAIN or SCRAM" if user is not None else "GSSAPI"
    if family != "GSSAPI":
        raise ConfigError(
            f"sasl.mechanism is GSSAPI, Kafka's default, but the login is for {family}; set sasl.mechanism to one of"
            f" {_OTHERS}"
        )
    if find_spec("gssapi") is None:
        raise ConfigError(
            "sasl.mechanism is GSSAPI, Kafka's default, which needs the package gssapi; install logkernel[kerberos], or"
            f" set sasl.mechanism to one of {_OTHERS}"
        )


def _module(name: str, text: Secret | None) -> jaas.LoginModule | None:
    if not text:
        return None
    module = jaas.parse(text.reveal())
    if module.family != ("SCRAM" if name.startswith("SCRAM-") else name):
        raise ConfigError(
            f"{jaas.NAME} is a login for {module.family}, but sasl.mechanism is {name}; set sasl.mechanism, or use the"
            " login module of the mechanism"
        )
    return module


def _credentials(name: str, module: jaas.LoginModule | None, values: Mapping[str, Any]) -> tuple[str, str]:
    """User and password, from the login module or from librdkafka's settings."""
    username, password = values["sasl.username"], values["sasl.password"]
    if module is None and (username is None or password is None):
        missing = "sasl.username" if username is None else "sasl.password"
        raise ConfigError(
            f"{name} needs a user and a password, and {missing} is not set; set sasl.username and sasl.password, or"
            f" {jaas.NAME}"
        )
    if module is None:
        return username, password.reveal()
    found = module.needed("username"), module.needed("password")
    if username not in (None, found[0]) or password not in (None, Secret(found[1])):
        raise ConfigError(f"{jaas.NAME} and sasl.username or sasl.password differ; give one of them")
    return found


def _plain(name: str, module: jaas.LoginModule | None, values: Mapping[str, Any]) -> NewMechanism:
    from logkernel.security.sasl.plain import PlainClient

    return _checked(partial(PlainClient, *_credentials(name, module, values)))


def _scram(name: str, module: jaas.LoginModule | None, values: Mapping[str, Any]) -> NewMechanism:
    from logkernel.security.sasl.scram import ScramClient

    by_token = module is not None and module.is_on("tokenauth")
    return _checked(partial(ScramClient, name, *_credentials(name, module, values), tokenauth=by_token))


def _oauthbearer(name: str, module: jaas.LoginModule | None, values: Mapping[str, Any]) -> NewMechanism:
    from logkernel.security.sasl.oauthbearer import OAuthBearerClient
    from logkernel.security.tokens.client_login import token_source

    shown = {name: value.reveal() if isinstance(value, Secret) else value for name, value in values.items()}
    options = {option: value.reveal() for option, value in module.options.items()} if module else {}
    return _checked(partial(OAuthBearerClient, *token_source(shown, options)))


def _gssapi(name: str, module: jaas.LoginModule | None, values: Mapping[str, Any]) -> NewMechanism:
    from logkernel.security.kerberos.logins import client_of

    return client_of(module, values)


def _checked(new: Callable[[], ClientMechanism]) -> NewMechanism:
    """For any host. Raises what the mechanism raises for its arguments."""
    new()
    return lambda host: new()


_MAKERS: Final[Mapping[str, Callable[[str, jaas.LoginModule | None, Mapping[str, Any]], NewMechanism]]] = {
    "PLAIN": _plain,
    "SCRAM-SHA-256": _scram,
    "SCRAM-SHA-512": _scram,
    "OAUTHBEARER": _oauthbearer,
    "GSSAPI": _gssapi,
}
_OTHERS: Final = ", ".join(name for name in _MAKERS if name != "GSSAPI")
