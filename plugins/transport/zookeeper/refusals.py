"""Why a server of ZooKeeper was of no use, from what kazoo raised: problem and remedy. Pure."""

from __future__ import annotations

from typing import Final

from kazoo.exceptions import AuthFailedError, SessionClosedRequireSaslError, SessionExpiredError
from kazoo.protocol.connection import SASLException

from logkernel.attrs_lite import frozen
from logkernel.errors import NetworkException, SaslAuthenticationFailed

from .options import JAAS, KerberosLogin, Login, Options

_TRUST: Final = "put the CA of its certificate into zookeeper.ssl.truststore.location"
_RENAME: Final = (
    "name it in zookeeper.connect as its certificate does, or set zookeeper.ssl.endpoint.identification.algorithm to"
    " nothing"
)
_RENEW: Final = "renew it, or set the clock right"
_REISSUE: Final = "issue one whose extended key usage has serverAuth, or which has none"
_REMEDIES: Final = {62: _RENAME, 64: _RENAME, 9: _RENEW, 10: _RENEW, 26: _REISSUE}
"""X509_V_ERR_HOSTNAME_MISMATCH, …IP_ADDRESS_MISMATCH, …CERT_NOT_YET_VALID, …CERT_HAS_EXPIRED, …INVALID_PURPOSE of
OpenSSL."""


@frozen
class Refusal:
    """See the module."""

    text: str
    """Problem and remedy."""
    is_certain: bool = False
    """The next attempt will end like this one: it is no server that just starts."""
    ends_all: bool = False
    """No server is tried after this one."""


def refusal_of(server: str, error: BaseException, options: Options) -> Refusal | None:
    """None where it says no more than that nobody answered."""
    cause = error
    while (deeper := cause.__cause__ or cause.__context__) is not None and not hasattr(cause, "verify_code"):
        cause = deeper
    if isinstance(error, SessionExpiredError):
        return None
    if isinstance(error, AuthFailedError | SessionClosedRequireSaslError) and options.login is not None:
        return Refusal(_refused(server, options.login), is_certain=True, ends_all=True)
    if isinstance(error, SaslAuthenticationFailed):
        return Refusal(f"this broker cannot log in at {server}: {error}", is_certain=True, ends_all=True)
    if isinstance(error, NetworkException):  # no KDC answers
        return Refusal(f"this broker cannot log in at {server}: {error}")
    if isinstance(error, SASLException):
        if _lacks_sasl():
            text = f"{JAAS} needs the package pure-sasl; install logkernel[zookeeper]"
        else:
            text = f"{server} does not log in by DIGEST-MD5 ({cause}); look into ZooKeeper's log"
        return Refusal(text, is_certain=True, ends_all=True)
    verified = getattr(cause, "verify_message", None)
    if verified:
        remedy = _REMEDIES.get(getattr(cause, "verify_code", 0), _TRUST)
        return Refusal(f"the certificate of {server} is not trusted: {verified}; {remedy}", is_certain=True)
    reason = str(getattr(cause, "reason", None) or "")
    if "_ALERT_" in reason:
        words = reason.lower().replace("_", " ")
        remedy = (
            "give a certificate that it trusts by zookeeper.ssl.keystore.location, valid now and for clients, and"
            " compare zookeeper.ssl.enabled.protocols and zookeeper.ssl.cipher.suites with its own; its log says more"
        )
        return Refusal(f"{server} refuses TLS ({words}); {remedy}", is_certain=True)
    return _ended(server, error, cause, options)


def _refused(server: str, login: Login | KerberosLogin) -> str:
    who = f"{server} refuses the login of {login.user or 'the ticket cache'!r} by {login.mechanism}"
    if isinstance(login, KerberosLogin):
        return f"{who}; compare the keytab of ZooKeeper with its key at the KDC, and the clocks: its log says more"
    return f"{who}; correct {JAAS}, or give ZooKeeper this user in the section Server of its own login file"


def _ended(server: str, error: BaseException, cause: BaseException, options: Options) -> Refusal | None:
    """What one end of the connection may mean; a server that just starts ends it, too."""
    text = f"{error} {cause}".lower()
    if not any(word in text for word in ("eof", "broken", "reset", "wrong version", "wrong_version", "not_ssl")):
        return None
    if options.tls is not None:
        return Refusal(
            f"{server} ended the TLS connection; name ZooKeeper's secureClientPort in zookeeper.connect, and give a"
            f" certificate by zookeeper.ssl.keystore.location if it asks for one"
        )
    return Refusal(
        f"{server} ended the connection; if this is ZooKeeper's secureClientPort, set zookeeper.ssl.client.enable=true"
    )


def _lacks_sasl() -> bool:
    import importlib.util

    return importlib.util.find_spec("puresasl") is None
