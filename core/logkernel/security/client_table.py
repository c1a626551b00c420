"""Settings by which a client says who it is and whom it trusts: Kafka's names, types and defaults, and librdkafka's
where Kafka has none. Defaults are text, as in a file."""

from __future__ import annotations

from typing import Final

from logkernel.config.definitions import Setting
from logkernel.config.values import BOOLEAN, CLASS, INT, LIST, LONG, PASSWORD, STRING, Between, Each, NonEmpty, OneOf
from logkernel.vocabulary import SECURITY_PROTOCOLS

PROTOCOL: Final = "security.protocol"
HANDLER: Final = "sasl.login.callback.handler.class"
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
"""The grant by which an assertion is exchanged for a token (RFC 7523)."""
IN_CAPITALS: Final = frozenset({PROTOCOL, "sasl.oauthbearer.assertion.algorithm"})
"""Settings whose case does not matter."""


def _text(name: str, default: str | None, doc: str, *, kind: int = STRING) -> Setting:
    return Setting(name, kind, default, None, doc)


def _secret(name: str, doc: str) -> Setting:
    return Setting(name, PASSWORD, None, None, doc, sensitive=True)


def _ms(name: str, default: str | None, doc: str) -> Setting:
    return Setting(name, LONG, default, Between(0), doc)


_PROTOCOLS: Final = (
    Setting(
        PROTOCOL,
        STRING,
        "PLAINTEXT",
        OneOf(*SECURITY_PROTOCOLS),
        "How to talk to brokers: by TLS (SSL, SASL_SSL) or not, and with an authentication by SASL or without. The case"
        " does not matter.",
    ),
)

_TLS: Final = (
    _text(
        "ssl.truststore.location",
        None,
        "File with the certificates of the authorities that sign brokers' certificates. Not set: those of the system.",
    ),
    _secret("ssl.truststore.certificates", "These certificates themselves, as PEM."),
    _secret("ssl.truststore.password", "Password of the truststore; PEM has none."),
    _text("ssl.truststore.type", "JKS", "Format of the truststore: JKS, PKCS12 or PEM."),
    _text("ssl.keystore.location", None, "File with the client's private key and certificates, for mutual TLS."),
    _secret("ssl.keystore.key", "The private key itself, as PEM (PKCS#8)."),
    _secret(
        "ssl.keystore.certificate.chain", "The client's certificate, and those that lead to its authority, as PEM."
    ),
    _secret("ssl.keystore.password", "Password of the keystore file."),
    _text("ssl.keystore.type", "JKS", "Format of the keystore: JKS, PKCS12 or PEM."),
    _secret("ssl.key.password", "Password of the private key."),
    _text("ssl.key.location", None, "File with the private key as PEM, if it is apart from the certificates."),
    _text(
        "ssl.certificate.location", None, "File with the client's certificates as PEM; the key is in ssl.key.location."
    ),
    Setting(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        OneOf("https", "none", ""),
        "`https`: the broker's certificate has to be for the name that you connect to. `none`, or empty: any name will"
        " do.",
    ),
    Setting(
        "enable.ssl.certificate.verification",
        BOOLEAN,
        "true",
        None,
        "`false` accepts every certificate: anyone between you and the broker can read and change what you send.",
    ),
    Setting(
        "ssl.enabled.protocols",
        LIST,
        "TLSv1.2,TLSv1.3",
        Each(),
        "Versions of TLS that may be spoken.",
    ),
    _text("ssl.protocol", "TLSv1.3", "The version of TLS to speak, if ssl.enabled.protocols is empty."),
    Setting(
        "ssl.cipher.suites",
        LIST,
        None,
        Each(),
        "Cipher suites, by the names of the RFCs or of OpenSSL. Not set: OpenSSL's choice.",
    ),
)

