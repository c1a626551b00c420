"""Kerberos principals, and rules that map them: `test_short_names.py` has what we make of them, and
`interop/test_principal_names.py` what Kafka does."""

REALM = "TEST.LOCAL"
NAMES = (
    "alice@TEST.LOCAL",
    "Kafka/broker1.example.com@TEST.LOCAL",
    "bob@OTHER.EXAMPLE",
    "bob/admin@OTHER.EXAMPLE",
    "plain",
    "a/b/c@TEST.LOCAL",
    "a@b@TEST.LOCAL",
    "@TEST.LOCAL",
    "aaa@",
)
RULES = (
    "DEFAULT",
    "RULE:[1:$1]",
    "RULE:[1:$1@$0](.*@OTHER.EXAMPLE)s/@.*//,DEFAULT",
    "RULE:[2:$1;$2](^.*;admin$)s/;admin$//",
    "RULE:[2:$2-$1]/L , DEFAULT",
    "RULE:[1:$1]/U,RULE:[2:$1]U",
    "RULE:[1:$1]s/a/x/g",
    "RULE:[1:$1]s/a/x/",
    "RULE:[1:$1]s/a*/-/g",
    "RULE:[1:$1]s/^(.)(.*)$/$2.$1/L",
    "RULE:[1:$1]s/(b)?o/<$1>/g/U",
    "RULE:[1:$1]s/b/$0$0\\$/",
    "RULE:[1:$1@$0],DEFAULT",
    "RULE:[1:$0-x$1y]",
    "RULE:[1:](.*)s//z/,RULE:[2:u]",
    "RULE:[1:$1](alice),RULE:[1:other]",
    "RULE:[3:$1$2$3],RULE:[0:$0]",
    "RULE:[2:$1](Kafka)s/K/k/g/",
)
WRONG = (
    "",
    "DEFAULT,",
    "default",
    "RULE:[:$1]",
    "RULE:[1:$1]x",
    "RULE:[1:$1]s/a/b",
    "RULE:[1:$1](",
    "RULE:1:$1",
    "RULE:[1:$1]s/(/b/",
    "RULE:[9999999999:$1]",
)
"""Rules that Kafka refuses at the start, too."""
