"""The kernel: plugins by name, strangers before built-ins, errors that name the remedy."""

from types import ModuleType, SimpleNamespace

import pytest

from logkernel import hookspecs
from logkernel.errors import PluginError, UnsupportedCompressionType
from logkernel.hookspecs import KINDS, hookimpl
from logkernel.installed import EntryPoint
from logkernel.kernel import Kernel


class Stranger:
    def __init__(self, tag):
        self.tag = tag

    def partition(self, key, value, partitions, available):
        return self.tag

    def on_batch_full(self, partition):
        pass

    @hookimpl
    def logkernel_partitioner(self, name, settings, seed):
        return self if name in ("mine", "keyed") else None

    @hookimpl
    def logkernel_names(self):
        return [("partitioner", "mine")]


def test_every_entry_point_loads():
    """Also fails on a checkout that was made without symlinks."""
    names = Kernel()
    assert {"default", "keyed", "round_robin"} <= set(names.names("partitioner"))
    assert {"gzip", "snappy", "lz4", "zstd"} <= set(names.names("codec"))
    assert {"clean", "unclean"} <= set(names.names("election"))
    assert "delete" in names.names("cleanup policy")
    assert {"tcp", "memory"} <= set(names.names("transport"))
    assert {"local", "memory"} <= set(names.names("coordination"))
    assert "groups" in names.names("service")


def test_a_stranger_stands_in_for_a_built_in():
    assert chosen(Kernel(plugins=[Stranger("theirs")]), "keyed") == "theirs"


def chosen(kernel, name):
    return kernel.partitioner(name, {}, 0).partition(None, None, 1, [0])


@pytest.mark.parametrize(
    ("plugins", "problem"),
    [
        (["no_such_module"], "'no_such_module': No module named"),
        ("no.such.module", "'no.such.module': No module named"),
        ([Stranger], "Stranger is a class; give an object of it"),
        ([5], "plugin 5 has no hook; mark its functions with @hookimpl"),
        (["types"], "has no hook"),
    ],
)
def test_what_is_no_plugin_is_refused(plugins, problem):
    with pytest.raises(PluginError, match=problem):
        Kernel(plugins=plugins)


def test_a_plugin_may_be_given_by_its_module_s_name():
    assert Kernel(block=["partitioner-keyed"], plugins=["logkernel.plugins.partitioners.keyed"]).partitioner(
        "keyed", {}, 0
    )


def test_two_kernels_share_nothing():
    one, other = Kernel(plugins=[Stranger("one")]), Kernel()
    assert chosen(one, "mine") == "one"
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


# ---------------------------------------------------------------- what a plugin's author got wrong


class Sloppy:
    @hookimpl
    def logkernel_names(self):
        return [("cleanup", "shred"), ("zigzag", "x"), ("codec", "brotli"), ("codec", "zstd"), ("partitioner", "near")]

    @hookimpl
    def logkernel_partitoner(self, name, settings, seed):
        return None

    @hookimpl(optionalhook=True)
    def logkernel_of_a_later_release(self):
        return None


def told(caplog, *words):
    return [message for message in caplog.messages if all(word in message for word in words)]


def test_a_misspelt_hook_is_told_with_the_nearest_and_the_plugin(caplog):
    Kernel(plugins=[Sloppy()])
    (message,) = told(caplog, "there is no hook")
    assert message.endswith("there is no hook logkernel_partitoner; did you mean logkernel_partitioner?")
    assert f" in {__file__!r}: " in message


class Unmarked:
    def logkernel_names(self):
        return [("cleanup policy", "shred")]

    @hookimpl
    def logkernel_cleanup(self, name):
        return None


class NearlyUnmarked:
    def logkernel_nams(self):
        return [("cleanup policy", "shred")]

    def logkernel_home(self):
        """No hook is called so or nearly so."""

    @property
    def logkernel_state(self):
        raise RuntimeError("a property is not asked")

    @hookimpl
    def logkernel_cleanup(self, name):
        return None


def test_a_hook_without_its_mark_is_refused_and_named():
    """It was never called, and a setting that chose the plugin was refused."""
    with pytest.raises(PluginError) as refused:
        Kernel(plugins=[Unmarked()])
    assert str(refused.value).startswith("plugin <")
    assert str(refused.value).endswith(": function logkernel_names isn't marked; decorate it with @logkernel.hookimpl")


