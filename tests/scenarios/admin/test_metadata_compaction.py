"""The metadata log stays as small as the metadata; what it says outlives that, deleted topics' ids included."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel.broker.build import build
from logkernel.controller import compaction
from logkernel.controller.image import ClusterImage
from logkernel.embed import EmbeddedLog
from logkernel.requests import access, configs


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MIN_KEPT", 20)


def image_of(log: Any) -> ClusterImage:
    return log.broker.metadata.image  # type: ignore[no-any-return]


def kept(log: Any) -> int:
    return log.broker.metadata._coordination.kept()  # type: ignore[no-any-return]


def set_flush(log: Any, topic: str, value: int) -> None:
    row = configs.IncrementalAlterConfigsAlterableConfig("flush.ms", 0, str(value))
    resource = configs.IncrementalAlterConfigsAlterConfigsResource(2, topic, [row])
    (answer,) = log.request(configs.IncrementalAlterConfigsRequest([resource])).responses
    assert answer.error_code == 0


def folders(path: Path) -> list[str]:
    return sorted(folder.name for folder in path.iterdir() if folder.is_dir())


def test_it_is_replaced_again_and_again(tmp_path: Path) -> None:
    with logkernel.open(tmp_path) as log:
        log.create_topic("a", 3)
        log.request(access.CreateAclsRequest([access.AclCreation(2, "a", 3, "User:x", "*", 3, 3)]))
        for value in range(200):
            set_flush(log, "a", value + 1)
            assert kept(log) < 40
        assert log.append("a", b"kept").offset == 0
        before = image_of(log)
    assert sum(name.startswith("__logkernel_metadata-") for name in folders(tmp_path)) == 1
    with logkernel.open(tmp_path) as log:
        assert image_of(log) == before
        assert image_of(log).topic_config("a") == {"flush.ms": "200"}
        assert [acl.principal for acl in image_of(log).acls] == ["User:x"]


def test_ids_of_deleted_topics_go_with_their_folders(tmp_path: Path) -> None:
    with logkernel.open(tmp_path) as log:
        for number in range(30):
            log.create_topic(f"t{number}")
            log.delete_topic(f"t{number}")
        log.create_topic("stays")
        for value in range(40):
            set_flush(log, "stays", value + 1)
        assert not image_of(log).gone
        assert kept(log) < 40


def test_an_id_is_kept_while_a_directory_is_out_of_reach(tmp_path: Path) -> None:
    """The folder of a deleted topic comes back with its directory: it is removed, not taken for a stranger's."""
    one, two = tmp_path / "one", tmp_path / "two"

    def start() -> EmbeddedLog:
        return EmbeddedLog(build(None, [f"log.dirs={one},{two}"]))

    with start() as log:
        log.create_topic("doomed", 2)
    (far,) = (path for path in (one, two) if not any(name.startswith("__logkernel") for name in folders(path)))
    hidden = tmp_path / "hidden"
    shutil.move(far, hidden)
    far.write_text("no folder: the disk is gone")
    with start() as log:
        log.delete_topic("doomed")
        for number in range(40):
            config(log, 1000 + number)
        assert kept(log) < 40, "compacted"
        assert len(image_of(log).gone) == 1, "not forgotten"
    far.unlink()
    shutil.move(hidden, far)
    with start() as log:
        assert log.topics() == {}
        assert not any(name.startswith("doomed") and not name.endswith("-delete") for name in folders(far))


def config(log: Any, value: int) -> None:
    row = configs.IncrementalAlterConfigsAlterableConfig("log.flush.interval.ms", 0, str(value))
    resource = configs.IncrementalAlterConfigsAlterConfigsResource(4, "", [row])
    (answer,) = log.request(configs.IncrementalAlterConfigsRequest([resource])).responses
    assert answer.error_code == 0, answer.error_message


def test_a_compaction_that_fails_is_logged_and_the_log_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with logkernel.open(tmp_path) as log:

        def full(records: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(log.broker.metadata._coordination._log, "replace", full)
        log.create_topic("a")
        for value in range(50):
            set_flush(log, "a", value + 1)
        assert "metadata log not compacted" in caplog.text
    with logkernel.open(tmp_path) as log:
        assert image_of(log).topic_config("a") == {"flush.ms": "50"}
