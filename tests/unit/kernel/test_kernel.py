"""The kernel: plugins by name, strangers before built-ins, errors that name the remedy."""

import pytest

from logkernel.errors import PluginError, UnsupportedCompressionType
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel


class Stranger:
    def __init__(self, tag):
        self.tag = tag

    @hookimpl
    def logkernel_partitioner(self, name, settings, seed):
        return self.tag if name in ("mine", "keyed") else None

    @hookimpl
    def logkernel_names(self):
        return [("partitioner", "mine")]


def test_every_entry_point_loads():
    """Also fails on a checkout that was made without symlinks."""
    names = Kernel()
    assert {"default", "keyed", "round_robin"} <= set(names.names("partitioner"))
    assert {"gzip", "snappy", "lz4", "zstd"} <= set(names.names("codec"))
    assert {"clean", "unclean"} <= set(names.names("election"))
    assert "delete" in names.names("cleanup policy") + names.names("cleanup")
    assert {"tcp", "memory"} <= set(names.names("transport"))
    assert {"local", "memory"} <= set(names.names("coordination"))
    assert "groups" in names.names("service")


def test_a_stranger_stands_in_for_a_built_in():
    assert Kernel(plugins=[Stranger("theirs")]).partitioner("keyed", {}, 0) == "theirs"


def test_two_kernels_share_nothing():
    one, other = Kernel(plugins=[Stranger("one")]), Kernel()
    assert one.partitioner("mine", {}, 0) == "one"
    with pytest.raises(PluginError, match="no plugin provides the partitioner 'mine'"):
        other.partitioner("mine", {}, 0)


def test_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(PluginError, match="did you mean 'round_robin'"):
        Kernel().partitioner("roundrobin", {}, 0)


def test_blocked_plugin_is_not_there():
    kernel = Kernel(block=["codec-lz4"])
    with pytest.raises(PluginError, match="lz4"):
        kernel.codec("lz4")
    with pytest.raises(UnsupportedCompressionType):
        kernel.codec_for(3)


@pytest.mark.parametrize("names", [{"block": ["codec-lz5", "codec-lz4"]}, {"allow": ["logkernels", "logkernel"]}])
def test_a_name_of_nothing_that_is_installed_is_told(names, caplog):
    Kernel(**names)
    (told,) = [message for message in caplog.messages if "no such plugin installed" in message]
    (what, (wrong, right)) = next(iter(names.items()))
    assert told.startswith(f"plugins.{what}: {wrong}: ")
    assert f"did you mean {'codec-' if what == 'block' else right}" in told


def test_unknown_codec_id():
    with pytest.raises(UnsupportedCompressionType, match="5"):
        Kernel().codec_for(5)
