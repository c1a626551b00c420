"""What a call of the control port is answered with.

A failed call's answer is `{"error": NAME, "message": "problem; remedy"}`:

| status | when |
|---|---|
| 400 | something in the request is wrong: a field, a setting, an operation that this broker does not have |
| 403 | a web page sent it |
| 404 | there is no such path, topic, group, fault or snapshot |
| 405 | the path is there, for another method |
| 409 | what was waited for did not come (`AssertionError`), or the broker refuses (Kafka's errors) |
| 413 | the body is too large |
| 500 | the test server failed; its log on stderr says where |
| 503 | the broker is stopped, or each of several |
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from werkzeug.exceptions import HTTPException, NotFound
from werkzeug.wrappers import Request, Response

from logkernel.errors import (
    ConfigError,
    GroupIdNotFound,
    KafkaError,
    LogkernelError,
    PluginError,
    UnknownTopicOrPartition,
)

BAD: Final = (ConfigError, PluginError, ValueError)
MISSING: Final = (UnknownTopicOrPartition, GroupIdNotFound)

log = logging.getLogger("logkernel.control")


def answer(status: int, row: Any) -> Response:
    return Response(json.dumps(row, separators=(",", ":")) + "\n", status, content_type="application/json")


def failed(status: int, error: str, message: str) -> Response:
    return answer(status, {"error": error, "message": message})


def told(error: Exception, stopped: str) -> Response:
    """What a call raised. `stopped` is what is said where no broker runs, "" where one does."""
    name, text = type(error).__name__, str(error)
    if isinstance(error, AssertionError):
        return failed(409, name, text)
    if isinstance(error, RecursionError):
        return failed(400, name, "the body is nested too deeply; send less within another")
    if isinstance(error, BAD):
        return failed(400, name, text)
    if isinstance(error, LogkernelError) and stopped:
        return failed(503, name, stopped)
    if isinstance(error, MISSING):
        return failed(404, name, text)
    if isinstance(error, LogkernelError):
        return failed(409 if isinstance(error, KafkaError) else 400, name, text)
    log.error("a call failed", exc_info=error)
    return failed(500, name, f"{text}; see the log on stderr")


def unread(refusal: HTTPException) -> Response:
    """To a request whose body was refused before anybody looked at it."""
    return failed(refusal.code or 500, type(refusal).__name__, f"{refusal.description} Send a smaller body.")


def refused(refusal: HTTPException, request: Request, hint: str) -> Response:
    """What the router refuses, or a `NotFound` of ours with its own words. `hint` is the remedy for a path that another
    kind of server has, "" for any other."""
    code = refusal.code or 500
    if code == 405:
        methods = sorted(set(getattr(refusal, "valid_methods", None) or ()) - {"HEAD", "OPTIONS"})
        text = f"{request.path} has no {request.method}; use {' or '.join(methods)}"
    elif code == 404 and refusal.description == NotFound.description:
        text = f"there is no {request.path}; {hint or 'GET /health, and see docs/testing-other-languages.md'}"
    else:
        text = str(refusal.description)
    return failed(code, type(refusal).__name__, text)
