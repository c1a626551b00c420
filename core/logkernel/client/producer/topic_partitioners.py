"""The partitioners that topics name in their own settings, with the topics' settings that plugins own.

They are asked for once a topic, by DescribeConfigs. A foreign broker knows no such settings: then there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from logkernel.client.cluster.calls import ANY, Call, ClientCore
from logkernel.client.drivers.driver import mono_ms
from logkernel.config.definitions import TOPIC
from logkernel.config.values import parse
from logkernel.contracts import Partitioner
from logkernel.kernel import Kernel
from logkernel.requests.configs import DescribeConfigsRequest, DescribeConfigsResource

TOPIC_RESOURCE = 2
TOPIC_PARTITIONER = "partitioner"
TOPIC_PARTITIONER_MS = 5000
"""How long a topic's own partitioner is asked for before the default is used."""


class TopicPartitioners:
    """See the module. Use it under the client's lock."""

    def __init__(self, core: ClientCore, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        self.names: dict[str, str | None] = {}
        """Topic → the partitioner that it names, None for the default; a topic that was not asked for is absent."""
        self.asked: set[str] = set()
        """Topics whose answer is under way."""
        self._core = core
        self._kernel = kernel
        self._settings = settings
        self._plugin_settings: dict[str, dict[str, Any]] = {}
        """Topic → its settings that plugins own, typed, for its partitioner."""

    def make(self, topic: str, name: str, seed: int) -> Partitioner:
        """The plugin's partitioner of this name, with the producer's settings and the topic's."""
        return self._kernel.partitioner(name, {**self._settings, **self._plugin_settings.get(topic, {})}, seed)

    def ask(self, topic: str) -> None:
        """Have `names` say what the topic names, soon."""
        if topic in self.asked:
            return
        self.asked.add(topic)

        def answered(values: Mapping[str, str]) -> None:
            name = values.get(TOPIC_PARTITIONER, "")
            if name in ("", "default"):
                self.asked.discard(topic)
                self.names[topic] = None
            else:
                self._ask_plugin_settings(topic, name)

        self._describe(topic, [TOPIC_PARTITIONER], answered)

    def _ask_plugin_settings(self, topic: str, partitioner: str) -> None:
        """What the topic's partitioner is to do: the settings of the topic that plugins own."""
        owned = {
            setting.name: setting.type
            for plugin in self._kernel.declarations()
            for setting in plugin.settings
            if setting.scope == TOPIC
        }

        def answered(values: Mapping[str, str]) -> None:
            self.asked.discard(topic)
            self._plugin_settings[topic] = {name: parse(owned[name], text) for name, text in values.items()}
            self.names[topic] = partitioner

        if owned:
            self._describe(topic, list(owned), answered)
        else:
            answered({})

    def _describe(self, topic: str, names: list[str], answered: Callable[[Mapping[str, str]], None]) -> None:
        """Ask for settings of a topic; an error counts as none."""

        def heard(response: Any, error: Exception | None) -> None:
            rows = response.results if error is None else ()
            answered({config.name: config.value for row in rows for config in row.configs if config.value is not None})

        request = DescribeConfigsRequest([DescribeConfigsResource(TOPIC_RESOURCE, topic, names)])
        self._core.call(Call(ANY, request, mono_ms() + TOPIC_PARTITIONER_MS, heard))
