"""Outside tools that tests need: those that are missing are told of, and continuous integration installs them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import secure_programs

ROOT = Path(__file__).parents[2]
NEEDS: dict[str, Callable[[], object]] = {
    "Go": lambda: secure_programs.go_program("franz"),
    "npm": secure_programs.kafkajs,
}


@pytest.mark.parametrize("tool", NEEDS)
@pytest.mark.parametrize(("required", "outcome"), [("1", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_missing_tool_fails_a_test_where_tools_have_to_be_there(
    tool: str, required: str, outcome: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was skipped, and nobody saw that clients in other languages were not tried."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LOGKERNEL_REQUIRE_TOOLS", required)
    with pytest.raises(outcome, match=f"there is no {tool}"):
        NEEDS[tool]()


@pytest.mark.parametrize("package", ["golang-go", "nodejs", "npm", "kcat", "maven", "krb5-kdc", "iproute2"])
def test_continuous_integration_installs_the_tools(package: str) -> None:
    assert re.search(rf"\b{package}\b", (ROOT / ".ci" / "run").read_text())


def test_old_modules_are_of_the_same_clients_and_for_debians_go() -> None:
    def needed(name: str) -> tuple[str, set[str]]:
        text = (secure_programs.SOURCES / name).read_text()
        direct = re.search(r"^require \((.*?)^\)", text, re.MULTILINE | re.DOTALL)
        (version,) = re.findall(r"^go (\S+)$", text, re.MULTILINE)
        assert direct
        return version, {line.split()[0] for line in direct[1].split("\n") if line.strip()}

    version, clients = needed("go119.mod")
    assert version == "1.19"
    assert clients == needed("go.mod")[1]
