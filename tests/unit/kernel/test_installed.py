"""Entry points as `importlib.metadata` finds them."""

from importlib import metadata

import pytest

from logkernel.installed import entry_points


@pytest.mark.parametrize("group", ["logkernel", "console_scripts", "pytest11"])
def test_the_same_as_the_standard_library(group):
    known = [(point.name, point.value.partition("[")[0].strip()) for point in metadata.entry_points(group=group)]
    assert known
    assert sorted((point.name, point.target) for point in entry_points(group)) == sorted(known)


def test_distributions_have_their_names():
    found = {point.distribution for point in entry_points("logkernel")}
    assert found == {point.dist.name for point in metadata.entry_points(group="logkernel")}


def distribution(folder, name, text):
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n\nName: not-this\n")
    (info / "entry_points.txt").write_text(text)


def test_attributes_extras_and_shadowed_distributions(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    distribution(first, "acme-one", "[other]\nx = nothing\n[logkernel]\nPath = os.path:join [extra]\n")
    distribution(second, "acme-one", "[logkernel]\nhidden = os\n")
    distribution(second, "acme-two", "[other]\nx = nothing\n")
    found = list(entry_points("logkernel", [str(first), str(tmp_path / "missing"), str(second)]))
    assert [(point.name, point.target, point.distribution) for point in found] == [("Path", "os.path:join", "acme-one")]
    import os.path

    assert found[0].load() is os.path.join


@pytest.mark.parametrize("sources", ["acme_one.egg-info", "Acme.One-1.0.egg-info", "acme__one-2.dist-info"])
def test_an_editable_install_has_each_plugin_once(tmp_path, sources):
    """Its folder of sources has a description, too, whose name is written in another way."""
    installed = tmp_path / "site-packages"
    distribution(installed, "acme-one", "[logkernel]\npath = os.path\n")
    info = tmp_path / "sources" / sources
    info.mkdir(parents=True)
    (info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: acme-one\n")
    (info / "entry_points.txt").write_text("[logkernel]\npath = os.path\n")
    found = list(entry_points("logkernel", [str(installed), str(tmp_path / "sources")]))
    assert [point.name for point in found] == ["path"]
    assert len(list(entry_points("logkernel", [str(tmp_path / "sources")]))) == 1, "the sources alone count, too"
