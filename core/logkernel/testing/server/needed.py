"""What a control port needs and logkernel does not bring."""

from __future__ import annotations

from importlib import util

from logkernel.errors import ConfigError


def check_werkzeug() -> None:
    """Raises `ConfigError` where it is missing."""
    if util.find_spec("werkzeug") is None:
        raise ConfigError(
            "the control port needs werkzeug, which is not installed; pip install 'logkernel[test-server]'"
        )