_SASL: Final = (
    Setting(
        "sasl.mechanism",
        STRING,
        "GSSAPI",
        NonEmpty(),
        "How to authenticate: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI.",
    ),
    _secret(
        "sasl.jaas.config",
        "The login, as Java's clients have it: the class of a login module, `required`, options and a semicolon. No"
        " class is loaded.",
    ),
    _text("sasl.username", None, "User of PLAIN and SCRAM, instead of sasl.jaas.config."),
    _secret("sasl.password", "Password of sasl.username."),
    _text(
        "sasl.kerberos.service.name",
        None,
        "First part of the brokers' Kerberos principals, e.g. `kafka` of `kafka/broker1.example.com@EXAMPLE.COM`.",
    ),
    _text("sasl.kerberos.principal", None, "The client's Kerberos principal, instead of sasl.jaas.config."),
    _text("sasl.kerberos.keytab", None, "File with the keys of that principal. Not set: the ticket cache."),
    _text(
        HANDLER,
        None,
        "Where tokens of OAUTHBEARER come from: `OAuthBearerLoginCallbackHandler` (a token endpoint),"
        " `OAuthBearerUnsecuredLoginCallbackHandler` (unsigned, for tests), in full or not, the name of an installed"
        " provider, or a function. Not set: the token endpoint, if there is one.",
        kind=CLASS,
    ),
    _text(
        "sasl.oauthbearer.token.endpoint.url",
        None,
        "URL of the token endpoint, with http or https; or, with file, of a file that has the token.",
    ),
    _text(
        "sasl.oauthbearer.jwt.retriever.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "How the token endpoint is asked, in full or not: `ClientCredentialsJwtRetriever`, `FileJwtRetriever`,"
        " `JwtBearerJwtRetriever` (an assertion as the grant, KIP-1139), or `DefaultJwtRetriever`, one of the first"
        " two by the URL. No class is loaded.",
        kind=CLASS,
    ),
    Setting(
        "sasl.oauthbearer.grant.type",
        STRING,
        None,
        OneOf("client_credentials", JWT_BEARER),
        "librdkafka's way to choose the retriever: by the client's own credentials, or by an assertion (KIP-1139).",
    ),
    Setting(
        "sasl.oauthbearer.metadata.authentication.type",
        STRING,
        "none",
        OneOf("none", "azure_imds", "aws_iam"),
        "librdkafka's; only `none` is supported here. For tokens of Azure or AWS, give a function, or an installed"
        f" provider, by {HANDLER}.",
    ),
    _text(
        "https.ca.location",
        None,
        "File with the certificates, as PEM, of the authorities that sign the token endpoint's certificate, instead of"
        " options `ssl.truststore.…` of the login module. Not set, or `probe`: those of the system.",
    ),
    _secret("https.ca.pem", "These certificates themselves, as PEM."),
    _text("sasl.oauthbearer.client.credentials.client.id", None, "Id of the client at the token endpoint."),
    _secret("sasl.oauthbearer.client.credentials.client.secret", "Secret of the client at the token endpoint."),
    _text(
        "sasl.oauthbearer.assertion.file",
        None,
        "File with an assertion (a JWT) that another program keeps fresh; it shows the token endpoint who the client"
        " is, instead of a secret. The other settings of assertions are ignored then.",
    ),
    _text(
        "sasl.oauthbearer.assertion.private.key.file",
        None,
        "File with the private key, as PEM, that signs assertions. It is read for each.",
    ),
    _secret("sasl.oauthbearer.assertion.private.key.pem", "This key itself, as PEM."),
    _secret("sasl.oauthbearer.assertion.private.key.passphrase", "Password of this key."),
    Setting(
        "sasl.oauthbearer.assertion.algorithm",
        STRING,
        "RS256",
        OneOf("RS256", "ES256"),
        "How assertions are signed. The case does not matter.",
    ),
    _text("sasl.oauthbearer.assertion.claim.aud", None, "Claim `aud` of assertions: whom they are for."),
    _text(
        "sasl.oauthbearer.assertion.claim.iss",
        None,
        "Claim `iss` of assertions: who issues them. With it, client credentials are asked for by an assertion"
        " (KIP-1258).",
    ),
    _text("sasl.oauthbearer.assertion.claim.sub", None, "Claim `sub` of assertions: whom they are about."),
    Setting(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        INT,
        "300",
        Between(0, 86_400),
        "Time in s for which an assertion is valid.",
    ),
    Setting(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        INT,
        "60",
        Between(0, 3_600),
        "Time in s before its creation from which an assertion is valid, as clocks differ.",
    ),
    Setting(
        "sasl.oauthbearer.assertion.claim.jti.include",
        BOOLEAN,
        "false",
        None,
        "Whether each assertion has an id of its own, in its claim `jti`.",
    ),
    _text(
        "sasl.oauthbearer.assertion.template.file",
        None,
        'File with more headers and claims of assertions, as JSON: `{"header": {}, "payload": {}}`.',
    ),
    _text("sasl.oauthbearer.scope", None, "Scope to ask the token endpoint for."),
    _text("sasl.oauthbearer.extensions", None, "SASL extensions of the token, as name=value,name=value (KIP-342)."),
    Setting(
        "sasl.oauthbearer.header.urlencode",
        BOOLEAN,
        "false",
        None,
        "Whether id and secret are URL-encoded in the header to the token endpoint (RFC 6749).",
    ),
    Setting(
        "sasl.login.connect.timeout.ms", INT, None, Between(1), "Time limit in ms to connect to the token endpoint."
    ),
    Setting("sasl.login.read.timeout.ms", INT, None, Between(1), "Time limit in ms for the token endpoint's answer."),
    _ms("sasl.login.retry.backoff.ms", "100", "Time in ms before the token endpoint is first asked again."),
    _ms("sasl.login.retry.backoff.max.ms", "10000", "Upper bound of that time in ms; it doubles with each failure."),
)

