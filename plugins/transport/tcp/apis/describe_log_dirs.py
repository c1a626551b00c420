"""DescribeLogDirs (key 35), versions 1-5: directories, their space, and the logs in them.

- An error of the whole goes out from version 3, total and usable bytes from 4, `is_cordoned` from 5.
"""

from __future__ import annotations

from ..api import Api


class DescribeLogDirs(Api):
    """Read and written by the generic codec."""
