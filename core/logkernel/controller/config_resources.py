"""ListConfigResources (KIP-1000, KIP-1142): lists what has settings. Topics, brokers and their loggers are always
listed; groups and client metrics subscriptions are listed after one of their settings was set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from logkernel.controller.image import ClusterImage, client_metrics_key, group_key
from logkernel.errors import UnsupportedVersion
from logkernel.requests.configs import ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
Brokers = Sequence[int]


def _keyed(image: ClusterImage, prefix: str) -> Iterable[str]:
    return (key.removeprefix(prefix) for key in image.configs if key.startswith(prefix))


_NAMES: Final[Mapping[int, Callable[[ClusterImage, Brokers], Iterable[str]]]] = {
    TOPIC: lambda image, brokers: image.topics,
    BROKER: lambda image, brokers: map(str, brokers),
    BROKER_LOGGER: lambda image, brokers: map(str, brokers),
    CLIENT_METRICS: lambda image, brokers: _keyed(image, client_metrics_key("")),
    GROUP: lambda image, brokers: _keyed(image, group_key("")),
}


def list_config_resources(
    request: ListConfigResourcesRequest, image: ClusterImage, brokers: Brokers
) -> ListConfigResourcesResponse:
    """A request without types asks for all. An unknown type is an error of the whole request."""
    kinds = list(dict.fromkeys(request.resource_types)) or list(_NAMES)
    if any(kind not in _NAMES for kind in kinds):
        return ListConfigResourcesResponse(error_code=UnsupportedVersion.code)
    return ListConfigResourcesResponse(
        config_resources=[ConfigResource(name, kind) for kind in kinds for name in sorted(_NAMES[kind](image, brokers))]
    )
