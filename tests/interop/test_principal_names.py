"""Java's names of certificates, and Kafka's mapping of them, beside ours."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import kerberos_names
import pytest
from x500_subjects import NAMES, RULES, SUBJECTS, certificate

from logkernel.errors import SaslAuthenticationFailed, SslAuthenticationException
from logkernel.security.kerberos.short_names import ShortNames
from logkernel.security.principals import PrincipalMapping
from logkernel.security.x500_names import subject_name

pytestmark = pytest.mark.interop
Ask = Callable[[list[list[bytes]]], list[str | None]]


@pytest.fixture(scope="module")
def ask(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Runs `PrincipalNames.java` on lines; None is a refusal."""
    classes = tmp_path_factory.mktemp("classes")
    source = Path(__file__).with_name("PrincipalNames.java")
    subprocess.run(["javac", "-cp", f"{apache_kafka.JARS}/*", "-d", str(classes), str(source)], check=True)

    def run(lines: list[list[bytes]]) -> list[str | None]:
        text = "".join(
            "\t".join([words[0].decode(), *(base64.b64encode(one).decode() for one in words[1:])]) + "\n"
            for words in lines
        )
        command = apache_kafka.java("PrincipalNames", classpath=str(classes))
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=300, check=True)
        answers = done.stdout.splitlines()
        assert len(answers) == len(lines), done.stderr
        return [None if one.startswith("!") else base64.b64decode(one).decode() for one in answers]

    return run


def test_java_names_the_same_subjects(ask: Ask) -> None:
    ders = [certificate(subject) for subject in SUBJECTS.values()]
    assert ask([[b"cert", der] for der in ders]) == [subject_name(der) for der in ders] == list(SUBJECTS)


def test_kafka_maps_the_same_names(ask: Ask) -> None:
    cases = [(rules, name) for rules in RULES for name in NAMES]
    assert dict(zip(cases, ask([[b"map", rules.encode(), name.encode()] for rules, name in cases]), strict=True)) == {
        (rules, name): mapped(rules, name) for rules, name in cases
    }


def mapped(rules: str, name: str) -> str | None:
    try:
        return PrincipalMapping(rules).name(name)
    except SslAuthenticationException:
        return None


def test_kafka_shortens_the_same_kerberos_names(ask: Ask) -> None:
    cases = [(rules, principal) for rules in kerberos_names.RULES for principal in kerberos_names.NAMES]
    lines = [[b"short", rules.encode(), principal.encode()] for rules, principal in cases]
    lines += [[b"short", rules.encode(), b"plain"] for rules in kerberos_names.WRONG]
    answers = [one or None for one in ask(lines)]  # Kafka knows an empty name, which we refuse
    assert dict(zip(cases, answers, strict=False)) == {
        (rules, principal): shortened(rules, principal) for rules, principal in cases
    }
    assert answers[len(cases) :] == [None] * len(kerberos_names.WRONG)


def shortened(rules: str, principal: str) -> str | None:
    try:
        return ShortNames(rules, kerberos_names.REALM).of(principal)
    except SaslAuthenticationFailed:
        return None