CLIENT_SECURITY: Final = (*_PROTOCOLS, *_TLS, *_SASL)

SYNONYMS: Final = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "sasl.oauthbearer.assertion.jwt.template.file": "sasl.oauthbearer.assertion.template.file",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
}
"""librdkafka's name → Kafka's."""

OAUTHBEARER_METHOD: Final = "sasl.oauthbearer.method"
"""librdkafka's; `oidc` is taken in silence, as its lines for a token endpoint have to have it."""

WITHOUT_EFFECT: Final = frozenset(
    (
        "ssl.provider", "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm", "ssl.secure.random.implementation",
        "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin", "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor", "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter", OAUTHBEARER_METHOD, "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
    )
)  # fmt: skip
"""Settings of how other clients do TLS, renew tickets, and get and read tokens: accepted with a warning."""

_UNSIGNED: Final = "unsigned tokens come from the login module; set unsecuredLoginStringClaim_sub in sasl.jaas.config"

REFUSED: Final = {
    "ssl.engine.factory.class": "it names a class of Java; name files by ssl.keystore.location and the like",
    "sasl.login.class": "it names a class of Java; leave it out",
    "sasl.client.callback.handler.class": "it names a class of Java; give the password by sasl.jaas.config",
    "sasl.oauthbearer.jwt.validator.class": "it names a class of Java; the broker checks the token",
    "sasl.oauthbearer.config": _UNSIGNED,
    "enable.sasl.oauthbearer.unsecure.jwt": _UNSIGNED,
    "ssl.crl.location": "lists of revoked certificates are not read; have certificates that last for a short time",
    "ssl.ca.certificate.stores": "stores of Windows are not read; name a file by ssl.ca.location",
    "ssl.curves.list": "curves are OpenSSL's choice; leave it out",
    "ssl.sigalgs.list": "signature algorithms are OpenSSL's choice; leave it out",
    "ssl.engine.id": "engines of OpenSSL are not loaded; name a file by ssl.key.location",
    "ssl.engine.location": "engines of OpenSSL are not loaded; name a file by ssl.key.location",
    "ssl.providers": "providers of OpenSSL are not loaded; leave it out",
}
"""Settings of Kafka's and librdkafka's clients that are refused → the reason."""
