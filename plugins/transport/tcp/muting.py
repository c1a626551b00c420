"""Why a connection takes no requests for a while. Each reason ends by itself, and requests are taken again when none is
left (Kafka's `ChannelMuteState` has its reasons likewise).

| reason | begins with | ends with |
|---|---|---|
| QUOTA | an answer that says for how long the client is held back | that time |
| TURN | connections that come faster than the broker lets them in | the turn of this one |
| LOGIN | a message that a mechanism looks at on a thread, or that fails | what was found; one that failed is told it |
"""

from __future__ import annotations

from typing import Final

QUOTA: Final = 1
TURN: Final = 2
LOGIN: Final = 4
