"""Carries out the actions of a `network.Network` on the running event loop, over the channels of a transport.

What comes of them is told as an event: a function that its owner calls with the time, on the loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from logkernel.errors import REFUSALS, NetworkException
from logkernel.peer.network import LOSSES, Action, Close, Connect, Network, Transmit

Event = Callable[[int], None]
"""Takes the monotonic time in ms."""


class LoopChannels:
    """See the module. Used on one loop, which runs when the first action is performed."""

    def __init__(
        self,
        network: Network,
        transport: Any,
        settings_of: Callable[[int], Mapping[str, Any]],
        happened: Callable[[Event], None],
    ) -> None:
        """`transport` is a `contracts.Transport`, `settings_of` gives those of a new channel to a node. `happened` is
        never called from within `perform`."""
        self._network = network
        self._transport = transport
        self._settings_of = settings_of
        self._happened = happened
        self._channels: dict[int, Any] = {}
        self._connects: dict[int, asyncio.Task[None]] = {}
        self._closed = False

    def perform(self, action: Action) -> None:
        if isinstance(action, Transmit):
            self._transmit(action)
        elif isinstance(action, Connect):
            self._connects[action.number] = asyncio.get_running_loop().create_task(self._connect(action))
        elif isinstance(action, Close):
            task = self._connects.pop(action.number, None)
            if task is not None:
                task.cancel()
            self._drop(action.number)

    def close(self) -> None:
        """Close every channel; nothing happens any more."""
        self._closed = True
        for task in list(self._connects.values()):
            task.cancel()
        for number in list(self._channels):
            self._drop(number)

    def _drop(self, number: int) -> None:
        channel = self._channels.pop(number, None)
        if channel is not None:
            channel.on_closed = None
            channel.close()

    # ------------------------------------------------------------ what happens

    def _tell(self, event: Event) -> None:
        if not self._closed:
            self._happened(event)

    def _transmit(self, action: Transmit) -> None:
        channel, number, request_id = self._channels.get(action.number), action.number, action.request_id
        if channel is None:
            return
        try:
            reply = channel.send(action.request, action.withheld)
        except LOSSES as error:
            self._lost_soon(number, error)
        except Exception as error:  # it has no form that the peer knows
            refused = error
            event: Event = lambda now_ms: self._network.on_refused(number, request_id, refused, now_ms)  # noqa: E731
            asyncio.get_running_loop().call_soon(self._tell, event)
        else:
            reply.add_done_callback(partial(self._answered, number, request_id))

    def _answered(self, number: int, request_id: int, reply: asyncio.Future[Any]) -> None:
        if not reply.cancelled() and reply.exception() is None:  # else the channel is closed, and that is told
            response = reply.result()
            self._tell(lambda now_ms: self._network.on_response(number, request_id, response, now_ms))

    def _lost_soon(self, number: int, error: Exception) -> None:
        asyncio.get_running_loop().call_soon(self._lost, number, error)

    def _lost(self, number: int, error: Exception) -> None:
        self._channels.pop(number, None)
        self._tell(lambda now_ms: self._network.on_lost(number, error, now_ms))

    async def _connect(self, action: Connect) -> None:
        number = action.number
        try:
            settings = {**self._settings_of(action.node), "socket.connection.setup.timeout.ms": action.timeout_ms}
            channel = await self._transport.connect_async(action.host, action.port, settings)
        except Exception as error:
            failure = error if isinstance(error, (NetworkException, *REFUSALS)) else NetworkException(str(error))
            self._tell(lambda now_ms: self._network.on_lost(number, failure, now_ms))
            return
        finally:
            self._connects.pop(number, None)
        if self._closed:
            channel.close()
            return
        self._channels[number] = channel
        channel.on_closed = partial(self._lost_soon, number)
        self._tell(lambda now_ms: self._network.on_connected(number, channel.features, now_ms))
