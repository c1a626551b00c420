"""Provider of tokens `msk-iam`: lets a client in to Amazon MSK by IAM.

The token is a URL of the action `kafka-cluster:Connect`, signed by Signature Version 4, in base64url without padding.
Credentials are those that other AWS tools find: environment, profile, container or instance.
"""

import base64

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.session import Session

LIFETIME_S = 900


def token(options):
    """Return the token, and for how many s it holds. `options` of the login module: `region` and `profile`."""
    session = Session(profile=options.get("profile"))
    region = options.get("region") or session.get_config_variable("region")
    credentials = session.get_credentials()
    if not region:
        raise ValueError('no AWS region; add region="…" to sasl.jaas.config')
    if credentials is None:
        raise ValueError("no AWS credentials; see `aws configure`")
    request = AWSRequest("GET", f"https://kafka.{region}.amazonaws.com/", params={"Action": "kafka-cluster:Connect"})
    SigV4QueryAuth(credentials.get_frozen_credentials(), "kafka-cluster", region, LIFETIME_S).add_auth(request)
    request.params = {"User-Agent": "logkernel"}
    url = request.prepare().url
    return base64.urlsafe_b64encode(url.encode()).decode().rstrip("="), LIFETIME_S
