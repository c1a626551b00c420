"""`sasl.jaas.config`: what Java calls a login module, as text. Nothing that it names is loaded.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="…";

The grammar is that of Kafka's `JaasConfig` (`java.io.StreamTokenizer`): words, strings in " or ' with Java's escapes,
comments by // and /* */. The class is compared with a list (CVE-2023-25194, CVE-2025-27818 were classes that Java
loaded from here).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from logkernel.attrs_lite import field, frozen
from logkernel.errors import ConfigError
from logkernel.vocabulary import Secret

NAME: Final = "sasl.jaas.config"
LONGEST: Final = 1 << 20
"""Characters of a configuration; far more than one with a token has."""
_KAFKA: Final = "org.apache.kafka.common.security."
MODULES: Final[Mapping[str, str]] = {
    f"{_KAFKA}plain.PlainLoginModule": "PLAIN",
    f"{_KAFKA}scram.ScramLoginModule": "SCRAM",
    f"{_KAFKA}oauthbearer.OAuthBearerLoginModule": "OAUTHBEARER",
    "com.sun.security.auth.module.Krb5LoginModule": "GSSAPI",
}
"""Login module → the mechanisms that it logs in for."""
_SHADED: Final = "kafkashaded."
"""Before the names of Kafka's classes, where Spark is Databricks'."""
_IAM: Final = "software.amazon.msk.auth.iam.IAMLoginModule"
FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})

_TOKEN: Final = re.compile(
    r"""(?:\s|//[^\r\n]*+|/\*.*?\*/)*+
    (?: (?P<quoted>"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')
      | (?P<word>[^\s"'=;/]+)
      | (?P<sign>[=;])
      | (?P<end>\Z) )""",
    re.VERBOSE | re.DOTALL,
)
_PIECE: Final = re.compile(
    r"""//[^\r\n]*|/\*.*?\*/|"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*'|(?P<word>[^\s"'{};/]+)|(?P<brace>[{}])|.""",
    re.DOTALL,
)
"""Of a file with sections: what holds no brace, a word, or a brace."""
_CLASS: Final = re.compile(r"[A-Za-z_$][\w$]{0,99}(?:\.[A-Za-z_$][\w$]{0,99}){2,9}", re.ASCII)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[0-7]{1,2}|.)", re.DOTALL)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@frozen
class LoginModule:
    """A login module and its options. Each option is held as a secret."""

    module: str
    """Its class, in full."""
    family: str
    """The mechanisms that it is for: PLAIN, SCRAM, OAUTHBEARER or GSSAPI."""
    options: Mapping[str, Secret] = field(factory=dict)

    def option(self, name: str) -> str | None:
        found = self.options.get(name)
        return None if found is None else found.reveal()

    def needed(self, name: str) -> str:
        """Return an option. Raises `ConfigError` if it is missing."""
        found = self.option(name)
        if found is None:
            simple = self.module.rpartition(".")[2]
            raise ConfigError(f'{NAME}: {simple} has no {name}; write {name}="…" before the semicolon')
        return found

    def is_on(self, name: str) -> bool:
        return (self.option(name) or "").lower() == "true"


def parse(text: str, name: str = NAME, modules: Mapping[str, str] = MODULES) -> LoginModule:
    """Return the only login module of a configuration, which is the setting `name` and may have one of `modules`.
    Raises `ConfigError`; it shows no option's value."""
    if len(text) > LONGEST:
        raise ConfigError(f"{name} has more than {LONGEST} characters; give one login module")
    try:
        return _parse(text, name, modules)
    except _Wrong as wrong:
        raise ConfigError(f'{name}: {wrong}; write CLASS required NAME="VALUE" …;') from None


def section(text: str, name: str) -> str | None:
    """Return what is in `NAME { … }` of a login file, as Java reads it; `text` itself where it has no sections.

    None where it has sections, and none of this name. What is in it is not looked at: `parse` does that.
    """
    depth, word, begins, has_sections = 0, "", 0, False
    for piece in _PIECE.finditer(text):
        if piece["word"] is not None:
            word = piece["word"]
        elif piece["brace"] == "{":
            depth, has_sections = depth + 1, True
            if depth == 1:
                begins = piece.end() if word == name else -1
        elif piece["brace"] == "}":
            depth -= 1
            if depth == 0 and begins >= 0:
                return text[begins : piece.start()]
    return None if has_sections else text


class _Wrong(Exception):
    """What is wrong with the text; it shows no option's value."""


def _parse(text: str, name: str, modules: Mapping[str, str]) -> LoginModule:
    tokens = _tokens(text)
    kind, module = next(tokens)
    if kind == "end":
        raise _Wrong("it names no login module")
    family = _family(module if kind != "sign" else "", name, modules)
    kind, flag = next(tokens)
    if kind == "end" or flag.lower() not in FLAGS:
        raise _Wrong("the word `required` is missing behind the class")
    options = _options(tokens)
    if next(tokens)[0] != "end":
        raise _Wrong("it has more than one login module, or text behind the semicolon")
    return LoginModule(module, family, options)


def _options(tokens: Iterator[tuple[str, str]]) -> dict[str, Secret]:
    """The options up to the semicolon."""
    options: dict[str, Secret] = {}
    for kind, name in tokens:
        if (kind, name) == ("sign", ";"):
            return options
        if kind == "end":
            break
        if kind == "sign":
            raise _Wrong("a `=` has no option before it")
        if next(tokens) != ("sign", "="):
            raise _Wrong(f"option {len(options) + 1} has no `=` behind it")
        kind, value = next(tokens)
        if kind not in ("word", "quoted"):
            raise _Wrong(f"option {len(options) + 1} has no value")
        options[name] = Secret(value)
    raise _Wrong("the semicolon at the end is missing")


def _family(module: str, name: str, modules: Mapping[str, str]) -> str:
    found = modules.get(module.removeprefix(_SHADED))
    if found is not None:
        return found
    if module == _IAM:
        raise ConfigError(
            f"{name}: AWS_MSK_IAM is a mechanism of Java's clients only; set sasl.mechanism=OAUTHBEARER, with a"
            " provider of tokens"
        )
    shown = module if _CLASS.fullmatch(module) else "its first word"  # which may be a secret, pasted to the wrong place
    raise ConfigError(
        f"{name}: {shown} is not a login module that this client knows, and no class is loaded by its name; use one of"
        f" {', '.join(modules)}"
    )


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """(kind, text): word, quoted, sign; at last end."""
    at = 0
    while True:
        found = _TOKEN.match(text, at)
        if found is None:
            raise _Wrong("a quote is not closed, or a character stands outside of quotes")
        at = found.end()
        kind = str(found.lastgroup)
        value = found[kind]
        yield kind, _unescaped(value[1:-1]) if kind == "quoted" else value
        if kind == "end":
            return


def _unescaped(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        escaped = found[1]
        return chr(int(escaped, 8)) if escaped[0] in "01234567" else _ESCAPES.get(escaped, escaped)

    return _ESCAPE.sub(one, text) if "\\" in text else text
