"""Broker settings of TLS and SASL. A listener has its own as `listener.name.NAME.SETTING`, NAME in lower case; a
mechanism's as `listener.name.NAME.MECHANISM.SETTING`."""

from __future__ import annotations

from logkernel.config.definitions import Setting
from logkernel.config.values import CLASS, INT, LIST, LONG, PASSWORD, STRING, Between, Each, OneOf, Validator


def _row(
    name: str,
    kind: int,
    default: str | None,
    validator: Validator | None,
    doc: str,
    *,
    dynamic: bool = False,
    own: bool = False,
) -> Setting:
    return Setting(
        name, kind, default, validator, doc, dynamic=dynamic, sensitive=kind == PASSWORD, own=own, per_listener=True
    )


ROWS: tuple[Setting, ...] = (
    # keys and certificates
    _row(
        "ssl.keystore.type",
        STRING,
        "JKS",
        None,
        "Format of the key and its certificates: PEM, PKCS12 or JKS. A file that is of another one of these is read all"
        " the same.",
        dynamic=True,
    ),
    _row("ssl.keystore.location", STRING, None, None, "File with this broker's key and certificates.", dynamic=True),
    _row("ssl.keystore.password", PASSWORD, None, None, "Password of that file.", dynamic=True),
    _row("ssl.keystore.key", PASSWORD, None, None, "The private key itself, as PEM (PKCS#8).", dynamic=True),
    _row(
        "ssl.keystore.certificate.chain",
        PASSWORD,
        None,
        None,
        "The certificates of `ssl.keystore.key`, as PEM, this broker's first.",
        dynamic=True,
    ),
    _row("ssl.key.password", PASSWORD, None, None, "Password of the private key.", dynamic=True),
    _row("ssl.truststore.type", STRING, "JKS", None, "Format of the trusted certificates, as above.", dynamic=True),
    _row(
        "ssl.truststore.location",
        STRING,
        None,
        None,
        "File with the certificates that sign clients' certificates.",
        dynamic=True,
    ),
    _row("ssl.truststore.password", PASSWORD, None, None, "Password of that file.", dynamic=True),
    _row("ssl.truststore.certificates", PASSWORD, None, None, "These certificates themselves, as PEM.", dynamic=True),
    # TLS
    _row(
        "ssl.protocol",
        STRING,
        "TLSv1.3",
        None,
        "The newest version of TLS that is spoken; `ssl.enabled.protocols` may allow older ones.",
        dynamic=True,
    ),
    _row(
        "ssl.enabled.protocols",
        LIST,
        "TLSv1.2,TLSv1.3",
        Each(OneOf("TLSv1.2", "TLSv1.3")),
        "Versions of TLS that are spoken.",
        dynamic=True,
    ),
    _row(
        "ssl.cipher.suites",
        LIST,
        "",
        Each(),
        "Cipher suites of TLS 1.2, by IANA's or OpenSSL's names; empty: those that OpenSSL finds safe.",
        dynamic=True,
    ),
    _row(
        "ssl.client.auth",
        STRING,
        "none",
        OneOf("required", "requested", "none"),
        "Whether clients show a certificate: they have to, may, or are not asked. Listeners of SASL_SSL take their own"
        " setting only.",
        dynamic=True,
    ),
    _row(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        None,
        "How this broker checks the host names of other brokers' certificates; empty does not check them.",
        dynamic=True,
    ),
    _row(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        None,
        "From the name in a client's certificate to its principal: rules RULE:pattern/replacement/[LU] and DEFAULT (the"
        " whole name), separated by commas; the first that matches counts. Patterns are RE2's.",
    ),
    # SASL
    _row(
        "sasl.enabled.mechanisms",
        LIST,
        "GSSAPI",
        Each(),
        "Mechanisms by which clients of a SASL listener may say who they are: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512,"
        " OAUTHBEARER, GSSAPI. The default is Kafka's: GSSAPI needs logkernel[kerberos] and a keytab.",
        dynamic=True,
    ),
    _row(
        "sasl.jaas.config",
        PASSWORD,
        None,
        None,
        "A mechanism's login, as listener.name.NAME.MECHANISM.sasl.jaas.config. PLAIN has its users in it:"
        ' `org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";`. `username` and'
        " `password` are what this broker says to other brokers. No class is loaded.",
        dynamic=True,
    ),
    _row(
        "sasl.server.callback.handler.class",
        CLASS,
        None,
        None,
        "As listener.name.NAME.plain.sasl.server.callback.handler.class: the plugin that checks the passwords of PLAIN."
        " As listener.name.NAME.oauthbearer.sasl.server.callback.handler.class: accepts unsecured tokens where it ends"
        " in OAuthBearerUnsecuredValidatorCallbackHandler. No class is loaded.",
    ),
    _row(
        "sasl.server.max.receive.size",
        INT,
        "524288",
        Between(1),
        "Bytes of a message before its sender is authenticated.",
    ),
    _row(
        "connections.max.reauth.ms",
        LONG,
        "0",
        Between(0),
        "Time in ms after which a client of SASL has to authenticate again on its connection (KIP-368), or is"
        " disconnected; 0 asks for it only where its token expires.",
    ),
    _row(
        "connection.failed.authentication.delay.ms",
        INT,
        "100",
        Between(0),
        "Time in ms before a client is told that it failed to authenticate.",
    ),
    _row(
        "logkernel.authentication.timeout.ms",
        LONG,
        "30000",
        Between(1),
        "Time in ms that a client may take to authenticate, TLS handshake included; then it is disconnected.",
        own=True,
    ),
    _row(
        "logkernel.password.check.timeout.ms",
        INT,
        "10000",
        Between(1),
        "Time in ms that a plugin may take to check a password; then the login is refused.",
        own=True,
    ),
    # Kerberos
    _row(
        "sasl.kerberos.service.name",
        STRING,
        None,
        None,
        "First part of the brokers' Kerberos principals. Without a principal in the login of GSSAPI, the keytab's keys"
        " of this service are used.",
        dynamic=True,
    ),
    _row(
        "sasl.kerberos.principal.to.local.rules",
        LIST,
        "DEFAULT",
        Each(),
        "From a Kerberos principal to the name of a client: rules RULE:[n:string], behind which may be (regex),"
        " s/pattern/replacement/, g, and /L or /U; and DEFAULT (the first part of a name of the default realm). The"
        " first that is for a name counts. Patterns are RE2's.",
        dynamic=True,
    ),
    # tokens
    _row(
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        None,
        "Where the keys are that sign clients' tokens, as a JWKS: https://…, http://… or file:///….",
    ),
    _row(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        LONG,
        "3600000",
        Between(1),
        "Time in ms after which these keys are read again.",
    ),
    _row(
        "sasl.oauthbearer.expected.audience",
        LIST,
        "",
        Each(),
        "Audiences of which a token must name one; empty: it need not name any.",
    ),
    _row(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        LONG,
        "100",
        Between(1),
        "Time in ms before a failed read of the keys is first tried again.",
    ),
    _row(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        "10000",
        Between(1),
        "Upper bound of that time in ms.",
    ),
    _row("sasl.oauthbearer.expected.issuer", STRING, None, None, "The issuer that a token must name."),
    _row(
        "sasl.oauthbearer.clock.skew.seconds",
        INT,
        "30",
        Between(0),
        "Seconds by which the clocks of this broker and of the issuer may differ.",
    ),
    _row("sasl.oauthbearer.scope.claim.name", STRING, "scope", None, "The claim that has a token's scope."),
    _row("sasl.oauthbearer.sub.claim.name", STRING, "sub", None, "The claim that has the name of the principal."),
    # this broker's own token, for other brokers
    _row(
        "sasl.login.callback.handler.class",
        CLASS,
        None,
        None,
        "As listener.name.NAME.oauthbearer.sasl.login.callback.handler.class: where this broker's token for other"
        " brokers comes from, as [clients](client-security-settings.md) have it. No class is loaded.",
    ),
    _row(
        "sasl.oauthbearer.token.endpoint.url",
        STRING,
        None,
        None,
        "Where this broker gets its token for other brokers: https://…, http://…, or file:///… that has one.",
    ),
    _row(
        "sasl.oauthbearer.client.credentials.client.id", STRING, None, None, "This broker's id at the token endpoint."
    ),
    _row(
        "sasl.oauthbearer.client.credentials.client.secret",
        PASSWORD,
        None,
        None,
        "This broker's secret at the token endpoint.",
    ),
    _row("sasl.oauthbearer.scope", STRING, None, None, "Scope that this broker asks the token endpoint for."),
    _row("sasl.login.connect.timeout.ms", INT, None, Between(1), "Time limit in ms to connect to the token endpoint."),
    _row("sasl.login.read.timeout.ms", INT, None, Between(1), "Time limit in ms for the token endpoint's answer."),
    _row(
        "sasl.login.retry.backoff.ms",
        LONG,
        "100",
        Between(0),
        "Time in ms before the token endpoint is first asked again.",
    ),
    _row(
        "sasl.login.retry.backoff.max.ms",
        LONG,
        "10000",
        Between(0),
        "Upper bound of that time in ms; it doubles with each failure.",
    ),
    # delegation tokens: of the broker, not of a listener
    Setting(
        "delegation.token.secret.key",
        PASSWORD,
        None,
        None,
        "Makes the passwords of delegation tokens (KIP-48); the same on every broker of a cluster. Without it there are"
        " no tokens; with another one, those that exist log nobody in.",
        sensitive=True,
    ),
    Setting(
        "delegation.token.max.lifetime.ms",
        LONG,
        "604800000",
        Between(1),
        "Time in ms after which a delegation token ends, however often it was renewed.",
    ),
    Setting(
        "delegation.token.expiry.time.ms",
        LONG,
        "86400000",
        Between(1),
        "Time in ms that a delegation token lasts unless it is renewed.",
    ),
    Setting(
        "delegation.token.expiry.check.interval.ms",
        LONG,
        "3600000",
        Between(1),
        "Time in ms between removals of expired delegation tokens.",
    ),
)
