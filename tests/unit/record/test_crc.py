"""The checksums: check values from their definitions, and what happens where a package is missing."""

from __future__ import annotations

import logging
import subprocess
import sys
import zlib
from importlib.util import find_spec

import pytest

from logkernel.record import crc

CHECK = b"123456789"
WITH_CRC32C = pytest.mark.skipif(find_spec("crc32c") is None, reason="the environment without crc32c (tox: crcmod)")


def test_check_values() -> None:
    assert crc.crc32c(CHECK) == 0xE3069283
    assert crc.crc32(CHECK) == 0xCBF43926 == zlib.crc32(CHECK)


def test_both_go_on_from_a_value() -> None:
    assert crc.crc32c(CHECK[4:], crc.crc32c(CHECK[:4])) == 0xE3069283
    assert crc.crc32(CHECK[4:], crc.crc32(CHECK[:4])) == 0xCBF43926


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer(kind: type) -> None:
    assert crc.crc32c(kind(CHECK)) == 0xE3069283
    assert crc.crc32(kind(CHECK)) == 0xCBF43926


@WITH_CRC32C
def test_the_extension_is_loaded_without_its_package() -> None:
    code = (
        "import sys; from logkernel.record import crc;"
        "assert crc.IMPLEMENTATION == 'crc32c';"
        "assert not {'crc32c', 'importlib.metadata', 'crcmod'} & set(sys.modules), 'a slow import'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@WITH_CRC32C
def test_the_package_is_taken_where_the_extension_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crc, "_load_extension", lambda: None)
    found, name = crc._load_crc32c()
    assert (found(CHECK, 0), name) == (0xE3069283, "crc32c")


def test_crcmod_stands_in_loudly(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(crc, "_load_extension", lambda: None)
    monkeypatch.setitem(sys.modules, "crc32c", None)
    with caplog.at_level(logging.WARNING):
        found, name = crc._load_crc32c()
    assert (found(CHECK, 0), found(CHECK[4:], found(CHECK[:4], 0)), name) == (0xE3069283, 0xE3069283, "crcmod")
    assert "crc32c cannot be loaded" in caplog.text


def test_zlib_stands_in_for_a_crcmod_without_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "crcmod._crcfunext", None)
    monkeypatch.delattr("crcmod._crcfunext", raising=False)
    assert crc._load_crc32() is zlib.crc32
