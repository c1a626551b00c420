"""Cleaning a topic by name where its cleanup.policy has no such thing: an error that says what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import logkernel
from logkernel.cli import main
from logkernel.errors import PolicyViolation


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with logkernel.open(tmp_path / "data", log_cleaner_enable=False) as log:
        monkeypatch.setenv("LOGKERNEL_BOOTSTRAP", log.listen())
        yield log


REFUSALS = [
    ("compact", "delete", "compacts nothing", "compact"),
    ("expire", "compact", "expires nothing", "compact,delete"),
]


@pytest.mark.parametrize(("command", "policy", "lacks", "remedy"), REFUSALS)
def test_what_the_policy_has_not_is_refused_and_the_remedy_works(
    command, policy, lacks, remedy, served, tmp_path, capsys
):
    served.create_topic("t", 2, cleanup_policy=policy)
    served.append("t", b"v", key=b"k")
    asked = ["topic", command, "t", "--data", str(tmp_path / "data")]
    assert main(asked) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith(f"logkernel: PolicyViolation: t has cleanup.policy={policy}, which {lacks};")
    named = re.search("`logkernel (.*)`", error)
    assert named is not None
    assert named[1] == f"config set topic t cleanup.policy={remedy}"
    assert served.end_offset("t") == 1
    assert main(named[1].split()) == 0
    assert main(asked) == 0


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_in_python_it_raises(policy):
    with logkernel.open(log_cleaner_enable=False) as log:
        log.create_topic("t", 1, cleanup_policy=policy)
        act = log.compact if policy == "delete" else log.apply_retention
        with pytest.raises(PolicyViolation, match=f"t has cleanup.policy={policy}, which .* nothing"):
            act("t")
        assert log.broker.replicas.led.get(("t", 0)).log.segment_count == 1
        log.create_topic("both", 1, cleanup_policy="compact,delete")
        assert log.compact("both") == log.apply_retention("both") == []


def test_nothing_to_do_is_no_error(served, tmp_path, capsys):
    served.create_topic("t", 1, cleanup_policy="compact")
    assert main(["topic", "compact", "t", "--data", str(tmp_path / "data")]) == 0
    assert capsys.readouterr().out == "Nothing to do.\n"
