"""Arguments of `serve`, which are read without argparse where they are plain."""

from __future__ import annotations

import pytest

from logkernel.cli.serve import Arguments, _parser, _plain, parse

PLAIN = [
    "",
    "--data d",
    "--data d --data e",
    "--listen :9092 --config f.yaml --log-level DEBUG",
    "--set a=1 --data d --set b=--2",
]
ODD = ["--data=d", "--da d --set=a=-1", "--set a=1 --log-lev ERROR"]
WRONG = ["--data", "--data -x", "--data --listen", "--data d --set", "--log-level LOUD", "--nothing d", "d", "d e"]


@pytest.mark.parametrize("line", PLAIN)
def test_plain_ones_are_what_argparse_makes_of_them(line: str) -> None:
    assert _plain(line.split()) == _parser().parse_args(line.split(), Arguments())


def test_a_value_may_be_empty_or_have_blanks() -> None:
    argv = ["--data", "", "--config", "a b"]
    assert _plain(argv) == _parser().parse_args(argv, Arguments()) == Arguments(data="", config="a b")


@pytest.mark.parametrize("line", ODD)
def test_what_is_written_otherwise_is_argparses(line: str) -> None:
    assert _plain(line.split()) is None
    assert parse(line.split()) == _parser().parse_args(line.split(), Arguments())


@pytest.mark.parametrize("line", [*WRONG, "--help", "--data d -h"])
def test_help_and_what_is_wrong_end_as_argparse_ends(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(line.split())
    assert ended.value.code == (0 if line.endswith("-h") or line == "--help" else 2)
    assert "usage: logkernel serve" in "".join(capsys.readouterr())