def test_a_hook_without_its_mark_is_refused_in_a_module_and_an_installed_one(monkeypatch):
    module = ModuleType("acme_plain")
    module.logkernel_names = Unmarked.logkernel_names
    told = ": function logkernel_names isn't marked; decorate it with @logkernel.hookimpl$"
    with pytest.raises(PluginError, match=f"^plugin acme_plain{told}"):
        Kernel(plugins=[module])
    point = SimpleNamespace(name="plain", target="acme_plain", distribution="acme-plugins", load=lambda: module)
    monkeypatch.setattr("logkernel.kernel.loaded.entry_points", lambda group: iter([point]))
    with pytest.raises(PluginError, match=f"^plugin 'plain' of distribution 'acme-plugins'{told}"):
        Kernel()


def test_a_misspelt_hook_without_its_mark_is_told(caplog):
    Kernel(plugins=[NearlyUnmarked()])
    (message,) = told(caplog, "isn't marked")
    assert message.endswith(
        "function logkernel_nams isn't marked, and there is no such hook; did you mean logkernel_names? Then decorate"
        " it with @logkernel.hookimpl"
    )


def test_an_unknown_kind_is_told_with_the_nearest_and_the_plugin(caplog):
    kernel = Kernel(plugins=[Sloppy()])
    kernel.declarations()
    kernel.declarations()
    (near,) = told(caplog, "'shred'")
    assert "gives 'shred' the unknown kind 'cleanup'; did you mean 'cleanup policy'?" in near
    (far,) = told(caplog, "'zigzag'")
    assert "use one of assignor, authorizer, cleanup policy," in far
    assert all(f" in {__file__!r}: " in message for message in (near, far))


def test_a_codec_that_no_batch_can_name_is_told(caplog):
    Kernel(plugins=[Sloppy()]).declarations()
    (message,) = told(caplog, "brotli")
    assert "its codec 'brotli' can never be used" in message
    assert "knows only gzip, snappy, lz4, zstd; give the codec one of these names" in message


def test_built_ins_name_known_kinds_and_hooks_alone(caplog):
    kernel = Kernel(allow=())
    assert {kind for kind, _ in kernel.all_names()} <= set(KINDS)
    assert {name for declared in kernel.declarations() for name in declared.names} == set(kernel.all_names())
    assert not told(caplog, "hook")
    assert all(hasattr(hookspecs, hook) for hook in KINDS.values())


def test_a_plugin_that_fails_to_tell_of_itself_is_named():
    class Failing:
        @hookimpl
        def logkernel_settings(self):
            raise RuntimeError("a bug of its author")

    with pytest.raises(PluginError, match=r"failed in logkernel_settings: RuntimeError: a bug of its author; fix or"):
        Kernel(plugins=[Failing()]).declarations()


def test_a_distribution_that_is_not_allowed_is_told_once(monkeypatch, caplog):
    """A line an entry point, so most often two."""
    mine = [EntryPoint(name, "nowhere", "acme-plugins") for name in ("acme-geo", "acme-rack-first")]
    monkeypatch.setattr("logkernel.kernel.loaded.entry_points", lambda group: mine)
    Kernel(allow=["other"])
    (message,) = told(caplog, "not allowed")
    assert message == "plugin not allowed: distribution=acme-plugins entry_points=acme-geo,acme-rack-first"


class Codecs:
    def __init__(self, name, codec_id):
        self.name, self.codec_id = name, codec_id
        self.compress = self.decompress = self.decompress_legacy = bytes

    @hookimpl
    def logkernel_codec(self, name, level):
        return self if name == self.name else None

    @hookimpl
    def logkernel_names(self):
        return [("codec", self.name)]


def test_a_codec_can_stand_in_for_one_of_kafkas_alone():
    mine = Codecs("zstd", 4)
    assert Kernel(plugins=[mine]).codec("zstd") is mine
    with pytest.raises(PluginError, match="'brotli' can't be used, as Kafka's batch format knows only gzip, snappy"):
        Kernel(plugins=[Codecs("brotli", 5)]).codec("brotli")


def test_a_codec_with_another_ones_number_is_refused():
    """Its batches would be read by the wrong codec."""
    with pytest.raises(PluginError, match="the codec 'zstd' with the codec_id 3; use the id of zstd"):
        Kernel(plugins=[Codecs("zstd", 3)]).codec("zstd")
