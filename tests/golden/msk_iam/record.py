"""Records tokens of AWS's own signer, for the credentials in this file, at one moment.

python -m venv V && V/bin/pip install aws-msk-iam-sasl-signer-python==1.0.2 && V/bin/python record.py > tokens.json
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from importlib import import_module
from unittest.mock import patch

AT = datetime(2026, 3, 1, 12, 30, 45, tzinfo=UTC)
CREDENTIALS = [
    ("eu-central-1", "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""),
    ("us-gov-west-1", "ASIDEXAMPLE", "another/secret+key=", "FwoGZXIvYXdzEBYaDEXAMPLE//+token=="),
]
"""Region, access key, secret key and session token; none is real."""


def environment(key: str, secret: str, session_token: str) -> dict[str, str]:
    """By which AWS's libraries find these credentials, and no others."""
    found = {
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_SESSION_TOKEN": session_token,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    return {name: value for name, value in found.items() if value}


def at_that_moment(remove_tzinfo: bool = True) -> datetime:
    """As botocore's `get_current_datetime`."""
    return AT.replace(tzinfo=None) if remove_tzinfo else AT


if __name__ == "__main__":
    provider = import_module("aws_msk_iam_sasl_signer.MSKAuthTokenProvider")
    rows = []
    with patch("botocore.auth.get_current_datetime", at_that_moment):
        for region, *credentials in CREDENTIALS:
            with patch.dict(os.environ, environment(*credentials)):
                token, expires_ms = provider.generate_auth_token(region)
                rows.append({"region": region, "token": token, "expires_ms": expires_ms})
    print(json.dumps(rows, indent=1))
