"""A pipeline's file: what is read of it, and how it is refused, with file and line."""

from __future__ import annotations

import pytest

from logkernel.errors import ConfigError
from logkernel.plugins.spark.pipelines.spec import Spec, load, read

HEAD = "name: p\nlog: {bootstrap.servers: 'h:1'}\n"
COPY = HEAD + "steps:\n  copy:\n    read: {topic: a}\n    write: {topic: b}\n"


def spec(text: str, **given: str) -> Spec:
    return read(text, "p.yaml", given)


def test_settings_keep_their_lines() -> None:
    found = spec(COPY)
    assert found.name == "p"
    assert found.log.text("bootstrap.servers") == "h:1"
    assert [step.name for step in found.steps] == ["copy"]
    assert found.steps[0].blocks["read"].rows["topic"].where == "p.yaml:5"


def test_a_name_is_what_was_written() -> None:
    assert spec(COPY.replace("name: p", "name: on")).name == "on"


def test_paths_begin_at_the_file() -> None:
    assert read(COPY, "/x/p.yaml", {}).state == "/x/p.state"
    assert read(COPY + "state: s\n", "/x/p.yaml", {}).state == "/x/s"
    assert read(COPY + "state: hdfs://n/s\n", "/x/p.yaml", {}).state == "hdfs://n/s"


def test_parameters_are_filled_in() -> None:
    text = COPY.replace("h:1", "${host}:1").replace("topic: b", 'topic: "b-${day}"') + "parameters: {host: h, day: }\n"
    found = spec(text, day="2013-01-31")
    assert found.log.text("bootstrap.servers") == "h:1"
    assert found.steps[0].blocks["write"].text("topic") == "b-2013-01-31"
    assert spec(text, day="x", host="g").log.text("bootstrap.servers") == "g:1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("name: p", "needs `steps:`"),
        (
            COPY.replace("name: p", "nam: p"),
            "p.yaml:1: nam: there is no such section of a pipeline; did you mean name?",
        ),
        (COPY.replace("topic: a", "topik: a"), "p.yaml:5: topik: .*; did you mean topic?"),
        (COPY.replace("topic: a", "topic: a, startingOffset: x"), "p.yaml:5: .* did you mean startingOffsets?"),
        (COPY.replace("topic: b", "topic: b, partition.by: date"), "p.yaml:6: partition.by"),
        (COPY.replace("topic: b", "table: b, key: x"), "p.yaml:6: key: there is no such setting of step copy: write"),
        (COPY.replace("read:", "reed:"), "p.yaml:5: reed: .* did you mean read?"),
        (COPY + "    copy: {}\n", "p.yaml:7: copy"),
        (COPY + "spark: {executor.memory: 1g}\n", "p.yaml:7: executor.memory: .* begins with spark"),
        (COPY + "tables: {input: {topic: x}}\n", "p.yaml:7: table input"),
        (COPY + "tables: {a-b: {topic: x}}\n", "p.yaml:7: table a-b"),
        (COPY.replace("name: p", "name: a/b"), "p.yaml:1: name=a/b"),
        (
            COPY.replace("topic: b", "topic: '${x}'"),
            "p.yaml:6: x: there is no such parameter; declare it in `parameters:`",
        ),
        (COPY.replace("topic: b", "topic: '${x}'") + "parameters: {day: 1}", "x: .* parameter; known are day$"),
        (COPY.replace("topic: b", "topic: '${x}'") + "parameters: {x: }", "p.yaml:6: the parameter x has no value"),
        (COPY.replace("steps:", "steps: {}\nsteps:"), "stands here and on line"),
        (HEAD + "steps: {}", "p.yaml:3: there is no step"),
        (HEAD + "steps: [a]", "p.yaml:3: steps must hold"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("?", r"\?")):
        spec(text)


def test_a_provider_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError) as raised:
        spec(COPY.replace("topic: b", 'topic: b, kafka.sasl.password: "${vault:hunter2-planted}"'))
    said = str(raised.value)
    assert "p.yaml:6: ${vault:…}: no provider is called vault; use ${env:NAME}, ${file:/path:key}" in said
    assert "hunter2" not in said


def test_a_parameter_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--set: day: .* in p.yaml; declare it in `parameters:`$"):
        spec(COPY, day="y")
    with pytest.raises(ConfigError, match=r"--set: dat: there is no such parameter in p.yaml; did you mean day\?"):
        spec(COPY + "parameters: {day: x}\n", dat="y")


def test_a_file_that_cannot_be_read() -> None:
    with pytest.raises(ConfigError, match="it can't be read"):
        load("/nowhere/p.yaml", {})
