"""Values by `${env:…}`, `${file:…}` and `${directory:…}`."""

from __future__ import annotations

from pathlib import Path

import pytest

from logkernel.config.providers import MAX_FILE_BYTES, names_another_place, resolved
from logkernel.errors import ConfigError

SECRET = "hunter2-planted"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.properties").write_text(f"db.password={SECRET}\nempty=\nagain=${{env:HOME}}\n")
    (tmp_path / "token").write_text(SECRET)
    return tmp_path


def test_values_come_from_the_environment_from_files_and_from_folders(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHO", "alice")
    assert resolved("user=${env:WHO};", "here") == "user=alice;"
    assert resolved(f"${{file:{folder}/s.properties:db.password}}", "here") == SECRET
    assert resolved(f"[${{file:{folder}/s.properties:empty}}]", "here") == "[]"
    assert resolved(f"${{directory:{folder}:token}}", "here") == SECRET
    assert resolved("${other} $ ${vault:x:y} {env:WHO}", "here") == "${other} $ ${vault:x:y} {env:WHO}"


def test_what_is_found_is_not_looked_into(folder: Path) -> None:
    assert resolved(f"${{file:{folder}/s.properties:again}}", "here") == "${env:HOME}"


def test_a_text_that_names_a_place_is_known() -> None:
    assert names_another_place("a${env:X}b")
    assert not names_another_place("${X}")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("${env:GONE_AND_AWAY}", "the environment has no such variable"),
        ("${file:/gone:x}", "No such file"),
        ("${file:x}", "the path is missing"),
        ("${file:FOLDER/s.properties:nope}", "the file has no such key"),
        ("${directory:FOLDER:../etc}", "not a file's name"),
        ("${directory:FOLDER:..}", "not a file's name"),
        ("${directory:FOLDER:big}", "more than"),
    ],
)
def test_what_is_not_there_is_refused(folder: Path, text: str, why: str) -> None:
    (folder / "big").write_bytes(bytes(MAX_FILE_BYTES + 1))
    with pytest.raises(ConfigError, match=f"^client.properties:3: .*{why}.*; check the name$"):
        resolved(text.replace("FOLDER", str(folder)), "client.properties:3")
